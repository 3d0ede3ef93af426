#include "bench/interrupts.hpp"

#include <atomic>
#include <ctime>

namespace tutti::cli {
namespace {

// A signal is taken by any thread of the process that has not blocked it.
std::atomic<int> last_signal{0};
static_assert(std::atomic<int>::is_always_lock_free);  // what a handler may touch

void note(int signal) { last_signal = signal; }

}  // namespace

Interrupts::Interrupts() {
  last_signal = 0;
  struct sigaction action = {};
  action.sa_handler = note;
  ::sigaction(SIGINT, &action, &interrupt_before_);
  ::sigaction(SIGTERM, &action, &terminate_before_);
  sigset_t both;
  ::sigemptyset(&both);
  ::sigaddset(&both, SIGINT);
  ::sigaddset(&both, SIGTERM);
  ::pthread_sigmask(SIG_BLOCK, &both, &mask_before_);
}

Interrupts::~Interrupts() {
  ::pthread_sigmask(SIG_SETMASK, &mask_before_, nullptr);
  ::sigaction(SIGINT, &interrupt_before_, nullptr);
  ::sigaction(SIGTERM, &terminate_before_, nullptr);
}

void Interrupts::poll(std::span<pollfd> descriptors, int timeout_ms) const {
  const timespec timeout = {.tv_sec = timeout_ms / 1000, .tv_nsec = timeout_ms % 1000 * 1'000'000L};
  const int ready = ::ppoll(descriptors.data(), descriptors.size(), &timeout, &mask_before_);
  // Where a descriptor was ready at once, no signal was let in.
  const timespec none = {};
  if (ready > 0) ::ppoll(nullptr, 0, &none, &mask_before_);
}

int Interrupts::received() const { return last_signal; }

}  // namespace tutti::cli
