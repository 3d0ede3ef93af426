#include "executors/network/progress.hpp"

#include <algorithm>
#include <thread>
#include <utility>

#include "base/guard.hpp"
#include "base/try.hpp"

namespace tutti {
namespace {

using std::chrono::microseconds;
using Clock = NetworkEngine::Clock;

// The thread stays away for so long after a caller: it is likely to come again.
constexpr microseconds kAfterCaller{500};
// A caller that has a core spins for so long before it sleeps.
constexpr microseconds kSpin{2000};

// In time that this process runs (base/deadline.hpp), as the engine takes it.
Clock::time_point running_now() {
  return Clock::time_point(RunningClock::now().time_since_epoch());
}

}  // namespace

Result<std::unique_ptr<NetworkProgress>> NetworkProgress::start(Setup setup) {
  std::unique_ptr<NetworkProgress> made(new NetworkProgress(std::move(setup)));
  TUTTI_TRY(made->thread_.start([progress = made.get()] { progress->run(); }));
  return made;
}

NetworkProgress::NetworkProgress(Setup setup)
    : wire_(std::move(setup.wire)),
      may_spin_(setup.may_spin),
      failed_(std::move(setup.failed)),
      engine_(std::move(setup.group), *wire_) {}

NetworkProgress::~NetworkProgress() {
  cancelled_ = true;
  {
    wire_->wake();
    const std::lock_guard lock(mutex_);
    ending_ = true;
  }
  changed_.notify_all();
  thread_.join();
  end_all();
}

template <class F>
auto NetworkProgress::with_engine(const F& f) {
  ++callers_;
  if (asleep_) wire_->wake();
  auto answer = [&] {
    std::unique_lock lock(mutex_);
    return f(lock);
  }();
  --callers_;
  changed_.notify_all();
  return answer;
}

std::uint64_t NetworkProgress::add(NetworkOperation operation, std::chrono::nanoseconds timeout) {
  return with_engine([&](auto&) {
    operation.deadline = running_now() + timeout;
    last_ = engine_.start(std::move(operation));
    if (over_) {
      ended_through_ = last_;
    } else {
      advance();
    }
    return last_;
  });
}

void NetworkProgress::await(std::uint64_t ticket) {
  with_engine([&](auto& lock) {
    Clock::time_point idle_since = Clock::now();
    while (ended_through() < ticket) {
      if (cancelled_) {
        end_all();
      } else if (advance()) {
        idle_since = Clock::now();
      } else if (!may_spin_ || Clock::now() - idle_since > kSpin) {
        asleep_ = true;
        if (callers_ == 1 && !cancelled_) wire_->sleep(sleep_limit());
        asleep_ = false;
        let_others_in(lock);
      }
    }
    report(lock);
    return true;
  });
}

void NetworkProgress::let_others_in(std::unique_lock<std::mutex>& lock) const {
  if (callers_ == 1) return;
  lock.unlock();
  std::this_thread::yield();
  lock.lock();
}

void NetworkProgress::cancel() {
  cancelled_ = true;
  wire_->wake();
  changed_.notify_all();
}

std::string NetworkProgress::position() {
  return with_engine([this](auto&) { return over_ ? std::string() : engine_.position(); });
}

void NetworkProgress::run() {
  guarded_by(
      [this] {
        std::unique_lock lock(mutex_);
        while (!ending_) serve(lock);
      },
      [this](const Status& cause) {
        std::unique_lock lock(mutex_);
        failure_ = cause;
        end_all();
        report(lock);
      });
}

// Once, while nobody else drives the engine.
void NetworkProgress::serve(std::unique_lock<std::mutex>& lock) {
  if (callers_ > 0) {
    changed_.wait(lock, [this] { return ending_ || callers_ == 0; });
    changed_.wait_for(lock, kAfterCaller, [this] { return ending_ || callers_ > 0; });
    return;
  }
  if (cancelled_ && !over_) end_all();
  if (over_) {
    changed_.wait(lock, [this] { return ending_; });
    return;
  }
  while (advance() && callers_ == 0 && !cancelled_) continue;
  report(lock);
  if (callers_ > 0 || cancelled_ || ending_) return;
  asleep_ = true;
  if (callers_ == 0 && !cancelled_) wire_->sleep(sleep_limit());
  asleep_ = false;
}

bool NetworkProgress::advance() {
  const auto done = engine_.progress(running_now());
  ended_through_.store(engine_.ended_through(), std::memory_order_release);
  if (done.is_ok()) return *done;
  failure_ = done.status();
  end_all();
  return false;
}

void NetworkProgress::end_all() {
  if (over_) return;
  engine_.cancel();
  over_ = true;
  ended_through_.store(last_, std::memory_order_release);
}

// Outside the lock: the group asks its executors about what has happened.
void NetworkProgress::report(std::unique_lock<std::mutex>& lock) {
  if (failure_.is_ok() || told_) return;
  told_ = true;
  lock.unlock();
  failed_(failure_);
  lock.lock();
}

Wire::Clock::time_point NetworkProgress::sleep_limit() const {
  const auto left = engine_.next_event() - running_now();
  return Wire::Clock::now() + std::min<Clock::duration>(left, Deadline::kBetweenLooks);
}

}  // namespace tutti
