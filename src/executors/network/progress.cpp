#include "executors/network/progress.hpp"

#include <algorithm>
#include <thread>
#include <utility>

#include "base/guard.hpp"
#include "base/try.hpp"
#include "memory/device_scope.hpp"

namespace tutti {
namespace {

using std::chrono::microseconds;
using Clock = NetworkEngine::Clock;

// The thread stays away for so long after a caller: it is likely to come again.
constexpr microseconds kAfterCaller{500};
constexpr Clock::duration kLongAgo = kAfterCaller / 2;
// If so many looks find one and the same call under way, it is a long one.
constexpr int kLooksAtCall = 4;
// A caller that has a core spins for so long before it sleeps. Where nothing had happened for a
// while before it came, ranks come at times that differ by more than a sleep costs.
constexpr microseconds kSpin{2000};
constexpr microseconds kRest{1000}, kSpinAfterRest{20};
// Between two looks of one that spins: others need the core. So nobody spins for a while.
constexpr microseconds kPreempted{200};
constexpr std::chrono::seconds kCrowded{1};
// One that leaves looks so often whether the others have left before it.
constexpr std::chrono::milliseconds kBetweenGoodbyes{5};
// Nobody wakes this thread when a GPU writes a word, so it sleeps for a part of the time for which
// nothing has happened, within these limits.
constexpr microseconds kShortestLook{50}, kLongestLook{1000};
constexpr int kLooks = 16;

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
      staged_(std::move(setup.staged)),
      direct_(setup.direct && staged_ != nullptr),
      engine_(std::move(setup.group), *wire_) {}

NetworkProgress::~NetworkProgress() {
  stop();
  if (cancelled_ || !engine_.idle()) end_all();
}

void NetworkProgress::stop() {
  ending_ = true;
  wire_->wake();
  { const std::lock_guard lock(mutex_); }  // who has seen it unset has begun to wait
  changed_.notify_all();
  thread_.join();
}

template <class F>
auto NetworkProgress::with_engine(const F& f) {
  struct Caller {
    std::atomic<int>& callers;
    std::atomic<Clock::rep>& left;
    ~Caller() {
      left = Clock::now().time_since_epoch().count();
      --callers;
    }
  };
  ++callers_;
  ++calls_;
  if (asleep_) wire_->wake();
  Lock lock(mutex_);
  const Caller caller{callers_, last_call_};
  return f(lock);
}

template <class F>
auto NetworkProgress::on_device(const F& f) {
  if (!direct_) return f();
  const DeviceScope scope(staged_->cuda(), staged_->device());
  return f();
}

std::uint64_t NetworkProgress::add(NetworkOperation operation, std::chrono::nanoseconds timeout) {
  return with_engine([&](Lock& lock) {
    operation.deadline = running_now() + timeout;
    spin_ = still() > kRest ? kSpinAfterRest : kSpin;
    const std::uint64_t ticket = last_ = engine_.start(std::move(operation));
    if (over_) {
      ended_through_ = last_;
    } else {
      advance(lock);
    }
    return ticket;
  });
}

void NetworkProgress::await(std::uint64_t ticket) {
  with_engine([&](Lock& lock) {
    Clock::time_point idle_since = last_look_ = Clock::now();
    bool has_slept = false;
    while (ended_through() < ticket) {
      if (cancelled_) {
        end_all();
      } else if (advance(lock)) {
        idle_since = last_look_ = Clock::now();
        if (has_slept) spin_ = kSpin;  // the others are there
      } else if (!may_go_on_spinning(idle_since)) {
        sleep_with_engine(lock, sleep_limit());
        last_look_ = Clock::now();
        has_slept = true;
      }
    }
    return true;
  });
}

void NetworkProgress::wake() {
  if (asleep_) wire_->wake();
}

// One that others wait for lets them in instead.
void NetworkProgress::sleep_with_engine(Lock& lock, Wire::Clock::time_point until) {
  asleep_ = true;
  if (callers_ == 1 && !cancelled_) wire_->sleep(until);
  asleep_ = false;
  let_others_in(lock);
}

bool NetworkProgress::may_go_on_spinning(Clock::time_point idle_since) {
  if (!may_spin_) return false;
  const Clock::time_point now = Clock::now();
  if (now - std::exchange(last_look_, now) > kPreempted) crowded_until_ = now + kCrowded;
  return now >= crowded_until_ && now - idle_since <= spin_;
}

void NetworkProgress::let_others_in(Lock& lock) const {
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

void NetworkProgress::say_goodbye(std::chrono::nanoseconds limit) {
  with_engine([&](Lock& lock) {
    const Clock::time_point end = Clock::now() + limit;
    if (!over_ && !cancelled_) engine_.say_goodbye();
    while (!over_ && !cancelled_ && !engine_.may_leave() && Clock::now() < end) {
      if (!advance(lock)) sleep_with_engine(lock, Clock::now() + kBetweenGoodbyes);
    }
    return true;
  });
}

std::string NetworkProgress::position() {
  return with_engine([this](Lock&) {
    if (over_) return last_position_;
    std::string waits = engine_.position();
    return waits.empty() && staged_ != nullptr ? staged_->position() : waits;
  });
}

void NetworkProgress::run() {
  guarded_by(
      [this] {
        Lock lock(mutex_);
        while (!ending_) serve(lock);
      },
      [this](const Status& cause) {
        Lock lock(mutex_);
        fail(lock, cause);
      });
}

// Callers come and go within microseconds, and to wake a thread takes as long. So none of them
// wakes this one: it looks how long ago the last one left. During a long call it waits for the
// lock.
void NetworkProgress::stay_away(Lock& lock) {
  lock.unlock();
  std::uint64_t seen = calls_;
  int looks_at_call = 0;
  bool rests = false;
  while (!rests && looks_at_call < kLooksAtCall && !cancelled_ && !ending_) {
    std::this_thread::sleep_for(kAfterCaller);
    const std::uint64_t before = std::exchange(seen, calls_);
    const bool calling = callers_ > 0;
    looks_at_call = calling && seen == before ? looks_at_call + 1 : 0;
    rests = !calling && Clock::now().time_since_epoch().count() - last_call_ >= kLongAgo.count();
  }
  if (looks_at_call == 0) seen_calls_ = seen;
  lock.lock();
}

// Once, while nobody else drives the engine.
void NetworkProgress::serve(Lock& lock) {
  if (callers_ > 0 || (calls_ != seen_calls_ && !polls())) return stay_away(lock);
  if (cancelled_ && !over_) end_all();
  if (over_) {
    changed_.wait(lock, [this] { return ending_.load(); });
    return;
  }
  while (advance(lock) && callers_ == 0 && !cancelled_) continue;
  if (!over_) rest();
}

// Whoever brings something writes it before it looks whether this thread is asleep.
void NetworkProgress::rest() {
  if (polls() && may_spin_ && still() < kSpin) return;
  const bool polled = polls();
  asleep_ = true;
  if (callers_ == 0 && !cancelled_ && !ending_ && polled == polls()) wire_->sleep(sleep_limit());
  asleep_ = false;
  if (!polled && polls()) active_ = Wire::Clock::now();
}

bool NetworkProgress::advance(Lock& lock) {
  if (has_failed_) {  // and whoever found it tells the group
    changed_.wait(lock, [this] { return over_; });
    return false;
  }
  const auto now = running_now();
  const Result<bool> staged =
      staged_ != nullptr ? staged_->advance(engine_, now) : Result<bool>(false);
  const auto done = staged.is_ok() ? on_device([&] { return engine_.progress(now); }) : staged;
  ended_through_.store(engine_.ended_through(), std::memory_order_release);
  if (done.is_ok()) {
    const bool did = *staged || *done;
    if (did) active_ = Wire::Clock::now();
    return did;
  }
  fail(lock, done.status());
  return false;
}

// Outside the lock: the group asks its executors about what has happened. The others hear of it
// before they lose this rank, or they would take that for the cause.
void NetworkProgress::fail(Lock& lock, const Status& cause) {
  has_failed_ = true;
  const int missing = engine_.missing();
  lock.unlock();
  guarded([&] { failed_(cause, missing); });
  lock.lock();
  end_all();
}

void NetworkProgress::end_all() {
  if (over_) return;
  last_position_ = engine_.position();
  on_device([this] { engine_.cancel(); });
  if (staged_ != nullptr) staged_->cancel();
  over_ = true;
  ended_through_.store(last_, std::memory_order_release);
  changed_.notify_all();
}

Wire::Clock::time_point NetworkProgress::sleep_limit() const {
  const auto left = engine_.next_event() - running_now();
  const auto look = std::clamp<Clock::duration>(still() / kLooks, kShortestLook, kLongestLook);
  const Clock::duration most = polls() ? look : Deadline::kBetweenLooks;
  return Wire::Clock::now() + std::min<Clock::duration>(left, most);
}

}  // namespace tutti
