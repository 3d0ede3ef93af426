// A kernel such as users write, with signals of its own.
#pragma once

#include <cstdint>

#include "tutti/device/peers.hpp"
#include "tutti/types.hpp"

namespace tutti::test {

// `words` 64-bit words go around the ranks, `rounds` times, all in one kernel of one block: word w
// of round k from rank r is (k << 32) + (r << 24) + w. A message lies at the memory's begin, its
// source behind it; channels 0 and 1 say full and free, 2 is a barrier's. `wrong` counts words that
// were not those of the rank before; it is device memory.
struct Messages {
  std::uint64_t words, rounds;
  std::uint64_t* wrong;
};

// Loads the kernel on the current device. False where CUDA refuses.
bool load_own_kernel();
bool launch_own_kernel(const device::Peers& peers, const Messages& messages, Stream stream);

// One thread that waits for a signal, and does nothing else.
bool launch_own_wait(const device::Peers& peers, int peer, int channel, Stream stream);

}  // namespace tutti::test
