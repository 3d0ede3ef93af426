// The NCCL communicator of a group, from its set-up to its end. NCCL frees a communicator while
// other threads may be in calls with it, and takes as long for it as the device has work: so calls
// are counted, and the end comes on a thread of its own, which can be left behind.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <memory>
#include <mutex>
#include <utility>
#include <vector>

#include "base/deadline.hpp"
#include "drivers/nccl.hpp"

namespace tutti {

class CudaDriver;

class NcclSession {
  struct State;

 public:
  // The drivers outlive the process's other threads. Null where there are none: nothing can be
  // opened.
  NcclSession(NcclDriver* nccl, CudaDriver* cuda);

  // Once. Blocks as NcclDriver::create does; the calling thread's device is the communicator's.
  Status open(const NcclMember& member, Deadline deadline, const NcclDriver::GiveUp& give_up);
  bool is_open() const { return open_.load(std::memory_order_acquire); }  // stays, once it is

  NcclMover mover() const { return state_->mover; }  // of what is open

  // While one is held no communicator is freed. False: there is none, or it is about to end. Does
  // not outlive the session.
  class Call {
   public:
    Call() = default;
    explicit Call(State* state) : state_(state) {}
    Call(Call&& other) noexcept : state_(std::exchange(other.state_, nullptr)) {}
    Call& operator=(Call&& other) noexcept;
    ~Call() { leave(); }
    explicit operator bool() const { return state_ != nullptr; }
    void leave();

   private:
    State* state_ = nullptr;
  };
  Call enter();

  // Within a Call.
  Status all_reduce(const NcclReduction& call);
  Status all_gather(const NcclAllGather& call);
  Status reduce_scatter(const NcclReduction& call);
  Status reduce(const NcclReduction& call);
  Status reduce_together(const std::vector<NcclReduction>& calls);  // in one group
  Status broadcast(const NcclBroadcast& call);
  Status exchange(const NcclExchange& call);
  Status move_pieces(const NcclPieces& call);

  // Makes `bytes` from `base` on a window, on a thread that can be left behind: NCCL waits without
  // an end for a rank that has failed. kTimeout or kAborted says so; no further window can be made
  // then. The window ends with deregister_window(), which is local and does nothing where there is
  // none, or with a communicator that is destroyed, ahead of it.
  Status register_window(std::byte* base, std::size_t bytes, Deadline deadline,
                         const NcclDriver::GiveUp& give_up);
  Status deregister_window(const std::byte* base);
  // Windows stay for as long as `graphs` holds more than 0: graphs may still replay what uses them.
  void keep_windows_for(std::shared_ptr<const std::atomic<int>> graphs);

  // What NCCL has noticed since. Never blocks.
  Status async_error();

  // Destroys or aborts the communicator; the first to say so decides. From any thread, never
  // blocks.
  enum class How : std::uint8_t { kDestroy, kAbort };
  void end(How how);
  // False where it has not ended by then, and is left behind.
  bool wait_ended(Deadline deadline);

 private:
  struct Window {
    const std::byte* base;
    NcclWindow handle;
  };
  struct Registration;
  struct State {
    NcclDriver* nccl = nullptr;
    CudaDriver* cuda = nullptr;
    int device = -1;
    NcclComm comm = nullptr;  // both written before anybody else knows of them
    NcclMover mover = NcclMover::kKernels;
    std::mutex mutex;
    std::condition_variable changed;
    int calls = 0;  // under way
    bool ending = false, ended = false;
    std::vector<Window> windows;  // in the order of their registration
    std::shared_ptr<const std::atomic<int>> graphs;
  };
  static void deregister_all(State& state);
  static void leave_calls(State& state, How how);
  static void run_end(State& state, How how);

  const std::shared_ptr<State> state_ = std::make_shared<State>();
  std::atomic<bool> open_ = false;
};

}  // namespace tutti
