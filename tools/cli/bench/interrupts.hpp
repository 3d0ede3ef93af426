// SIGINT and SIGTERM as something a loop can see, for as long as this object lives.
#pragma once

#include <poll.h>
#include <signal.h>

#include <span>

namespace tutti::cli {

// At most one at a time in a process. The signals are blocked except inside poll().
class Interrupts {
 public:
  Interrupts();
  ~Interrupts();  // as it was before
  Interrupts(const Interrupts&) = delete;
  Interrupts& operator=(const Interrupts&) = delete;

  // As poll(2); returns early when one of the signals comes.
  void poll(std::span<pollfd> descriptors, int timeout_ms) const;

  int received() const;  // the signal; 0: none

 private:
  sigset_t mask_before_;
  struct sigaction interrupt_before_, terminate_before_;
};

}  // namespace tutti::cli
