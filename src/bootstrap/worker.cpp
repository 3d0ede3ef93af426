#include "bootstrap/worker.hpp"

#include <signal.h>
#include <unistd.h>

#include <fmt/format.h>

#include <pthread.h>
#include <system_error>

namespace tutti {

Status Worker::start(std::function<void()> body) {
  sigset_t all, before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);  // inherited by the new thread
  Status status;
  try {
    thread_ = std::thread(std::move(body));
    owner_ = ::getpid();
  } catch (const std::system_error& error) {
    status = {StatusCode::kResourceExhausted,
              fmt::format("cannot start a thread: {}; raise the limit of processes (ulimit -u)",
                          error.what())};
  }
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
