#include "drivers/fake_nccl.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <utility>

#include "base/try.hpp"

namespace tutti {

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

Result<NcclComm> FakeNccl::create(const NcclId& id, int rank, int size, Deadline /*deadline*/) {
  const std::lock_guard lock(mutex_);
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
  members_.push_back({id, rank});
  return NcclComm{&members_.back()};
}

Status FakeNccl::close(const std::string& name, NcclComm comm) {
  const std::lock_guard lock(mutex_);
  TUTTI_TRY(begin(name, comm));
  if (comm == nullptr) {
    return Status(StatusCode::kInvalidArgument, name + ": a null communicator");
  }
  member_of(comm)->open = false;
  return Status::ok();
}

Status FakeNccl::destroy(NcclComm comm) { return close("destroy", comm); }
Status FakeNccl::abort(NcclComm comm) { return close("abort", comm); }

Status FakeNccl::async_error(NcclComm comm) {
  const std::lock_guard lock(mutex_);
  return begin("async_error", comm);
}

Status FakeNccl::all_reduce(NcclComm comm, const NcclAllReduce& call) {
  const std::lock_guard lock(mutex_);
  TUTTI_TRY(begin("all_reduce", comm, call));
  if (comm != nullptr) return Status::ok();
  return Status(StatusCode::kInvalidArgument, "all_reduce: a null communicator");
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
