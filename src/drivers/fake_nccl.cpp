#include "drivers/fake_nccl.hpp"

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

Status FakeNccl::begin(const std::string& name, NcclComm comm, const NcclAllReduce& call) {
  const Member* member = member_of(comm);
  calls_.push_back({name, member == nullptr ? -1 : member->rank, call});
  if (const auto failure = failures_.find(name); failure != failures_.end()) {
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

Result<NcclComm> FakeNccl::create(const NcclId& id, int rank, int size, Deadline deadline,
                                  const GiveUp& give_up) {
  std::unique_lock lock(mutex_);
  TUTTI_TRY(begin("create"));
  calls_.back().rank = rank;
  if (rank < 0 || rank >= size) {
    return Status(StatusCode::kInvalidArgument, fmt::format("create: rank {} of {}", rank, size));
  }
  for (const Member& member : members_) {
    if (member.open && member.id.bytes == id.bytes && member.rank == rank) {
      return Status(StatusCode::kInvalidArgument,
                    fmt::format("create: rank {} is there already", rank));
    }
  }
  members_.push_back({id, rank, size});
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
  lock.unlock();
  while (hold_endings) pause();
  lock.lock();
  member.open = false;
  return Status::ok();
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

Status FakeNccl::all_reduce(NcclComm comm, const NcclAllReduce& call) {
  std::unique_lock lock(mutex_);
  TUTTI_TRY(begin("all_reduce", comm, call));
  if (comm == nullptr) {
    return Status(StatusCode::kInvalidArgument, "all_reduce: a null communicator");
  }
  Member& member = *member_of(comm);
  ++member.under_way;
  while (hold_calls && !member.interrupted && member.open) {
    lock.unlock();
    pause();
    lock.lock();
  }
  --member.under_way;
  if (member.interrupted || !member.open) return {StatusCode::kNccl, "all_reduce: ended"};
  enqueue(member, call.stream);
  return Status::ok();
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

void FakeNccl::fail_next(const std::string& name, Status failure) {
  const std::lock_guard lock(mutex_);
  failures_[name] = std::move(failure);
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
