#include "group/recorder/snapshot.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "base/names.hpp"
#include "base/try.hpp"

namespace tutti {
namespace {

constexpr Name<OperationState> kStates[] = {{OperationState::kEnqueued, "enqueued"},
                                            {OperationState::kRunning, "running"},
                                            {OperationState::kDone, "done"},
                                            {OperationState::kFailed, "failed"},
                                            {OperationState::kUntracked, "untracked"}};
constexpr std::int32_t kMostRanks = 1 << 16;

Status no_page(std::string why) {
  return {StatusCode::kInvalidArgument, "no page of a flight recorder: " + std::move(why)};
}

// Up to the first zero; what a terminal could take for a command becomes a question mark.
template <std::size_t kRoom>
std::string text_of(const std::array<char, kRoom>& field) {
  std::string text(field.begin(), std::find(field.begin(), field.end(), '\0'));
  for (char& c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (byte < 0x20 || byte >= 0x7f) c = '?';
  }
  return text;
}

Status check(const PageHeader& header, std::size_t bytes) {
  if (header.magic != kPageMagic) return no_page("it does not begin like one");
  if (header.page_version != kPageVersion) {
    return no_page(
        fmt::format("its version is {}, this command reads {}", header.page_version, kPageVersion));
  }
  if (header.header_bytes != sizeof(PageHeader) || header.record_bytes != sizeof(PageRecord) ||
      header.records != kPageRecords || bytes != kPageBytes) {
    return no_page(fmt::format("{} bytes with {} records of {} bytes", bytes, header.records,
                               header.record_bytes));
  }
  if (header.ranks < 1 || header.ranks > kMostRanks || header.rank < 0 ||
      header.rank >= header.ranks) {
    return no_page(fmt::format("rank {} of {}", header.rank, header.ranks));
  }
  if (header.backend != static_cast<std::int32_t>(Backend::kHost) &&
      header.backend != static_cast<std::int32_t>(Backend::kCuda)) {
    return no_page(fmt::format("backend {}", header.backend));
  }
  return Status::ok();
}

void read_operations(ByteView bytes, const PageHeader& header, Snapshot& snapshot) {
  for (std::size_t slot = 0; slot < kPageRecords; ++slot) {
    const std::size_t at = sizeof(PageHeader) + slot * sizeof(PageRecord);
    const auto record = from_bytes<PageRecord>(bytes.subspan(at, sizeof(PageRecord)));
    if (record.version == 0) continue;
    auto operation = parse_record(record, slot);
    if (!operation || operation->sequence == 0) {
      ++snapshot.unreadable;
      continue;
    }
    if (operation->state == OperationState::kEnqueued &&
        operation->sequence <= header.done_through) {
      operation->state = OperationState::kDone;
    }
    snapshot.last_ns = std::max({snapshot.last_ns, operation->started_ns, operation->ended_ns});
    snapshot.operations.push_back(std::move(*operation));
  }
  std::sort(snapshot.operations.begin(), snapshot.operations.end(),
            [](const auto& a, const auto& b) { return a.sequence < b.sequence; });
}

StatusCode code_of(std::uint32_t value) {
  const bool known = value > 0 && value <= static_cast<std::uint32_t>(StatusCode::kInternal);
  return known ? static_cast<StatusCode>(value) : StatusCode::kInternal;
}

}  // namespace

std::optional<RecordedOperation> parse_record(const PageRecord& record, std::size_t slot) {
  const auto known = [](const auto& all, std::uint32_t value) {
    return std::any_of(std::begin(all), std::end(all),
                       [&](auto each) { return static_cast<std::uint32_t>(each) == value; });
  };
  const auto state = static_cast<OperationState>(record.state);
  if (record.version % 2 != 0 || record.sequence % kPageRecords != slot ||
      !known(kAllDataTypes, record.dtype) ||
      (record.op != kPageNoOp && !known(kAllOps, record.op)) ||
      name_of<OperationState>(kStates, state) == "?") {
    return std::nullopt;
  }
  std::optional<OpKind> op;
  if (record.op != kPageNoOp) op = static_cast<OpKind>(record.op);
  return RecordedOperation{.sequence = record.sequence,
                           .row = text_of(record.row),
                           .count = record.count,
                           .bytes = record.bytes,
                           .dtype = static_cast<DataType>(record.dtype),
                           .op = op,
                           .signature = record.signature,
                           .state = state,
                           .started_ns = record.started_ns,
                           .ended_ns = record.ended_ns};
}

std::string_view to_string(OperationState state) { return name_of<OperationState>(kStates, state); }

std::string_view op_text(const RecordedOperation& operation) {
  return operation.op ? to_string(*operation.op) : "none";
}

std::string to_string(const RecordedOperation& operation) {
  return fmt::format("{} #{} ({} x {}{}{})", operation.row, operation.sequence, operation.count,
                     to_string(operation.dtype), operation.op ? ", " : "",
                     operation.op ? to_string(*operation.op) : "");
}

const RecordedOperation* Snapshot::current() const {
  for (const RecordedOperation& operation : operations) {
    if (operation.unfinished()) return &operation;
  }
  return operations.empty() ? nullptr : &operations.back();
}

Result<Snapshot> parse_page(ByteView bytes) {
  if (bytes.size() < sizeof(PageHeader)) return no_page(fmt::format("{} bytes", bytes.size()));
  const auto header = from_bytes<PageHeader>(bytes.first(sizeof(PageHeader)));
  TUTTI_TRY(check(header, bytes.size()));
  Snapshot snapshot;
  snapshot.group = header.group;
  snapshot.rank = header.rank;
  snapshot.ranks = header.ranks;
  // What cannot be is as good as unknown.
  if (header.ranks_here <= static_cast<std::uint32_t>(header.ranks)) {
    snapshot.ranks_here = static_cast<int>(header.ranks_here);
  }
  snapshot.host = text_of(header.host);
  snapshot.host_id = header.host_id;
  snapshot.process_id = header.process_id;
  snapshot.process_start = header.process_start;
  snapshot.backend = static_cast<Backend>(header.backend);
  snapshot.device = header.device;
  snapshot.opened_ns = header.opened_ns;
  snapshot.opened_unix_ns = header.opened_unix_ns;
  snapshot.closed = header.closed_ns != 0;
  snapshot.last_ns =
      std::max({header.opened_ns, header.done_ns, header.failed_ns, header.closed_ns});
  for (int rank = 0; rank < std::min(header.ranks, 64); ++rank) {
    if ((header.waits_for >> rank & 1) != 0) snapshot.waits_for.push_back(rank);
  }
  if (header.failed_ns != 0) {
    snapshot.failure = RecordedFailure{.code = code_of(header.failed_code),
                                       .text = text_of(header.failed_text),
                                       .at_ns = header.failed_ns};
  }
  read_operations(bytes, header, snapshot);
  return snapshot;
}

}  // namespace tutti
