// Decides which thread calls a NetworkEngine, which knows no threads. A thread that waits for an
// operation calls it itself, so that no other thread has to be woken. Otherwise a thread that
// belongs to this object does, since other ranks' operations need this rank's sends and signs of
// life. It sleeps while nothing happens.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <string>

#include "base/deadline.hpp"
#include "bootstrap/worker.hpp"
#include "executors/network/engine.hpp"
#include "executors/network/staged_operations.hpp"

namespace tutti {

class NetworkProgress {
 public:
  struct Setup {
    std::unique_ptr<Wire> wire;
    NetworkEngine::Group group;
    bool may_spin = false;                               // a core for each rank of this host
    std::unique_ptr<StagedOperations> staged = nullptr;  // of ranks on GPUs
    bool direct = false;                                 // the wire moves data of `staged`
    // The first failure of the engine, told once, by a thread that holds nothing; and for which
    // rank it waited, or -1.
    std::function<void(const Status&, int missing)> failed;
  };
  // kResourceExhausted: no thread.
  static Result<std::unique_ptr<NetworkProgress>> start(Setup setup);
  ~NetworkProgress();

  // From any thread, as all that follows. The deadline is `timeout` from now.
  std::uint64_t add(NetworkOperation operation, std::chrono::nanoseconds timeout);
  // All operations up to this ticket have ended.
  std::uint64_t ended_through() const { return ended_through_.load(std::memory_order_acquire); }
  // Drives the engine until all up to this ticket have ended, or were cancelled.
  void await(std::uint64_t ticket);
  // Null where ranks are on the host.
  StagedOperations* staged() const { return staged_.get(); }
  // The staged operations have got another one.
  void wake();
  // All operations end soon, without a result. Does not block.
  void cancel();
  // Once all operations have ended, and as the last call: waits until what this rank has sent is
  // with those who need it, at most so long.
  void say_goodbye(std::chrono::nanoseconds limit);
  // What the oldest operation waits for, or waited for when all were ended.
  std::string position();
  // In a child that was forked, where its thread is not.
  bool lost_in_fork() const { return thread_.lost_in_fork(); }

 private:
  explicit NetworkProgress(Setup setup);
  using Lock = std::unique_lock<std::mutex>;
  // Takes the engine from whoever sleeps with it.
  template <class F>
  auto with_engine(const F& f);
  void run();
  void stop();
  void serve(Lock& lock);
  bool advance(Lock& lock);  // whether anything happened
  bool polls() const { return staged_ != nullptr && !over_ && staged_->is_waiting(); }
  // With this rank's GPU as the current device, which a wire that reaches it needs.
  template <class F>
  auto on_device(const F& f);
  void rest();
  void fail(Lock& lock, const Status& cause);
  void end_all();
  void sleep_with_engine(Lock& lock, Wire::Clock::time_point until);
  void let_others_in(Lock& lock) const;
  void stay_away(Lock& lock);
  bool may_go_on_spinning(Wire::Clock::time_point idle_since);
  Wire::Clock::time_point sleep_limit() const;
  Wire::Clock::duration still() const { return Wire::Clock::now() - active_; }

  const std::unique_ptr<Wire> wire_;
  const bool may_spin_;
  const std::function<void(const Status&, int missing)> failed_;
  const std::unique_ptr<StagedOperations> staged_;
  const bool direct_;
  std::mutex mutex_;
  std::condition_variable changed_;
  NetworkEngine engine_;
  std::uint64_t last_ = 0;
  Wire::Clock::time_point active_;  // when something happened last
  bool has_failed_ = false, over_ = false;
  std::string last_position_;
  Wire::Clock::time_point last_look_ = {}, crowded_until_ = {};  // of callers that spin
  Wire::Clock::duration spin_ = {};                              // of a caller that waits
  std::uint64_t seen_calls_ = 0;                                 // the thread's own
  std::atomic<Wire::Clock::rep> last_call_ = 0;                  // when it was over
  std::atomic<int> callers_ = 0;
  std::atomic<std::uint64_t> calls_ = 0;
  std::atomic<bool> asleep_ = false, cancelled_ = false, ending_ = false;
  std::atomic<std::uint64_t> ended_through_ = 0;
  Worker thread_;
};

}  // namespace tutti
