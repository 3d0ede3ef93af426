// Arrival traces: measured on another machine, modelled, or written by hand.
#include "matmul/arrival_trace.hpp"

#include <iterator>

#include "fuzz/fuzz.hpp"

namespace tutti::fuzz {
namespace {

void check_trace(const ArrivalTrace& trace) {
  const ArrivalPlan plan = trace.plan(ArrivalOrder::kRotated);
  must_hold(check_arrival_plan(plan).is_ok(), "a plan can be run");
  must_hold(std::ssize(replay_of(trace)) < plan.shards * plan.chunks,
            "each chunk arrives once, and the own shard's not at all");
  std::uint64_t before_ns = 0;
  for (const ArrivedChunk& each : trace.arrivals) {
    must_hold(each.chunk >= 0 && each.chunk / plan.chunks == each.source, "a chunk has its shard");
    must_hold(each.source < plan.shards && each.source != plan.own, "a shard is another's");
    must_hold(each.ns >= before_ns && each.ns <= kMostArrivalNs, "arrivals are in order of time");
    before_ns = each.ns;
  }
  static_cast<void>(check_arrival_of(trace, {.m = 1000, .bytes_per_row = 64}).is_ok());
}

}  // namespace
}  // namespace tutti::fuzz

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace tutti;
  using fuzz::must_hold;
  const auto trace = arrival_trace_from_json_text(fuzz::text_of(data, size), "trace.json");
  if (!trace.is_ok()) {
    must_hold(trace.status().message().starts_with("trace.json "), "an error names its file");
    return 0;
  }
  fuzz::check_trace(*trace);
  const auto again = arrival_trace_from_json_text(to_json_text(*trace), "again.json");
  must_hold(again.is_ok() && *again == *trace, "a trace that is written and read is the same");
  return 0;
}
