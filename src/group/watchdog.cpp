#include "group/watchdog.hpp"

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <mutex>
#include <thread>
#include <vector>

#include "base/guard.hpp"
#include "group/communicator_impl.hpp"

namespace tutti {
namespace {

class Watchdog {
 public:
  static Watchdog& process() {
    static Watchdog watchdog;
    return watchdog;
  }

  void add(CommunicatorImpl& communicator) {
    const std::lock_guard lock(mutex_);
    watched_.push_back(&communicator);
    if (!thread_.joinable()) thread_ = std::thread([this] { look(); });
  }

  void remove(CommunicatorImpl& communicator) {
    const std::lock_guard lock(mutex_);  // the thread looks while it holds the lock
    std::erase(watched_, &communicator);
  }

 private:
  ~Watchdog() {
    {
      const std::lock_guard lock(mutex_);
      ending_ = true;
    }
    wake_.notify_all();
    if (thread_.joinable()) thread_.join();
  }

  static void look_at(CommunicatorImpl& communicator, bool queries) {
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

  std::mutex mutex_;
  std::condition_variable wake_;
  bool ending_ = false;
  std::vector<CommunicatorImpl*> watched_;
  std::thread thread_;
};

}  // namespace

void watch(CommunicatorImpl& communicator) { Watchdog::process().add(communicator); }
void unwatch(CommunicatorImpl& communicator) { Watchdog::process().remove(communicator); }

}  // namespace tutti
