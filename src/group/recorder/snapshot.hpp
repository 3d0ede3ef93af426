// A page as values: the reading side of page.hpp. The bytes come from another process, or from a
// file that somebody sent: nothing in them is believed before it is checked.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/bytes.hpp"
#include "group/recorder/page.hpp"
#include "tutti/status.hpp"
#include "tutti/types.hpp"

namespace tutti {

std::string_view to_string(OperationState state);  // "running"

struct RecordedOperation {
  std::uint64_t sequence = 0;
  std::string row;
  std::uint64_t count = 0, bytes = 0;
  DataType dtype = DataType::kFloat32;
  std::optional<OpKind> op = OpKind::kSum;  // none: it computes nothing
  std::uint32_t signature = 0;
  OperationState state = OperationState::kRunning;
  std::uint64_t started_ns = 0, ended_ns = 0;  // steady clock; ended: 0 where it has not

  bool unfinished() const {
    return state == OperationState::kRunning || state == OperationState::kEnqueued;
  }
};

// Nothing where slot `slot` holds no whole operation that makes sense.
std::optional<RecordedOperation> parse_record(const PageRecord& record, std::size_t slot);

std::string_view op_text(const RecordedOperation& operation);  // "sum", "none"
// "all_reduce/two_shot #42 (1048576 x bf16, sum)", as in messages of errors.
std::string to_string(const RecordedOperation& operation);

struct RecordedFailure {
  StatusCode code = StatusCode::kInternal;
  std::string text;
  std::uint64_t at_ns = 0;
};

struct Snapshot {
  std::uint64_t group = 0;
  int rank = 0, ranks = 1;
  int ranks_here = 0;  // of the group, on its host; 0: unknown
  std::string host;
  std::uint64_t host_id = 0;
  std::int64_t process_id = 0;
  std::uint64_t process_start = 0;
  Backend backend = Backend::kHost;
  int device = -1;
  std::uint64_t opened_ns = 0;
  std::int64_t opened_unix_ns = 0;
  std::vector<RecordedOperation> operations;  // by sequence, at most kPageRecords
  std::vector<int> waits_for;                 // ranks that had not come when it was told last
  std::optional<RecordedFailure> failure;
  bool closed = false;        // the communicator was destroyed in order
  std::uint64_t last_ns = 0;  // the latest time in the page
  int unreadable = 0;         // records that were being written, or make no sense

  // What the rank is in: its first operation that has not ended, else the last one. Null: it has
  // begun none.
  const RecordedOperation* current() const;
};

// kInvalidArgument says why the bytes are no page, or one of another version. Records that make no
// sense are left out and counted. Texts come out printable, whatever was in them.
Result<Snapshot> parse_page(ByteView bytes);

}  // namespace tutti
