// Every setting a person can give from outside, in one typed registry. Precedence: environment,
// then tutti.conf, then the default. Read once per process, on first use.
//
// tutti.conf is the file $TUTTI_CONF_FILE names, or else the first that exists of
// ~/.config/tutti.conf and /etc/tutti.conf. The working directory is never searched: a folder must
// not be able to change what a program does that is started in it. A file that others can write is
// ignored, with a warning. Lines are NAME = value; '#' starts a comment.
#pragma once

#include <chrono>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "tutti/status.hpp"

namespace tutti {

enum class KnobType : std::uint8_t {
  kString,
  kChoice,  // one of `choices`, in any case
  kInt,
  kBool,          // 0 1, false true, off on, no yes
  kBytes,         // "16M"; at most 1T
  kSizeLimit,     // see kSizeNever below
  kMilliseconds,  // at least 1: no wait is without an end, and none ends before it began
};
enum class KnobSource : std::uint8_t { kDefault, kFile, kEnvironment };
std::string_view to_string(KnobSource source);  // "default", "file", "environment"

// Which ranks must agree on a setting for a group to be made.
enum class KnobScope : std::uint8_t {
  kGroup,    // all: it changes what an operation runs
  kProcess,  // none: it names what is a process's own, or nothing that peers can see
};

// What a setting is about, in the order in which people read of it.
enum class KnobGroup : std::uint8_t { kLaunch, kAlgorithms, kMemory, kDiagnostics };
std::string_view to_string(KnobGroup group);  // "launch"

struct Knob {
  std::string_view name;  // "TUTTI_TIMEOUT_MS"
  KnobGroup group;
  KnobType type;
  std::string_view default_value;
  std::string_view text;  // one line for `tutti env`
  KnobScope scope = KnobScope::kGroup;
  bool secret = false;            // never printed, hashed or read from a file
  std::string_view choices = {};  // kChoice: "OFF WARN INFO TRACE"
};

std::span<const Knob> all_knobs();  // by group

// kSizeLimit keeps one meaning everywhere: 0 never, -1 always, -2 automatic, >0 up to so many
// bytes.
inline constexpr std::int64_t kSizeNever = 0;
inline constexpr std::int64_t kSizeAlways = -1;
inline constexpr std::int64_t kSizeAutomatic = -2;

class Knobs {
 public:
  using Environment = std::vector<std::string>;  // "NAME=value"

  // What this process was started with.
  static const Knobs& process();
  // Logs the warnings of process(), the first time: malformed values, for which the default is
  // used, and unknown TUTTI_* names. For one process of a launch: rank 0, or the `tutti` command,
  // whose ranks then do not report them again.
  static void report();

  // For tests and for `process()`. `file_text` is a tutti.conf's content, `known` the registry.
  static Knobs parse(const Environment& environment, std::string_view file_text,
                     std::span<const Knob> known = all_knobs());

  // `name` must be a registered one; of the typed getters only the one that fits its type.
  std::string text(std::string_view name) const;
  std::string path(std::string_view name) const;      // text, with a leading "~/" made absolute
  std::string display(std::string_view name) const;   // text; "(set)" for a secret that is set
  std::int64_t integer(std::string_view name) const;  // kInt, kBytes, kSizeLimit, kMilliseconds
  bool flag(std::string_view name) const;
  std::chrono::milliseconds milliseconds(std::string_view name) const;
  KnobSource source(std::string_view name) const;

  const std::vector<std::string>& warnings() const { return warnings_; }
  // The same on two ranks whose knobs of group scope have the same values, wherever from.
  std::uint64_t hash() const;
  // What goes into it: names and values, of which one that can be written in several ways ("16M")
  // is a number.
  std::vector<std::pair<std::string, std::string>> group_values() const;

 private:
  struct Setting {
    const Knob* knob;
    std::string value;
    KnobSource source;
    std::int64_t number;  // of the types that are numbers
  };
  const Setting& find(std::string_view name) const;
  void set(std::string_view name, std::string_view value, KnobSource source);
  void warn_unknown(std::string_view name, KnobSource source);
  void read_file(std::string_view text);
  void read_environment(const Environment& environment);
  void warn(std::string text);

  std::vector<Setting> settings_;
  std::vector<std::string> warnings_;
  std::string home_;
};

}  // namespace tutti
