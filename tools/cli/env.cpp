#include "env.hpp"

#include <fmt/core.h>
#include <nlohmann/json.hpp>

#include <algorithm>

#include "base/printable.hpp"
#include "exit_code.hpp"
#include "tell.hpp"

namespace tutti::cli {
namespace {

std::string print_json(const Knobs& knobs) {
  nlohmann::ordered_json settings = nlohmann::ordered_json::array();
  for (const Knob& knob : all_knobs()) {
    settings.push_back({{"name", knob.name},
                        {"value", knobs.display(knob.name)},
                        {"source", to_string(knobs.source(knob.name))},
                        {"text", knob.text}});
  }
  const nlohmann::ordered_json value = {{"settings", std::move(settings)},
                                        {"warnings", knobs.warnings()}};
  return value.dump(1, ' ', false, nlohmann::json::error_handler_t::replace) + "\n";
}

}  // namespace

std::string print_env(const Knobs& knobs, bool json) {
  if (json) return print_json(knobs);
  const auto shown = [&](const Knob& knob) { return printable(knobs.display(knob.name)); };
  std::size_t name_width = 0, value_width = 0;
  for (const Knob& knob : all_knobs()) {
    name_width = std::max(name_width, knob.name.size());
    value_width = std::max(value_width, shown(knob).size());
  }
  std::string text;
  for (const Knob& knob : all_knobs()) {
    text += fmt::format("{:<{}}  {:<{}}  {:<11}  {}\n", knob.name, name_width, shown(knob),
                        value_width, to_string(knobs.source(knob.name)), knob.text);
  }
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
