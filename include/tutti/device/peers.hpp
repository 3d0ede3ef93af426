// Symmetric memory and signals in kernels of your own: a plain value that a kernel takes as a
// parameter. The same source is compiled by nvcc for GPUs and by the host compiler for the host
// backend; it needs the standard library and CUDA's headers alone.
//
//   __global__ void kernel(const __grid_constant__ tutti::device::Peers peers) {
//     const tutti::device::Block block;
//     peers.put_signal(block, {.peer = next, .offset_bytes = 0, .from = row, .bytes = 4096}, 0);
//     if (!peers.wait_signal(block, before, 0)) return;  // Communicator::status() says why
//     ... peers.pointer<float>(peers.rank) holds what `before` has put there ...
//
// `Threads` is Block or Thread (tutti/device/threads.hpp): those that make the call together.
//
// Signals. From each rank to each, itself too, there are kSignalChannels channels of signals. A
// signal counts one; a wait takes the ones that it waited for. They are those of the calls in
// tutti/one_sided.hpp: what a stream signals a kernel may wait for, and the other way round.
// One user at a time: of two calls that signal the same peer on the same channel, or wait for that,
// one is behind the other on this rank, in a thread's order, a block's or a stream's. Blocks that
// run side by side use channels of their own.
//
// Kernels of a rank that wait for kernels of another one must be able to run beside those: as many
// blocks as fit on the GPU, and, where ranks share a process, kernels that CUDA has loaded before
// (it loads them lazily; cudaFuncGetAttributes loads one).
#pragma once

#include <cstddef>
#include <cstdint>

#include "tutti/device/impl/signals.hpp"
#include "tutti/device/threads.hpp"

namespace tutti::device {

struct Put {
  int peer = 0;
  std::size_t offset_bytes = 0;  // where in the memory of `peer`
  const void* from = nullptr;    // `bytes` bytes that this rank can address, shared memory too
  std::size_t bytes = 0;         // may be 0
};

struct Get {
  int peer = 0;
  std::size_t offset_bytes = 0;  // where in the memory of `peer`
  void* to = nullptr;            // `bytes` bytes that this rank can address, shared memory too
  std::size_t bytes = 0;         // may be 0
};

// Made by device_peers() (tutti/one_sided.hpp). Valid until the communicator or the memory is gone.
// Peers, channels and ranges are not checked, but by assert().
struct Peers {
  int rank = 0, ranks = 1;
  std::size_t bytes = 0;     // of the memory, on each rank
  std::byte* at[kMaxPeers];  // it, by rank, as this rank addresses it
  impl::Signals signals;     // not for users

  // What lies `offset_bytes` into the memory of `peer`. Ordinary loads and stores work; what a peer
  // wrote is seen after a wait for a signal that it sent behind that, and may be overwritten once
  // it is known, by a signal again, that nobody reads it any more.
  template <class T>
  TUTTI_DEVICE T* pointer(int peer, std::size_t offset_bytes = 0) const;

  // Copies, spread over the threads. Accesses are relaxed at system scope, as wide as both
  // addresses allow (16 bytes). Nothing is ordered by it: who comes behind a later signal of these
  // threads sees it. Does nothing where the communicator has failed.
  template <class Threads>
  TUTTI_DEVICE void put(const Threads& threads, const Put& put) const;

  // Likewise, from the peer. The threads see each other's part after threads.sync().
  template <class Threads>
  TUTTI_DEVICE void get(const Threads& threads, const Get& get) const;

  // Sends one signal. Releases at system scope what any of the threads did before: whoever waits
  // for it sees that, and all that these threads had seen. Does nothing where the communicator has
  // failed.
  template <class Threads>
  TUTTI_DEVICE void signal(const Threads& threads, int peer, int channel) const;

  // put(), and a signal behind it.
  template <class Threads>
  TUTTI_DEVICE void put_signal(const Threads& threads, const Put& put, int channel) const;

  // Until `times` signals more of `peer` have come on the channel than were waited for before; then
  // takes them. Acquires at system scope, for all of the threads. False, for all of them, where the
  // deadline of the communicator passes or the communicator has failed: it has then, and a kernel
  // stores nothing more and ends.
  template <class Threads>
  [[nodiscard]] TUTTI_DEVICE bool wait_signal(const Threads& threads, int peer, int channel,
                                              std::uint64_t times = 1) const;

  // Until these threads of every rank have come so far: a signal to every rank, and a wait for one
  // of each. Releases and acquires as those do. False as in wait_signal().
  template <class Threads>
  [[nodiscard]] TUTTI_DEVICE bool barrier(const Threads& threads, int channel) const;
};

}  // namespace tutti::device

#include "tutti/device/impl/peers.hpp"  // IWYU pragma: export
