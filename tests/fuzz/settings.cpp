// Texts that a person or a launcher hands over: tutti.conf, environment variables, overrides, group
// ids, addresses. Each text is given to every reader.
#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <vector>

#include "base/knobs.hpp"
#include "base/units.hpp"
#include "bootstrap/bootstrap.hpp"
#include "drivers/sockets.hpp"
#include "fuzz/fuzz.hpp"
#include "planning/choose.hpp"

namespace tutti::fuzz {
namespace {

using Lines = std::vector<std::string>;

Lines lines_of(std::string_view text) {
  Lines lines;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    lines.emplace_back(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return lines;
}

// The values there are, given again as variables, are the same values, and nothing to warn of.
void check_values(const Knobs& knobs) {
  Lines again;
  for (const Knob& knob : all_knobs()) {
    again.push_back(fmt::format("{}={}", knob.name, knobs.text(knob.name)));
  }
  const Knobs same = Knobs::parse(again, "");
  must_hold(same.warnings().empty(), "values that were taken are values");
  must_hold(same.hash() == knobs.hash(), "values that were taken are the same again");
}

void check_settings(std::string_view text, const Lines& lines) {
  const Knobs file = Knobs::parse({}, text), environment = Knobs::parse(lines, "");
  const Knobs both = Knobs::parse(lines, text);
  for (const Knob& knob : all_knobs()) {
    if (knob.secret) {
      must_hold(file.source(knob.name) == KnobSource::kDefault, "no secret comes from a file");
      must_hold(both.text(knob.name).empty() || both.display(knob.name) == "(set)",
                "no secret is shown");
    }
    const bool given = environment.source(knob.name) == KnobSource::kEnvironment;
    must_hold(!given || both.text(knob.name) == environment.text(knob.name),
              "the environment comes before the file");
  }
  check_values(file);
  check_values(both);
}

void check_launch(const Lines& lines) {
  const auto launch = read_launch_environment(lines);
  if (!launch.is_ok()) return;
  must_hold(launch->rank >= 0 && launch->rank < launch->size, "a rank is one of the group's");
  must_hold(launch->local_rank >= 0 && launch->local_rank < launch->local_size,
            "a local rank is one of the host's");
  must_hold(launch->local_size <= launch->size, "a host has no more ranks than there are");
}

void check_overrides(std::string_view text) {
  const auto overrides = parse_overrides(text);
  if (!overrides.is_ok()) return;
  std::string written;
  for (const Override& one : *overrides) {
    const std::string collective(to_string(one.collective));
    must_hold(one.min_bytes <= one.max_bytes, "a range does not end before it begins");
    must_hold(one.algorithm.starts_with(collective + "/"), "an algorithm is its collective's");
    written += fmt::format("{}:{}-{}:@{};", collective, one.min_bytes, one.max_bytes,
                           one.algorithm.substr(collective.size() + 1));
  }
  const auto again = parse_overrides(written);
  must_hold(again.is_ok() && *again == *overrides,
            "overrides that are written and read are the same");
}

void check_all_gather_matmul_overrides(std::string_view text) {
  const auto overrides = parse_all_gather_matmul_overrides(text);
  if (!overrides.is_ok()) return;
  std::string written;
  for (const AllGatherMatmulOverride& one : *overrides) {
    must_hold(one.min_bytes <= one.max_bytes, "a range does not end before it begins");
    written += fmt::format("{}:{}-{}:@{};", kAllGatherMatmul, one.min_bytes, one.max_bytes,
                           to_string(one.algorithm));
  }
  const auto again = parse_all_gather_matmul_overrides(written);
  must_hold(again.is_ok() && *again == *overrides,
            "overrides that are written and read are the same");
}

void check_addresses(std::string_view text) {
  if (const auto id = GroupId::from_text(text); id.is_ok()) {
    const auto again = GroupId::from_text(id->to_text());
    must_hold(again.is_ok() && again->secret() == id->secret() && again->address() == id->address(),
              "an id that is written and read is the same");
    must_hold(!id->is_local() || id->address().find('/') == std::string::npos,
              "a local id names no path");
  }
  if (const auto place = parse_host_port(text); place.is_ok()) {
    must_hold(!place->host.empty(), "a place is somewhere");
    const auto again = parse_host_port(fmt::format("[{}]:{}", place->host, place->port));
    must_hold(again.is_ok() && again->host == place->host && again->port == place->port,
              "a place that is written and read is the same");
  }
  if (const auto bytes = parse_bytes(text); bytes.is_ok()) {
    const auto again = parse_bytes(format_bytes(*bytes));
    must_hold(again.is_ok() && *again == *bytes, "a size that is written and read is the same");
  }
}

}  // namespace
}  // namespace tutti::fuzz

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace tutti::fuzz;
  const std::string_view text = text_of(data, size);
  const Lines lines = lines_of(text);
  check_settings(text, lines);
  check_launch(lines);
  check_all_gather_matmul_overrides(text);
  check_overrides(text);
  check_addresses(text);
  return 0;
}
