#include "group/watchdog.hpp"

#include <chrono>
#include <condition_variable>
#include <mutex>
#include <pthread.h>
#include <vector>

#include "base/guard.hpp"
#include "base/try.hpp"
#include "bootstrap/worker.hpp"
#include "group/communicator_impl.hpp"

namespace tutti {
namespace {

class Watchdog {
 public:
  // A forked child has none of its threads and begins with a new one. Nothing is destroyed at the
  // end of the process: communicators may end later than this.
  static Watchdog& process() {
    static Lifetime lifetime;
    return *Lifetime::watchdog;
  }

  Status add(CommunicatorImpl& communicator) {
    const std::lock_guard alone(starting_);
    if (!thread_.started()) TUTTI_TRY(thread_.start([this] { look(); }));
    const std::lock_guard lock(mutex_);
    watched_.push_back(&communicator);
    return Status::ok();
  }

  // A process without communicators has no thread, so that it may fork.
  void remove(CommunicatorImpl& communicator) {
    const std::lock_guard alone(starting_);
    {
      const std::lock_guard lock(mutex_);  // the thread looks while it holds the lock
      if (std::erase(watched_, &communicator) == 0 || !watched_.empty()) return;
    }
    end();
  }

 private:
  struct Lifetime {
    Lifetime() {
      watchdog = new Watchdog;
      ::pthread_atfork(nullptr, nullptr, [] {
        left_behind = watchdog;
        watchdog = new Watchdog;
      });
    }
    ~Lifetime() {
      const std::lock_guard alone(watchdog->starting_);
      watchdog->end();
    }
    Lifetime(const Lifetime&) = delete;
    Lifetime& operator=(const Lifetime&) = delete;

    static inline Watchdog* watchdog = nullptr;
    static inline Watchdog* left_behind = nullptr;  // the parent's
  };

  void end() {
    {
      const std::lock_guard lock(mutex_);
      ending_ = true;
    }
    wake_.notify_all();
    thread_.join();
    ending_ = false;
  }

  static void look_at(CommunicatorImpl& communicator, bool queries) {
    communicator.compare_operations();
    if (communicator.backend() == Backend::kHost) return;  // calls report by themselves
    if (communicator.collect_failure()) communicator.log_failure();
    communicator.cancel_if_failed();
    if (!queries) return;
    communicator.check_executors();
    communicator.record_progress();
  }

  void look() {
    constexpr auto kPeriod = std::chrono::milliseconds(10);
    constexpr int kLooksPerQuery = 10;  // a query of an event takes a lock of the driver's
    std::unique_lock lock(mutex_);
    for (int looks = 0; !ending_; ++looks) {
      for (CommunicatorImpl* communicator : watched_) {
        guarded([&] { look_at(*communicator, looks % kLooksPerQuery == 0); });  // or next time
      }
      wake_.wait_for(lock, kPeriod);
    }
  }

  std::mutex starting_;  // the thread starts or ends
  std::mutex mutex_;
  std::condition_variable wake_;
  bool ending_ = false;
  std::vector<CommunicatorImpl*> watched_;
  Worker thread_;
};

}  // namespace

Status watch(CommunicatorImpl& communicator) { return Watchdog::process().add(communicator); }
void unwatch(CommunicatorImpl& communicator) { Watchdog::process().remove(communicator); }

}  // namespace tutti
