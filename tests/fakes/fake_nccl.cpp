#include "fakes/fake_nccl.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <thread>
#include <utility>

#include "base/try.hpp"

namespace tutti {
namespace {

void pause() { std::this_thread::sleep_for(std::chrono::milliseconds(1)); }

}  // namespace

FakeNccl::Member* FakeNccl::member_of(NcclComm comm) {
  const auto found = std::find_if(members_.begin(), members_.end(), [comm](const Member& member) {
    return &member == comm && member.open;
  });
  return found == members_.end() ? nullptr : &*found;
}

Status FakeNccl::begin(const std::string& name, NcclComm comm, const NcclReduction& call,
                       int rank) {
  const Member* member = member_of(comm);
  if (member != nullptr) rank = member->rank;
  calls_.push_back({name,
                    rank,
                    call,
                    {},
                    {},
                    {},
                    {},
                    member != nullptr ? member->mover : NcclMover::kKernels,
                    member != nullptr && in_windows(*member, call.input, call.output)});
  for (const int whose : {rank, -1}) {
    const auto failure = failures_.find({name, whose});
    if (failure == failures_.end()) continue;
    Status status = std::move(failure->second);
    failures_.erase(failure);
    return status;
  }
  if (comm != nullptr && member == nullptr) {
    return Status(StatusCode::kInvalidArgument, name + ": no open communicator");
  }
  return Status::ok();
}

Result<NcclId> FakeNccl::unique_id() {
  const std::lock_guard lock(mutex_);
  TUTTI_TRY(begin("unique_id"));
  NcclId id;
  std::memcpy(id.bytes.data(), &next_, sizeof next_);
  ++next_;
  return id;
}

Result<NcclComm> FakeNccl::create(const NcclMember& joining, Deadline deadline,
                                  const GiveUp& give_up) {
  const auto& [id, rank, size, mover] = joining;
  std::unique_lock lock(mutex_);
  TUTTI_TRY(begin("create", nullptr, {}, rank));
  if (rank < 0 || rank >= size) {
    return Status(StatusCode::kInvalidArgument, fmt::format("create: rank {} of {}", rank, size));
  }
  for (const Member& member : members_) {
    if (member.open && member.id.bytes == id.bytes && member.rank == rank) {
      return Status(StatusCode::kInvalidArgument,
                    fmt::format("create: rank {} is there already", rank));
    }
  }
  calls_.back().mover = mover;
  if (mover == NcclMover::kCopyEngines && version_code < 22800) {
    return Status(StatusCode::kUnsupported, "create: too old for copy engines");
  }
  members_.push_back(Member{joining});
  Member& member = members_.back();
  while (hold_create) {
    lock.unlock();
    const bool late = deadline.passed(), unwanted = give_up && give_up();
    pause();
    lock.lock();
    if (!late && !unwanted) continue;
    member.open = false;
    return Status(late ? StatusCode::kTimeout : StatusCode::kAborted,
                  fmt::format("create: rank {} is alone", rank));
  }
  return NcclComm{&member};
}

void FakeNccl::end_operations(Member& member) {
  for (const Gate& gate : member.gates) *gate = true;
}

// Operation k of a rank ends when every rank has called its k-th.
void FakeNccl::enqueue(Member& member, Stream stream) {
  if (!on_stream) return;
  const std::size_t k = member.gates.size();
  member.gates.push_back(std::make_shared<std::atomic<bool>>(member.interrupted));
  on_stream(stream, member.gates.back());
  std::vector<Gate> all;
  for (const Member& other : members_) {
    if (other.id.bytes == member.id.bytes && k < other.gates.size()) all.push_back(other.gates[k]);
  }
  if (static_cast<int>(all.size()) < member.size) return;
  for (const Gate& gate : all) *gate = true;
}

Status FakeNccl::close(const std::string& name, NcclComm comm) {
  std::unique_lock lock(mutex_);
  TUTTI_TRY(begin(name, comm));
  if (comm == nullptr) {
    return Status(StatusCode::kInvalidArgument, name + ": a null communicator");
  }
  Member& member = *member_of(comm);
  if (member.under_way > 0) ++ended_in_use_;
  if (name == "abort") end_operations(member);
  if (name == "destroy") windows_left_behind_ += static_cast<int>(member.windows.size());
  lock.unlock();
  while (hold_endings) pause();
  lock.lock();
  member.open = false;
  return Status::ok();
}

bool FakeNccl::in_windows(const Member& member, const void* input, const void* output) {
  const auto holds = [&](const void* address) {
    const auto* at = static_cast<const std::byte*>(address);
    return std::any_of(member.windows.begin(), member.windows.end(), [at](const Window& window) {
      return window.base <= at && at < window.base + window.bytes;
    });
  };
  return holds(input) && holds(output);
}

bool FakeNccl::all_register(const Member& member, int count) const {
  const auto come = std::count_if(members_.begin(), members_.end(), [&](const Member& other) {
    return other.id.bytes == member.id.bytes && other.registrations >= count;
  });
  return come == member.size;
}

Result<NcclWindow> FakeNccl::register_window(NcclComm comm, std::byte* base, std::size_t bytes) {
  std::unique_lock lock(mutex_);
  TUTTI_TRY(begin("register_window", comm));
  if (comm == nullptr) {
    return Status(StatusCode::kInvalidArgument, "register_window: a null communicator");
  }
  Member& member = *member_of(comm);
  const int mine = ++member.registrations;
  ++member.under_way;
  while (!all_register(member, mine) && !member.interrupted && member.open) {
    lock.unlock();
    pause();
    lock.lock();
  }
  --member.under_way;
  if (member.interrupted || !member.open) {
    return Status(StatusCode::kNccl, "register_window: ended");
  }
  handles_.push_back(0);
  member.windows.push_back({&handles_.back(), base, bytes});
  return member.windows.back().handle;
}

Status FakeNccl::deregister_window(NcclComm comm, NcclWindow window) {
  const std::lock_guard lock(mutex_);
  TUTTI_TRY(begin("deregister_window", comm));
  Member* const member = member_of(comm);
  if (member == nullptr) {
    return {StatusCode::kInvalidArgument, "deregister_window: a null communicator"};
  }
  const auto found = std::find_if(member->windows.begin(), member->windows.end(),
                                  [window](const Window& each) { return each.handle == window; });
  if (found == member->windows.end()) {
    return {StatusCode::kInvalidArgument, "deregister_window: no such window"};
  }
  if (on_deregister) on_deregister(found->base);
  member->windows.erase(found);
  return Status::ok();
}

int FakeNccl::open_windows() const {
  const std::lock_guard lock(mutex_);
  int windows = 0;
  for (const Member& member : members_) {
    if (member.open) windows += static_cast<int>(member.windows.size());
  }
  return windows;
}

int FakeNccl::windows_left_behind() const {
  const std::lock_guard lock(mutex_);
  return windows_left_behind_;
}

Status FakeNccl::interrupt(NcclComm comm) {
  const std::lock_guard lock(mutex_);
  TUTTI_TRY(begin("interrupt", comm));
  if (!can_interrupt) return {StatusCode::kUnsupported, "interrupt: too old"};
  Member& member = *member_of(comm);
  member.interrupted = true;
  end_operations(member);
  return Status::ok();
}

int FakeNccl::ended_in_use() const {
  const std::lock_guard lock(mutex_);
  return ended_in_use_;
}

Status FakeNccl::destroy(NcclComm comm) { return close("destroy", comm); }
Status FakeNccl::abort(NcclComm comm) { return close("abort", comm); }

Status FakeNccl::async_error(NcclComm comm) {
  const std::lock_guard lock(mutex_);
  return begin("async_error", comm);
}

Status FakeNccl::run(std::unique_lock<std::mutex>& lock, const std::string& name, NcclComm comm,
                     Stream stream) {
  if (comm == nullptr) {
    return Status(StatusCode::kInvalidArgument, name + ": a null communicator");
  }
  Member& member = *member_of(comm);
  ++member.under_way;
  while (hold_calls && !member.interrupted && member.open) {
    lock.unlock();
    pause();
    lock.lock();
  }
  --member.under_way;
  if (member.interrupted || !member.open) return {StatusCode::kNccl, name + ": ended"};
  enqueue(member, stream);
  return Status::ok();
}

Status FakeNccl::all_reduce(NcclComm comm, const NcclReduction& call) {
  std::unique_lock lock(mutex_);
  TUTTI_TRY(begin("all_reduce", comm, call));
  return run(lock, "all_reduce", comm, call.stream);
}

Status FakeNccl::all_gather(NcclComm comm, const NcclAllGather& call) {
  std::unique_lock lock(mutex_);
  const Status begun = begin("all_gather", comm);
  calls_.back().all_gather = call;
  const Member* member = member_of(comm);
  calls_.back().in_windows = member != nullptr && in_windows(*member, call.input, call.output);
  TUTTI_TRY(begun);
  return run(lock, "all_gather", comm, call.stream);
}

Status FakeNccl::reduce_scatter(NcclComm comm, const NcclReduction& call) {
  std::unique_lock lock(mutex_);
  TUTTI_TRY(begin("reduce_scatter", comm, call));
  return run(lock, "reduce_scatter", comm, call.stream);
}

Status FakeNccl::reduce(NcclComm comm, const NcclReduction& call) {
  std::unique_lock lock(mutex_);
  TUTTI_TRY(begin("reduce", comm, call));
  return run(lock, "reduce", comm, call.stream);
}

Status FakeNccl::broadcast(NcclComm comm, const NcclBroadcast& call) {
  std::unique_lock lock(mutex_);
  const Status begun = begin("broadcast", comm);
  calls_.back().broadcast = call;
  TUTTI_TRY(begun);
  return run(lock, "broadcast", comm, call.stream);
}

Status FakeNccl::exchange(NcclComm comm, const NcclExchange& call) {
  std::unique_lock lock(mutex_);
  const Status begun = begin("exchange", comm);
  calls_.back().exchange = call;
  TUTTI_TRY(begun);
  return run(lock, "exchange", comm, call.stream);
}

Status FakeNccl::move_pieces(NcclComm comm, const NcclPieces& call) {
  std::unique_lock lock(mutex_);
  const Status begun = begin("move_pieces", comm);
  calls_.back().pieces = call;
  const Member* member = member_of(comm);
  calls_.back().in_windows = member != nullptr && in_windows(*member, call.input, call.output);
  TUTTI_TRY(begun);
  return run(lock, "move_pieces", comm, call.stream);
}

Status FakeNccl::group_start() {
  const std::lock_guard lock(mutex_);
  TUTTI_TRY(begin("group_start"));
  ++group_depth_;
  return Status::ok();
}

Status FakeNccl::group_end() {
  const std::lock_guard lock(mutex_);
  TUTTI_TRY(begin("group_end"));
  if (group_depth_ == 0) {
    return Status(StatusCode::kInvalidArgument, "group_end without group_start");
  }
  --group_depth_;
  return Status::ok();
}

void FakeNccl::fail_next(const std::string& name, Status failure, int rank) {
  const std::lock_guard lock(mutex_);
  failures_[{name, rank}] = std::move(failure);
}

std::vector<FakeNccl::Call> FakeNccl::calls() const {
  const std::lock_guard lock(mutex_);
  return calls_;
}

int FakeNccl::open_communicators() const {
  const std::lock_guard lock(mutex_);
  return static_cast<int>(std::count_if(members_.begin(), members_.end(),
                                        [](const Member& member) { return member.open; }));
}

int FakeNccl::group_depth() const {
  const std::lock_guard lock(mutex_);
  return group_depth_;
}

}  // namespace tutti
