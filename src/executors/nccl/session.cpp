#include "executors/nccl/session.hpp"

#include <algorithm>
#include <chrono>
#include <thread>

#include "base/log.hpp"
#include "base/try.hpp"
#include "drivers/cuda.hpp"

namespace tutti {
namespace {

// For calls that only enqueue to return by themselves.
constexpr std::chrono::milliseconds kGrace{500};
// Between looks at what nobody announces.
constexpr std::chrono::milliseconds kPollPeriod{10};

}  // namespace

// What a registration's thread has to say to the one that waits for it.
struct NcclSession::Registration {
  std::mutex mutex;
  std::condition_variable ended;
  bool done = false;
  Status status;

  void finish(Status result) {
    const std::lock_guard lock(mutex);
    status = std::move(result);
    done = true;
    ended.notify_one();
  }
};

NcclSession::NcclSession(NcclDriver* nccl, CudaDriver* cuda) {
  state_->nccl = nccl;
  state_->cuda = cuda;
}

Status NcclSession::open(const NcclMember& member, Deadline deadline,
                         const NcclDriver::GiveUp& give_up) {
  TUTTI_ASSIGN(state_->device, state_->cuda->current_device());
  TUTTI_ASSIGN(state_->comm, state_->nccl->create(member, deadline, give_up));
  state_->mover = member.mover;
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

Status NcclSession::all_gather(const NcclAllGather& call) {
  return state_->nccl->all_gather(state_->comm, call);
}

Status NcclSession::reduce_scatter(const NcclReduction& call) {
  return state_->nccl->reduce_scatter(state_->comm, call);
}

Status NcclSession::reduce(const NcclReduction& call) {
  return state_->nccl->reduce(state_->comm, call);
}

Status NcclSession::broadcast(const NcclBroadcast& call) {
  return state_->nccl->broadcast(state_->comm, call);
}

Status NcclSession::reduce_together(const std::vector<NcclReduction>& calls) {
  TUTTI_TRY(state_->nccl->group_start());
  Status first;
  for (const NcclReduction& call : calls) {
    const Status one = state_->nccl->reduce(state_->comm, call);
    if (first.is_ok()) first = one;
  }
  const Status ended = state_->nccl->group_end();
  return first.is_ok() ? ended : first;
}

Status NcclSession::exchange(const NcclExchange& call) {
  return state_->nccl->exchange(state_->comm, call);
}

Status NcclSession::move_pieces(const NcclPieces& call) {
  return state_->nccl->move_pieces(state_->comm, call);
}

Status NcclSession::all_reduce(const NcclReduction& call) {
  return state_->nccl->all_reduce(state_->comm, call);
}

Status NcclSession::async_error() {
  const Call call = enter();
  return call ? state_->nccl->async_error(state_->comm) : Status::ok();
}

Status NcclSession::register_window(std::byte* base, std::size_t bytes, Deadline deadline,
                                    const NcclDriver::GiveUp& give_up) {
  Call call = enter();
  if (!call) return {StatusCode::kAborted, "NCCL's communicator has ended"};
  const auto registration = std::make_shared<Registration>();
  std::thread([registration, base, bytes, state = state_, call = std::move(call)]() mutable {
    Status status = state->cuda->set_device(state->device);
    if (status.is_ok()) {
      const auto window = state->nccl->register_window(state->comm, base, bytes);
      status = window.status();
      const std::lock_guard lock(state->mutex);
      if (window.is_ok()) state->windows.push_back({base, *window});
    }
    call.leave();
    registration->finish(std::move(status));
  }).detach();
  std::unique_lock lock(registration->mutex);
  while (!registration->done) {
    if (deadline.passed()) {
      return {StatusCode::kTimeout, "NCCL waited in vain for another rank to register its memory"};
    }
    if (give_up && give_up()) return {StatusCode::kAborted, "gave up waiting for other ranks"};
    registration->ended.wait_until(lock, deadline.next_look(kPollPeriod));
  }
  return registration->status;
}

Status NcclSession::deregister_window(const std::byte* base) {
  const Call call = enter();
  if (!call) return Status::ok();
  Window window{};
  {
    const std::lock_guard lock(state_->mutex);
    const auto found = std::find_if(state_->windows.begin(), state_->windows.end(),
                                    [base](const Window& each) { return each.base == base; });
    if (found == state_->windows.end()) return Status::ok();
    window = *found;
    state_->windows.erase(found);
  }
  return state_->nccl->deregister_window(state_->comm, window.handle);
}

void NcclSession::keep_windows_for(std::shared_ptr<const std::atomic<int>> graphs) {
  const std::lock_guard lock(state_->mutex);
  state_->graphs = std::move(graphs);
}

// Alone with the communicator, whose device may be in replays of graphs.
void NcclSession::deregister_all(State& state) {
  while (state.graphs != nullptr && *state.graphs > 0) std::this_thread::sleep_for(kPollPeriod);
  for (const Window& window : state.windows) {
    const Status status = state.nccl->deregister_window(state.comm, window.handle);
    if (!status.is_ok()) log(LogLevel::kInfo, "the end of a window: {}", status.message());
  }
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
  if (how == How::kAbort && !Deadline(kGrace).wait(state.changed, lock, none)) {
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
  // An abort does not touch them: what still runs may use them, and takes longer to end than that.
  if (status.is_ok() && how == How::kDestroy) deregister_all(state);
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
  return deadline.wait(state_->changed, lock, [this] { return state_->ended; });
}

}  // namespace tutti
