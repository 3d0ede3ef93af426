// A thread of the library: it takes no signals, and is not waited for in a forked child, where it
// does not exist.
#pragma once

#include <functional>
#include <thread>

#include "tutti/status.hpp"

namespace tutti {

class Worker {
 public:
  Worker() = default;
  ~Worker() { join(); }
  Worker(const Worker&) = delete;
  Worker& operator=(const Worker&) = delete;

  // kResourceExhausted where the system gives no thread.
  Status start(std::function<void()> body);
  bool started() const { return thread_.joinable(); }
  bool is_this_thread() const { return thread_.get_id() == std::this_thread::get_id(); }
  // True in a child that was forked after start(): the thread is not there.
  bool lost_in_fork() const;
  void join();

 private:
  std::thread thread_;
  int owner_ = 0;
};

}  // namespace tutti
