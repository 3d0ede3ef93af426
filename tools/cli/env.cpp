#include "env.hpp"

#include <fmt/core.h>
#include <nlohmann/json.hpp>

#include <algorithm>

#include "base/printable.hpp"
#include "base/units.hpp"
#include "exit_code.hpp"
#include "tell.hpp"

namespace tutti::cli {
namespace {

std::string print_json(const Knobs& knobs) {
  nlohmann::ordered_json settings = nlohmann::ordered_json::array();
  for (const Knob& knob : all_knobs()) {
    settings.push_back({{"name", knob.name},
                        {"group", to_string(knob.group)},
                        {"value", knobs.display(knob.name)},
                        {"source", to_string(knobs.source(knob.name))},
                        {"text", knob.text}});
  }
  const nlohmann::ordered_json value = {{"settings", std::move(settings)},
                                        {"warnings", knobs.warnings()}};
  return value.dump(1, ' ', false, nlohmann::json::error_handler_t::replace) + "\n";
}

// In the largest unit that leaves it whole: "10 min", "90 s", "1234 ms".
std::string duration_text(std::int64_t milliseconds) {
  constexpr std::int64_t kSecond = 1000, kMinute = 60 * kSecond, kHour = 60 * kMinute;
  if (milliseconds % kHour == 0) return fmt::format("{} h", milliseconds / kHour);
  if (milliseconds % kMinute == 0) return fmt::format("{} min", milliseconds / kMinute);
  if (milliseconds % kSecond == 0) return fmt::format("{} s", milliseconds / kSecond);
  return fmt::format("{} ms", milliseconds);
}

std::string limit_text(std::int64_t limit) {
  if (limit == kSizeNever) return "none";
  if (limit == kSizeAlways) return "all";
  if (limit == kSizeAutomatic) return "by machine";
  return format_bytes(static_cast<std::size_t>(limit));
}

std::string value_text(const Knobs& knobs, const Knob& knob) {
  switch (knob.type) {
    case KnobType::kBool:
      return knobs.flag(knob.name) ? "on" : "off";
    case KnobType::kBytes:
      return format_bytes(static_cast<std::size_t>(knobs.integer(knob.name)));
    case KnobType::kSizeLimit:
      return limit_text(knobs.integer(knob.name));
    case KnobType::kMilliseconds:
      return duration_text(knobs.integer(knob.name));
    default:
      break;
  }
  const std::string value = printable(knobs.display(knob.name));
  return value.empty() ? "-" : value;
}

// With where it comes from, if somebody set it: "90 s (environment)".
std::string setting_text(const Knobs& knobs, const Knob& knob) {
  const KnobSource source = knobs.source(knob.name);
  const std::string value = value_text(knobs, knob);
  return source == KnobSource::kDefault ? value : fmt::format("{} ({})", value, to_string(source));
}

}  // namespace

std::string print_env(const Knobs& knobs, bool json) {
  if (json) return print_json(knobs);
  std::size_t name_width = 0, value_width = 0;
  for (const Knob& knob : all_knobs()) {
    name_width = std::max(name_width, knob.name.size());
    value_width = std::max(value_width, setting_text(knobs, knob).size());
  }
  std::string text;
  const Knob* before = nullptr;
  for (const Knob& knob : all_knobs()) {
    if (before == nullptr || before->group != knob.group) {
      text += fmt::format("{}{}\n", before == nullptr ? "" : "\n", to_string(knob.group));
    }
    before = &knob;
    text += fmt::format("  {:<{}}  {:<{}}  {}\n", knob.name, name_width, setting_text(knobs, knob),
                        value_width, knob.text);
  }
  if (!knobs.warnings().empty()) text += "\n";
  for (const std::string& warning : knobs.warnings()) {
    text += fmt::format("warning: {}\n", printable(warning));
  }
  return text;
}

int run_env(bool json) {
  tell(stdout, "{}", print_env(Knobs::process(), json));
  return kSuccess;
}

}  // namespace tutti::cli
