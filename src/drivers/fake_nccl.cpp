#include "drivers/fake_nccl.hpp"

#include <fmt/format.h>

#include <cstring>
#include <utility>

#include "base/try.hpp"

namespace tutti {

Status FakeNccl::begin(const std::string& name, NcclComm comm, const NcclAllReduce& call) {
  const auto member = members_.find(comm);
  calls_.push_back({name, member == members_.end() ? -1 : member->second.rank, call});
  if (const auto failure = failures_.find(name); failure != failures_.end()) {
    Status status = std::move(failure->second);
    failures_.erase(failure);
    return status;
  }
  if (comm != nullptr && member == members_.end()) {
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
  for (const auto& [comm, member] : members_) {
    if (member.id.bytes == id.bytes && member.rank == rank) {
      return Status(StatusCode::kInvalidArgument,
                    fmt::format("create: rank {} is there already", rank));
    }
  }
  const auto comm = reinterpret_cast<NcclComm>(static_cast<std::uintptr_t>(next_++));
  members_[comm] = {id, rank};
  return comm;
}

Status FakeNccl::close(const std::string& name, NcclComm comm) {
  const std::lock_guard lock(mutex_);
  TUTTI_TRY(begin(name, comm));
  if (members_.erase(comm) == 1) return Status::ok();
  return Status(StatusCode::kInvalidArgument, name + ": a null communicator");
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
  return static_cast<int>(members_.size());
}

int FakeNccl::group_depth() const {
  const std::lock_guard lock(mutex_);
  return group_depth_;
}

}  // namespace tutti
