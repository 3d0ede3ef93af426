// TUTTI_DEBUG = OFF | WARN | INFO | TRACE, to stderr or TUTTI_DEBUG_FILE (%h host, %p pid).
// Each line: "tutti 12:03:44.123 host:pid rank 3 WARN text", written at once, so that lines of
// several threads and processes do not mix; control characters in TEXT are escaped. Warnings are on
// by default. From any thread. A FIFO that nobody reads is refused, as what cannot be opened.
#pragma once

#include <fmt/core.h>

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>

namespace tutti {

enum class LogLevel : std::uint8_t { kOff, kWarn, kInfo, kTrace };

bool log_enabled(LogLevel level);
// Does not ask log_enabled: the line is wanted.
void log_write(LogLevel level, std::string_view text);
// The first call with this text in this process writes it; later ones do nothing.
void log_once(LogLevel level, std::string_view text);

// What lines of this thread are prefixed with; -1 for none.
void set_log_rank(int rank);

// In place of what TUTTI_DEBUG and TUTTI_DEBUG_FILE say. An empty pattern is stderr.
void log_configure(LogLevel level, std::string_view file_pattern);
// %h and %p replaced, %% is one percent sign.
std::string expand_log_file(std::string_view pattern, std::string_view host, int pid);

template <class... Args>
void log(LogLevel level, fmt::format_string<Args...> format, Args&&... args) {
  if (log_enabled(level)) log_write(level, fmt::format(format, std::forward<Args>(args)...));
}

}  // namespace tutti
