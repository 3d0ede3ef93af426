#include "base/knobs.hpp"

#include <sys/stat.h>
#include <unistd.h>

#include <fmt/core.h>

#include <algorithm>
#include <atomic>
#include <cassert>
#include <charconv>
#include <optional>

#include "base/hash.hpp"
#include "base/log.hpp"
#include "base/nearest.hpp"
#include "base/process_environment.hpp"
#include "base/text_file.hpp"
#include "base/trim.hpp"
#include "base/try.hpp"
#include "base/units.hpp"

namespace tutti {
namespace {

constexpr std::string_view kPrefix = "TUTTI_";
constexpr std::string_view kBlanks = " \t\r";
constexpr std::size_t kMostRoom = 1024 * GiB;          // all of a communicator's fits in 64 bits
constexpr std::int64_t kMostMilliseconds = INT32_MAX;  // 24 days; nanoseconds fit in 64 bits

char upper(char c) { return c >= 'a' && c <= 'z' ? static_cast<char>(c - 'a' + 'A') : c; }

bool same_word(std::string_view a, std::string_view b) {
  return std::ranges::equal(a, b, {}, upper, upper);
}

// Calls `f` for each part of `text` between separators.
template <class F>
void for_each_part(std::string_view text, char separator, F&& f) {
  while (!text.empty()) {
    const std::size_t end = std::min(text.find(separator), text.size());
    f(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
  }
}

std::optional<std::int64_t> parse_integer(std::string_view text) {
  std::int64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc{} || end != text.data() + text.size()) return std::nullopt;
  return value;
}

std::optional<std::int64_t> parse_bool(std::string_view text) {
  for (const std::string_view word : {"1", "true", "on", "yes"}) {
    if (same_word(text, word)) return 1;
  }
  for (const std::string_view word : {"0", "false", "off", "no"}) {
    if (same_word(text, word)) return 0;
  }
  return std::nullopt;
}

std::optional<std::int64_t> parse_size(std::string_view text, std::size_t most = INT64_MAX) {
  const auto bytes = parse_bytes(text);
  if (!bytes.is_ok() || *bytes > most) return std::nullopt;
  return static_cast<std::int64_t>(*bytes);
}

std::optional<std::int64_t> parse_choice(std::string_view choices, std::string_view text) {
  std::optional<std::int64_t> found;
  std::int64_t index = 0;
  for_each_part(choices, ' ', [&](std::string_view choice) {
    if (same_word(choice, text)) found = index;
    ++index;
  });
  return found;
}

// The value as a number (a choice's position; 0 for strings), or nothing if it is malformed.
std::optional<std::int64_t> parse_value(const Knob& knob, std::string_view text) {
  switch (knob.type) {
    case KnobType::kString:
      return 0;
    case KnobType::kChoice:
      return parse_choice(knob.choices, text);
    case KnobType::kInt:
      return parse_integer(text);
    case KnobType::kBool:
      return parse_bool(text);
    case KnobType::kBytes:
      return parse_size(text, kMostRoom);
    case KnobType::kSizeLimit:
      if (text == "-1") return kSizeAlways;
      if (text == "-2") return kSizeAutomatic;
      return parse_size(text);
    case KnobType::kMilliseconds: {
      const auto value = parse_integer(text);
      return value && *value >= 1 && *value <= kMostMilliseconds ? value : std::nullopt;
    }
  }
  return std::nullopt;
}

std::string expectation(const Knob& knob) {
  switch (knob.type) {
    case KnobType::kString:
      return "a text";
    case KnobType::kChoice:
      return fmt::format("one of {}", knob.choices);
    case KnobType::kInt:
      return "an integer";
    case KnobType::kBool:
      return "0 or 1";
    case KnobType::kBytes:
      return "a size such as 65536, 64K or 16M, at most 1T";
    case KnobType::kSizeLimit:
      return "0 (never), -1 (always), -2 (automatic) or a size such as 64K";
    case KnobType::kMilliseconds:
      return fmt::format("milliseconds from 1 to {}", kMostMilliseconds);
  }
  return "?";
}

// Settings can name a library to load, so they are read from nobody but this user and root.
Status check_owner(const std::string& path) {
  struct stat info {};
  if (::stat(path.c_str(), &info) != 0) return Status::ok();  // reading says what is wrong
  const bool owned = info.st_uid == ::geteuid() || info.st_uid == 0;
  // A group of one's own may write: that is how many systems set the umask.
  const bool by_group = (info.st_mode & S_IWGRP) != 0 && info.st_gid != ::getegid();
  const bool by_others = (info.st_mode & S_IWOTH) != 0;
  if (owned && !by_group && !by_others) return Status::ok();
  return {StatusCode::kPermission,
          fmt::format("'{}' is ignored: others can write it; chown it to this user or root, and "
                      "chmod go-w",
                      path)};
}

// The text of tutti.conf; empty where there is none. Fails where it must not or cannot be read.
Result<std::string> read_conf_file(const std::string& named, const std::string& home) {
  std::vector<std::string> paths{home + "/.config/tutti.conf", "/etc/tutti.conf"};
  if (!named.empty()) paths = {named};
  for (const std::string& path : paths) {
    TUTTI_TRY(check_owner(path));
    TUTTI_ASSIGN(auto text, read_text_file(path));
    if (text) return *std::move(text);
  }
  if (named.empty()) return std::string();
  return Status(StatusCode::kInvalidArgument,
                fmt::format("TUTTI_CONF_FILE names '{}', which does not exist; ignored", named));
}

}  // namespace

std::string_view to_string(KnobSource source) {
  switch (source) {
    case KnobSource::kDefault:
      return "default";
    case KnobSource::kFile:
      return "file";
    case KnobSource::kEnvironment:
      return "environment";
  }
  return "?";
}

const Knobs& Knobs::process() {
  static const Knobs knobs = [] {
    const Environment environment = process_environment();
    const Knobs names = parse(environment, "");
    const auto file = read_conf_file(names.path("TUTTI_CONF_FILE"), names.home_);
    Knobs result = parse(environment, file.is_ok() ? *file : "");
    if (!file.is_ok()) result.warn(file.status().message());
    return result;
  }();
  return knobs;
}

void Knobs::report() {
  static std::atomic<bool> reported{false};
  const Knobs& knobs = process();
  const bool by_launcher = knobs.integer("TUTTI_GROUP_FD") >= 0;
  if (by_launcher || reported.exchange(true)) return;
  for (const std::string& warning : knobs.warnings_) log(LogLevel::kWarn, "{}", warning);
}

Knobs Knobs::parse(const Environment& environment, std::string_view file_text,
                   std::span<const Knob> known) {
  Knobs knobs;
  for (const Knob& knob : known) {
    const auto number = parse_value(knob, knob.default_value);
    assert(number && "a knob's default must be a value of its type");
    knobs.settings_.push_back(
        {&knob, std::string(knob.default_value), KnobSource::kDefault, number.value_or(0)});
  }
  knobs.read_file(file_text);
  knobs.read_environment(environment);
  return knobs;
}

void Knobs::read_file(std::string_view text) {
  int line_number = 0;
  for_each_part(text, '\n', [&](std::string_view line) {
    ++line_number;
    line = trim(line.substr(0, line.find('#')), kBlanks);
    if (line.empty()) return;
    const std::size_t equals = line.find('=');
    if (equals == std::string_view::npos) {
      warn(fmt::format("tutti.conf, line {}: expected NAME = value, found '{}'; ignored",
                       line_number, line));
      return;
    }
    set(trim(line.substr(0, equals), kBlanks), trim(line.substr(equals + 1), kBlanks),
        KnobSource::kFile);
  });
}

void Knobs::read_environment(const Environment& environment) {
  for (const std::string_view entry : environment) {
    const std::size_t equals = entry.find('=');
    if (equals == std::string_view::npos) continue;
    const std::string_view name = entry.substr(0, equals);
    if (name == "HOME") home_ = entry.substr(equals + 1);
    if (name.substr(0, kPrefix.size()) == kPrefix) {
      set(name, entry.substr(equals + 1), KnobSource::kEnvironment);
    }
  }
}

void Knobs::set(std::string_view name, std::string_view value, KnobSource source) {
  const auto setting =
      std::ranges::find(settings_, name, [](const Setting& known) { return known.knob->name; });
  if (setting == settings_.end()) return warn_unknown(name, source);
  const Knob& knob = *setting->knob;
  if (knob.secret && source == KnobSource::kFile) {
    warn(
        fmt::format("tutti.conf holds {}, which is not read from there; use a file of mode 0600 "
                    "and {}_FILE",
                    name, name));
    return;
  }
  const auto number = parse_value(knob, value);
  if (!number) {
    warn(fmt::format("{}={} ({}) is not {}; {} is used", name, value, to_string(source),
                     expectation(knob), setting->value));
    return;
  }
  setting->value = value;
  setting->source = source;
  setting->number = *number;
}

void Knobs::warn_unknown(std::string_view name, KnobSource source) {
  // What all names begin with does not tell them apart.
  const std::string_view start = name.starts_with(kPrefix) ? kPrefix : "";
  std::vector<std::string_view> known;
  for (const Setting& setting : settings_) known.push_back(setting.knob->name.substr(start.size()));
  const std::string_view meant = nearest(name.substr(start.size()), known);
  warn(fmt::format("unknown setting {} ({}) is ignored; {}", name, to_string(source),
                   meant.empty() ? "`tutti env` lists the known ones"
                                 : fmt::format("did you mean {}{}?", start, meant)));
}

void Knobs::warn(std::string text) {
  if (std::ranges::find(warnings_, text) == warnings_.end()) warnings_.push_back(std::move(text));
}

const Knobs::Setting& Knobs::find(std::string_view name) const {
  for (const Setting& setting : settings_) {
    if (setting.knob->name == name) return setting;
  }
  assert(false && "not a registered knob");
  static const Knob kNone{"", KnobGroup::kLaunch, KnobType::kString, "", ""};
  static const Setting kUnknown{&kNone, "", KnobSource::kDefault, 0};
  return kUnknown;
}

std::string Knobs::text(std::string_view name) const { return find(name).value; }

std::string Knobs::path(std::string_view name) const {
  const std::string& value = find(name).value;
  if (value.substr(0, 2) != "~/") return value;
  return home_.empty() ? std::string{} : home_ + value.substr(1);
}

std::string Knobs::display(std::string_view name) const {
  const Setting& setting = find(name);
  return setting.knob->secret && !setting.value.empty() ? "(set)" : setting.value;
}

std::int64_t Knobs::integer(std::string_view name) const {
  const Setting& setting = find(name);
  assert(setting.knob->type != KnobType::kString);
  return setting.number;
}

bool Knobs::flag(std::string_view name) const {
  const Setting& setting = find(name);
  assert(setting.knob->type == KnobType::kBool);
  return setting.number != 0;
}

std::chrono::milliseconds Knobs::milliseconds(std::string_view name) const {
  const Setting& setting = find(name);
  assert(setting.knob->type == KnobType::kMilliseconds);
  return std::chrono::milliseconds(setting.number);
}

KnobSource Knobs::source(std::string_view name) const { return find(name).source; }

std::uint64_t Knobs::hash() const {
  Hash hash;
  for (const auto& [name, value] : group_values()) hash.add(name).add(value);
  return hash.value();
}

std::vector<std::pair<std::string, std::string>> Knobs::group_values() const {
  std::vector<std::pair<std::string, std::string>> values;
  for (const Setting& setting : settings_) {
    if (setting.knob->scope != KnobScope::kGroup || setting.knob->secret) continue;
    // "16M" and "16384K" are one value.
    const bool is_text = setting.knob->type == KnobType::kString;
    values.emplace_back(setting.knob->name,
                        is_text ? setting.value : fmt::format("{}", setting.number));
  }
  return values;
}

}  // namespace tutti
