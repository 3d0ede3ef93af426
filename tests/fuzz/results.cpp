// Everything else that is JSON: kept results, links of `tutti model`, what bench's ranks tell their
// launcher, and machines as values. Each text is given to every reader. What a reader takes says
// what was written.
#include <nlohmann/json.hpp>

#include <cmath>
#include <string>

#include "bench/measurement.hpp"
#include "bench/record.hpp"
#include "fuzz/fuzz.hpp"
#include "model/links.hpp"
#include "topology/topology.hpp"

namespace tutti::fuzz {
namespace {

using nlohmann::json;

// Times may have been rounded to the nanosecond; everything else is as it was.
bool numbers_agree(const json& read, const json& written) {
  if (read.is_number_integer() && written.is_number_integer()) return read == written;
  const auto a = read.get<double>(), b = written.get<double>();
  return std::abs(a - b) <= 0.0006 + 1e-12 * std::abs(a);
}

// Fields that a reader does not know are left out; those that came later have a default. Whether
// all peers are reached is written for older readers, and worked out from the reach of each pair.
bool agree(const json& read, const json& written) {
  if (read.is_object() && written.is_object()) {
    for (const auto& [name, value] : written.items()) {
      if (name == "peer_access") continue;
      if (read.contains(name) && !agree(read[name], value)) return false;
    }
    return true;
  }
  if (read.is_array() && written.is_array()) {
    return std::equal(read.begin(), read.end(), written.begin(), written.end(), agree);
  }
  if (read.is_number() && written.is_number()) return numbers_agree(read, written);
  return read == written;
}

void check_record(std::string_view text) {
  const auto record = cli::record_from_json_text(text, "results.json");
  if (!record.is_ok()) {
    must_hold(record.status().message().starts_with("results.json "), "an error names its file");
    return;
  }
  const std::string written = cli::to_json_text(*record);
  must_hold(agree(json::parse(text), json::parse(written)), "results are what was written");
  const auto again = cli::record_from_json_text(written, "again.json");
  must_hold(again.is_ok() && cli::to_json_text(*again) == written, "results can be kept");
}

void check_report(std::string_view text) {
  const auto report = cli::report_from_json_text(text);
  if (!report.is_ok()) {
    must_hold(report.status().code() == StatusCode::kMismatch, "noise is a mismatch");
    return;
  }
  if (const auto* failure = std::get_if<cli::Failure>(&*report)) {
    must_hold(failure->code != StatusCode::kOk && failure->code <= StatusCode::kInternal,
              "a failure has one of the known codes");
  }
  if (const auto* measured = std::get_if<cli::Measurement>(&*report)) {
    must_hold(measured->plan.source <= PlanSource::kModel, "a plan has one of the known sources");
  }
  const std::string written = cli::to_json_text(*report);
  must_hold(agree(json::parse(text), json::parse(written)), "a report is what was written");
  const auto again = cli::report_from_json_text(written);
  must_hold(again.is_ok() && cli::to_json_text(*again) == written, "a report can be passed on");
}

void check_links(std::string_view text) {
  const auto links = model::links_from_json_text(text, "link.json");
  if (!links.is_ok()) {
    must_hold(links.status().message().starts_with("link.json: "), "an error names its file");
    return;
  }
  must_hold(links->cluster.between.gbit_per_s > 0 && links->cluster.within.gbit_per_s > 0,
            "a link has a rate");
  const auto again = model::links_from_json_text(model::to_json_text(*links), "again.json");
  must_hold(again.is_ok() && *again == *links, "links can be kept");
}

template <class Value>
void check_value(const json& read) {
  Value value;
  try {
    read.get_to(value);
  } catch (const json::exception&) {
    return;  // as its header says
  }
  const json written = value;
  must_hold(agree(read, written), "a machine is what was written");
  must_hold(written.get<Value>() == value, "a machine that is written and read is the same");
  if constexpr (std::is_same_v<Value, Topology>) {
    must_hold(!to_text(value).empty(), "a group can be printed");
  }
}

}  // namespace
}  // namespace tutti::fuzz

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace tutti::fuzz;
  const std::string_view text = text_of(data, size);
  check_record(text);
  check_report(text);
  check_links(text);
  const json value = json::parse(text, nullptr, false);
  if (value.is_discarded()) return 0;
  check_value<tutti::Topology>(value);
  check_value<tutti::Machine>(value);
  return 0;
}
