#include "base/log.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstring>
#include <ctime>
#include <mutex>
#include <set>

#include "base/fd.hpp"
#include "base/host_name.hpp"
#include "base/knobs.hpp"
#include "base/printable.hpp"
#include "base/write_all.hpp"

namespace tutti {
namespace {

thread_local int thread_rank = -1;

std::string_view name_of(LogLevel level) {
  switch (level) {
    case LogLevel::kOff:
      return "OFF";
    case LogLevel::kWarn:
      return "WARN";
    case LogLevel::kInfo:
      return "INFO";
    case LogLevel::kTrace:
      return "TRACE";
  }
  return "?";
}

std::string format_line(LogLevel level, std::string_view text) {
  timeval now{};
  ::gettimeofday(&now, nullptr);
  tm local{};
  ::localtime_r(&now.tv_sec, &local);
  static const std::string host = host_name();
  const std::string rank = thread_rank < 0 ? "" : fmt::format("rank {} ", thread_rank);
  return fmt::format("tutti {:02}:{:02}:{:02}.{:03} {}:{} {}{} {}\n", local.tm_hour, local.tm_min,
                     local.tm_sec, now.tv_usec / 1000, host, ::getpid(), rank, name_of(level),
                     printable(text));
}

// Where lines go. One per process; never destroyed, so that threads may log until the end.
class Log {
 public:
  static Log& instance() {
    static Log* log = new Log;  // reachable through this pointer, hence no leak
    return *log;
  }

  LogLevel level() const { return level_.load(std::memory_order_relaxed); }

  void configure(LogLevel level, std::string_view file_pattern) {
    const std::scoped_lock lock(mutex_);
    open(file_pattern);
    level_.store(level, std::memory_order_relaxed);
  }

  void write(std::string_view line) {
    const std::scoped_lock lock(mutex_);
    // Nobody is left to tell of an error.
    (void)write_all(file_.valid() ? file_.get() : STDERR_FILENO, line);
  }

  bool first_time(std::string_view text) {
    const std::scoped_lock lock(mutex_);
    return seen_.emplace(text).second;
  }

 private:
  Log() {
    const Knobs& knobs = Knobs::process();
    // The choices' order is the levels'.
    level_ = static_cast<LogLevel>(knobs.integer("TUTTI_DEBUG"));
    open(knobs.path("TUTTI_DEBUG_FILE"));
  }

  void open(std::string_view file_pattern) {
    file_.reset();
    if (file_pattern.empty()) return;
    const std::string path = expand_log_file(file_pattern, host_name(), ::getpid());
    // Without O_NONBLOCK a FIFO's reader would be waited for here.
    constexpr int kFlags = O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC;
    file_.reset(::open(path.c_str(), kFlags | O_NONBLOCK, 0644));
    if (file_.valid() && ::fcntl(file_.get(), F_SETFL, O_APPEND) == 0) return;
    (void)write_all(
        STDERR_FILENO,
        format_line(LogLevel::kWarn,
                    fmt::format("TUTTI_DEBUG_FILE: cannot open '{}' ({}); logging to stderr", path,
                                std::strerror(errno))));
  }

  std::atomic<LogLevel> level_{LogLevel::kWarn};
  std::mutex mutex_;
  Fd file_;
  std::set<std::string, std::less<>> seen_;
};

}  // namespace

bool log_enabled(LogLevel level) {
  return level != LogLevel::kOff && level <= Log::instance().level();
}

void log_write(LogLevel level, std::string_view text) {
  Log::instance().write(format_line(level, text));
}

void log_once(LogLevel level, std::string_view text) {
  if (log_enabled(level) && Log::instance().first_time(text)) log_write(level, text);
}

void set_log_rank(int rank) { thread_rank = rank; }

void log_configure(LogLevel level, std::string_view file_pattern) {
  Log::instance().configure(level, file_pattern);
}

std::string expand_log_file(std::string_view pattern, std::string_view host, int pid) {
  std::string path;
  for (std::size_t i = 0; i < pattern.size(); ++i) {
    const char next = pattern[i] == '%' && i + 1 < pattern.size() ? pattern[i + 1] : '\0';
    if (next == 'h') {
      path += host;
    } else if (next == 'p') {
      path += std::to_string(pid);
    } else {
      path += pattern[i];
      if (next != '%') continue;
    }
    ++i;
  }
  return path;
}

}  // namespace tutti
