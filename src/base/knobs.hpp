// Every setting a person can give from outside, in one typed registry. Precedence: environment,
// then tutti.conf, then the default. Read once per process, on first use.
//
// tutti.conf is looked for at $TUTTI_CONF_FILE, ./tutti.conf is NOT read; then
// ~/.config/tutti.conf, then /etc/tutti.conf: the first that exists counts. Lines are NAME = value;
// '#' starts a comment.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "tutti/status.hpp"

namespace tutti {

enum class KnobType : std::uint8_t { kString, kInt, kBool, kBytes, kSizeLimit, kMilliseconds };
enum class KnobSource : std::uint8_t { kDefault, kFile, kEnvironment };

struct Knob {
  std::string_view name;  // "TUTTI_TIMEOUT_MS"
  KnobType type;
  std::string_view default_value;
  std::string_view text;  // one line for `tutti env`
};

std::span<const Knob> all_knobs();

// kSizeLimit keeps one meaning everywhere: 0 never, -1 always, -2 automatic, >0 up to so many
// bytes.
inline constexpr std::int64_t kSizeNever = 0;
inline constexpr std::int64_t kSizeAlways = -1;
inline constexpr std::int64_t kSizeAutomatic = -2;

class Knobs {
 public:
  using Environment = std::vector<std::string>;  // "NAME=value"

  // What this process was started with. Malformed values are reported once and the default is used;
  // so is any unknown TUTTI_* name.
  static const Knobs& process();

  // For tests and for `process()`. `file_text` is a tutti.conf's content.
  static Knobs parse(const Environment& environment, std::string_view file_text);

  std::string text(std::string_view name) const;
  std::int64_t integer(std::string_view name) const;  // kInt, kBytes, kSizeLimit, kMilliseconds
  bool flag(std::string_view name) const;
  std::chrono::milliseconds milliseconds(std::string_view name) const;
  KnobSource source(std::string_view name) const;

  const std::vector<std::string>& warnings() const { return warnings_; }
  // The same on two ranks whose knobs agree. Per-rank names (debug files and the like) are left
  // out.
  std::uint64_t hash() const;

 private:
  struct Setting {
    const Knob* knob;
    std::string value;
    KnobSource source;
  };
  const Setting& find(std::string_view name) const;
  std::vector<Setting> settings_;
  std::vector<std::string> warnings_;
};

}  // namespace tutti
