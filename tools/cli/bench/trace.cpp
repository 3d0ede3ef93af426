#include "bench/trace.hpp"

#include <fmt/core.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <limits>

#include "base/try.hpp"
#include "group/communicator_impl.hpp"
#include "group/recorder/find_pages.hpp"

namespace tutti::cli {
namespace {

using nlohmann::ordered_json;

struct Place {
  std::size_t group = 0, rank = 0;
};

ordered_json name_event(std::string_view kind, const Place& place, const std::string& name) {
  return {{"name", kind},
          {"ph", "M"},
          {"pid", place.group},
          {"tid", place.rank},
          {"args", {{"name", name}}}};
}

ordered_json event_of(const RecordedOperation& operation, const Place& place,
                      std::uint64_t origin_ns) {
  const bool ended = operation.ended_ns >= operation.started_ns && operation.ended_ns != 0;
  ordered_json event = {{"name", operation.row},
                        {"cat", to_string(operation.state)},
                        {"ph", ended ? "X" : "i"},
                        {"pid", place.group},
                        {"tid", place.rank},
                        {"ts", static_cast<double>(operation.started_ns - origin_ns) * 1e-3}};
  if (ended) {
    event["dur"] = static_cast<double>(operation.ended_ns - operation.started_ns) * 1e-3;
  } else {
    event["s"] = "t";  // an instant of its thread
  }
  event["args"] = {{"sequence", operation.sequence}, {"count", operation.count},
                   {"bytes", operation.bytes},       {"dtype", to_string(operation.dtype)},
                   {"op", op_text(operation)},       {"state", to_string(operation.state)}};
  return event;
}

std::uint64_t earliest(const std::vector<TracedGroup>& groups) {
  std::uint64_t first = std::numeric_limits<std::uint64_t>::max();
  for (const TracedGroup& group : groups) {
    for (const auto& rank : group) {
      for (const auto& operation : rank) first = std::min(first, operation.started_ns);
    }
  }
  return first;
}

}  // namespace

std::string to_trace_json(const std::vector<TracedGroup>& groups) {
  const std::uint64_t origin_ns = earliest(groups);
  ordered_json events = ordered_json::array();
  Place place;
  for (place.group = 0; place.group < groups.size(); ++place.group) {
    const TracedGroup& group = groups[place.group];
    place.rank = 0;
    events.push_back(
        name_event("process_name", place, fmt::format("group of {} ranks", group.size())));
    for (; place.rank < group.size(); ++place.rank) {
      events.push_back(name_event("thread_name", place, fmt::format("rank {}", place.rank)));
      for (const auto& operation : group[place.rank]) {
        events.push_back(event_of(operation, place, origin_ns));
      }
    }
  }
  const ordered_json trace = {{"displayTimeUnit", "ns"}, {"traceEvents", std::move(events)}};
  return trace.dump(-1, ' ', false, ordered_json::error_handler_t::replace) + "\n";
}

Result<std::vector<RecordedOperation>> recorded_operations(Communicator& communicator) {
  CommunicatorImpl& impl = communicator.impl();
  impl.record_progress();
  const int page = impl.recorder().descriptor();
  if (page < 0) return Status(StatusCode::kUnavailable, "this rank records nothing");
  TUTTI_ASSIGN(const Bytes bytes, read_page(page));
  TUTTI_ASSIGN(Snapshot snapshot, parse_page(bytes));
  return std::move(snapshot.operations);
}

}  // namespace tutti::cli
