#include "executors/nccl/windows.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <span>
#include <string_view>

#include "base/bytes.hpp"
#include "base/log.hpp"
#include "base/try.hpp"
#include "base/units.hpp"

namespace tutti {
namespace {

// NCCL's side of a step takes at most so long, and half of the communicator's timeout: a rank whose
// step has failed waits for the others' answers while these wait for it in NCCL.
constexpr std::chrono::milliseconds kPatience{60000};

Deadline limit_of(const NcclWindows::Group& group) {
  return Deadline(std::min(group.timeout / 2, kPatience));
}

// Asked before NCCL is: there, a rank that fails leaves the others waiting.
Status check_window_memory(const std::byte* base, std::size_t bytes) {
  if (reinterpret_cast<std::uintptr_t>(base) % kNcclWindowAlignment == 0 &&
      bytes % kNcclWindowAlignment == 0) {
    return Status::ok();
  }
  return {StatusCode::kUnsupported,
          fmt::format("NCCL's windows begin and end at multiples of {}, and an allocation of {} "
                      "bytes does not",
                      format_bytes(kNcclWindowAlignment), bytes)};
}

// How a step went, ahead of its text: nothing where it went well.
constexpr std::byte kCause{1}, kWaited{2};

// The rank to blame, if any: one that failed by itself rather than one that waited for it.
std::optional<std::string> blame(std::span<const Bytes> answers, const RankNames& names) {
  std::optional<std::string> found;
  bool found_cause = false;
  for (std::size_t r = 0; r < answers.size(); ++r) {
    if (answers[r].empty()) continue;
    const bool cause = answers[r].front() == kCause;
    if (found && (found_cause || !cause)) continue;
    found_cause = cause;
    const auto* text = reinterpret_cast<const char*>(answers[r].data());
    found = fmt::format("{}: {}", names.of(r), std::string_view(text, answers[r].size()).substr(1));
  }
  return found;
}

}  // namespace

std::string_view NcclWindows::why_none() const {
  return given_up() ? std::string_view(why_none_) : std::string_view();
}

Result<bool> NcclWindows::all_did(const Group& group, const Status& mine) {
  Bytes text;
  if (!mine.is_ok()) {
    const bool waited = mine.code() == StatusCode::kTimeout || mine.code() == StatusCode::kAborted;
    text = to_bytes(view_of(mine.to_string()));
    text.insert(text.begin(), waited ? kWaited : kCause);
  }
  TUTTI_ASSIGN(const auto answers, group.bootstrap.all_gather(text, Deadline(group.timeout)));
  const auto why = blame(answers, group.bootstrap.names());
  if (!why) return true;
  const bool copies = mover_ == NcclMover::kCopyEngines;
  log_once(LogLevel::kWarn,
           fmt::format("{} is left out: {}", copies ? "nccl_copy_engine" : "nccl_window", *why));
  if (given_up()) return false;
  why_none_ = *why;
  given_up_.store(true, std::memory_order_release);  // who sees it asks for the text
  return false;
}

Status NcclWindows::open(const Group& group) {
  if (settled()) return Status::ok();
  Status mine;
  for (const Block& block : blocks_) {
    if (mine.is_ok()) mine = check_window_memory(block.local, block.bytes);
  }
  NcclId id{};
  if (mine.is_ok() && group.bootstrap.rank() == 0) {
    auto made = nccl_->unique_id();
    if (made.is_ok()) id = *made;
    mine = made.status();
  }
  TUTTI_ASSIGN(const bool all_ready, all_did(group, mine));
  if (!all_ready) return Status::ok();
  TUTTI_ASSIGN(const auto ids, group.bootstrap.all_gather(view_of(id), Deadline(group.timeout)));
  if (ids.front().size() != sizeof(NcclId)) {
    return {StatusCode::kMismatch,
            fmt::format("{} runs another version of tutti", group.bootstrap.names().of(0))};
  }
  const Deadline deadline = limit_of(group);
  const NcclMember member{.id = from_bytes<NcclId>(ids.front()),
                          .rank = group.bootstrap.rank(),
                          .size = group.bootstrap.size(),
                          .mover = mover_};
  mine = session_.open(member, deadline, group.give_up);
  if (mine.is_ok()) mine = register_blocks(group, deadline);
  TUTTI_ASSIGN(const bool all_made, all_did(group, mine));
  if (!all_made) session_.end(NcclSession::How::kAbort);  // nothing has run on it
  return Status::ok();
}

Status NcclWindows::register_blocks(const Group& group, Deadline deadline) {
  for (Block& block : blocks_) {
    if (block.registered) continue;
    TUTTI_TRY(session_.register_window(block.local, block.bytes, deadline, group.give_up));
    block.registered = true;
  }
  return Status::ok();
}

Status NcclWindows::hold(const SymmetricSegment& segment, const Group& group) {
  const auto known = std::find_if(blocks_.begin(), blocks_.end(),
                                  [&](const Block& block) { return block.local == segment.local; });
  if (known != blocks_.end()) return Status::ok();  // from the pool, with its window
  blocks_.push_back({segment.local, segment.capacity});
  if (!are_open()) return Status::ok();
  TUTTI_ASSIGN(const bool all_ready,
               all_did(group, check_window_memory(segment.local, segment.capacity)));
  if (!all_ready) return Status::ok();
  return all_did(group, register_blocks(group, limit_of(group))).status();
}

void NcclWindows::let_go(const std::byte* local) {
  if (std::erase_if(blocks_, [local](const Block& block) { return block.local == local; }) == 0) {
    return;
  }
  const Status ended = session_.deregister_window(local);
  if (!ended.is_ok()) log(LogLevel::kWarn, "the end of a window: {}", ended.to_string());
}

void NcclWindows::end(NcclSession::How how) {
  session_.end(given_up() ? NcclSession::How::kAbort : how);
}

bool NcclWindows::wait_ended(Deadline deadline) {
  return !session_.is_open() || session_.wait_ended(deadline);
}

}  // namespace tutti
