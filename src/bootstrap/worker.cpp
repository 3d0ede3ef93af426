#include "bootstrap/worker.hpp"

#include <signal.h>
#include <unistd.h>

#include <pthread.h>

#include "base/guard.hpp"

namespace tutti {

Status Worker::start(std::function<void()> body) {
  sigset_t all, before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);  // inherited by the new thread
  const Status status = guarded([&] {
    thread_ = std::thread([body = std::move(body)] { guarded(body); });
    owner_ = ::getpid();
    return Status::ok();
  });
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
  return status;
}

bool Worker::lost_in_fork() const { return thread_.joinable() && owner_ != ::getpid(); }

void Worker::join() {
  if (!thread_.joinable()) return;
  if (lost_in_fork()) {
    thread_.detach();
  } else {
    thread_.join();
  }
}

}  // namespace tutti
