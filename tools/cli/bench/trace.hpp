// What the ranks did last, on one time line, as Perfetto and chrome://tracing show it.
#pragma once

#include <string>
#include <vector>

#include "group/recorder/snapshot.hpp"
#include "tutti/communicator.hpp"

namespace tutti::cli {

// The operations of one group, by rank. All ranks of a host share one steady clock.
using TracedGroup = std::vector<std::vector<RecordedOperation>>;

// The Trace Event Format: a process per group, a thread per rank. An operation whose end is known
// is a bar, any other an instant: when it was enqueued, captured, or begun and never ended.
std::string to_trace_json(const std::vector<TracedGroup>& groups);

// The last operations of this rank.
Result<std::vector<RecordedOperation>> recorded_operations(Communicator& communicator);

}  // namespace tutti::cli
