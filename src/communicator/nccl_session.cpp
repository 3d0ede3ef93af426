#include "communicator/nccl_session.hpp"

#include <chrono>
#include <thread>

#include "base/log.hpp"
#include "base/try.hpp"
#include "drivers/cuda.hpp"

namespace tutti {
namespace {

// For calls that only enqueue to return by themselves.
constexpr std::chrono::milliseconds kGrace{500};

}  // namespace

NcclSession::NcclSession(NcclDriver* nccl, CudaDriver* cuda) {
  state_->nccl = nccl;
  state_->cuda = cuda;
}

Status NcclSession::open(const NcclId& id, int rank, int size, Deadline deadline,
                         const NcclDriver::GiveUp& give_up) {
  TUTTI_ASSIGN(state_->device, state_->cuda->current_device());
  TUTTI_ASSIGN(state_->comm, state_->nccl->create(id, rank, size, deadline, give_up));
  open_.store(true, std::memory_order_release);
  return Status::ok();
}

NcclSession::Call& NcclSession::Call::operator=(Call&& other) noexcept {
  leave();
  state_ = std::exchange(other.state_, nullptr);
  return *this;
}

void NcclSession::Call::leave() {
  if (state_ == nullptr) return;
  State& state = *std::exchange(state_, nullptr);
  const std::lock_guard lock(state.mutex);
  --state.calls;
  if (state.ending) state.changed.notify_all();
}

NcclSession::Call NcclSession::enter() {
  if (!is_open()) return {};
  const std::lock_guard lock(state_->mutex);
  if (state_->ending) return {};
  ++state_->calls;
  return Call(state_.get());
}

Status NcclSession::all_reduce(const NcclAllReduce& call) {
  return state_->nccl->all_reduce(state_->comm, call);
}

Status NcclSession::async_error() {
  const Call call = enter();
  return call ? state_->nccl->async_error(state_->comm) : Status::ok();
}

void NcclSession::end(How how) {
  if (!is_open()) return;
  {
    const std::lock_guard lock(state_->mutex);
    if (std::exchange(state_->ending, true)) return;
  }
  std::thread([state = state_, how] { run_end(*state, how); }).detach();
}

// A call that blocks in NCCL (it connects ranks, or the device takes no more work) has to be told
// to return. Where this NCCL cannot say so, only abort() can, with the call still under way.
void NcclSession::leave_calls(State& state, How how) {
  std::unique_lock lock(state.mutex);
  const auto none = [&] { return state.calls == 0; };
  if (how == How::kAbort && !state.changed.wait_for(lock, kGrace, none)) {
    lock.unlock();
    const Status interrupted = state.nccl->interrupt(state.comm);
    lock.lock();
    if (interrupted.code() == StatusCode::kUnsupported) return;
  }
  state.changed.wait(lock, none);
}

void NcclSession::run_end(State& state, How how) {
  leave_calls(state, how);
  Status status = state.cuda->set_device(state.device);
  if (status.is_ok()) {
    status = how == How::kAbort ? state.nccl->abort(state.comm) : state.nccl->destroy(state.comm);
  }
  if (!status.is_ok()) log(LogLevel::kInfo, "the end of NCCL's communicator: {}", status.message());
  {
    const std::lock_guard lock(state.mutex);
    state.ended = true;
  }
  state.changed.notify_all();
}

bool NcclSession::wait_ended(Deadline deadline) {
  std::unique_lock lock(state_->mutex);
  return state_->changed.wait_until(lock, deadline.end(), [this] { return state_->ended; });
}

}  // namespace tutti
