/// \file
/// Symmetric memory and signals in your own kernels, through a plain value that a kernel takes as a
/// parameter. The same source is compiled by nvcc for GPUs and by the host compiler for the host
/// backend. It needs only the standard library and CUDA's headers.
///
///     __global__ void kernel(const __grid_constant__ tutti::device::Peers peers) {
///       const tutti::device::Block block;
///       peers.put_signal(block, {.peer = next, .offset_bytes = 0, .from = x, .bytes = 4096}, 0);
///       if (!peers.wait_signal(block, before, 0)) return;  // Communicator::status() says why
///       // peers.pointer<float>(peers.rank) now holds what rank `before` has put there
///     }
///
/// **Threads.** The template parameter `Threads` is Block or Thread (tutti/device/threads.hpp): the
/// threads that make the call together.
///
/// **Signals.** From each rank to each rank, itself included, there are kSignalChannels channels. A
/// channel counts signals; a wait consumes the signals that it waited for. The calls of
/// tutti/one_sided.hpp use the same channels: a kernel can wait for what a stream signals, and the
/// other way round. Two calls of one rank that signal the same peer on the same channel must be
/// ordered, by a thread, a block or a stream; the same holds for two waits. Blocks that run
/// concurrently use different channels.
///
/// **Scheduling.** Kernels that wait for kernels of another rank must be able to run concurrently
/// with them. Launch no more blocks than fit on the GPU. If several ranks share a process, load all
/// kernels before: CUDA loads them on first use, which may wait for running kernels.
/// cudaFuncGetAttributes() loads a kernel.
#pragma once

#include <cstddef>
#include <cstdint>

#include "tutti/device/impl/signals.hpp"
#include "tutti/device/threads.hpp"

namespace tutti::device {

/// Arguments of Peers::put() and Peers::put_signal().
struct Put {
  int peer = 0;
  std::size_t offset_bytes = 0;  ///< destination, in the memory of `peer`
  const void* from = nullptr;    ///< any memory that this rank can address, shared memory included
  std::size_t bytes = 0;         ///< may be 0
};

/// Arguments of Peers::get().
struct Get {
  int peer = 0;
  std::size_t offset_bytes = 0;  ///< source, in the memory of `peer`
  void* to = nullptr;            ///< any memory that this rank can address, shared memory included
  std::size_t bytes = 0;         ///< may be 0
};

/// The memory of all ranks, and signals between them. Made by device_peers() (tutti/one_sided.hpp).
/// Valid as long as the communicator and the memory. Only assert() checks ranks, channels and
/// ranges.
struct Peers {
  int rank = 0;              ///< this rank
  int ranks = 1;             ///< number of ranks
  std::size_t bytes = 0;     ///< bytes of the memory of one rank
  std::byte* at[kMaxPeers];  ///< the memory of each rank, as an address of this rank
  impl::Signals signals;     ///< for the library

  /// The address `offset_bytes` into the memory of `peer`, for ordinary loads and stores.
  ///
  /// Before reading what a peer wrote, wait for a signal that the peer sent after the write. Before
  /// writing, make sure by a signal that nobody reads the old content any more.
  template <class T>
  TUTTI_DEVICE T* pointer(int peer, std::size_t offset_bytes = 0) const;

  /// Copies to the peer; the threads share the work. Accesses are relaxed at system scope, and as
  /// wide as both addresses allow (16 bytes at most). The copy is visible to the peer after a wait
  /// for a later signal of these threads. Does nothing if the communicator has failed.
  template <class Threads>
  TUTTI_DEVICE void put(const Threads& threads, const Put& put) const;

  /// Copies from the peer, as put(). The threads see each other's part after threads.sync().
  template <class Threads>
  TUTTI_DEVICE void get(const Threads& threads, const Get& get) const;

  /// Sends one signal. It releases, at system scope, what all of the threads did and saw before: a
  /// rank that has waited for the signal sees it. Does nothing if the communicator has failed.
  template <class Threads>
  TUTTI_DEVICE void signal(const Threads& threads, int peer, int channel) const;

  /// put(), and then signal().
  template <class Threads>
  TUTTI_DEVICE void put_signal(const Threads& threads, const Put& put, int channel) const;

  /// Blocks until `times` further signals from `peer` arrive on `channel`, then consumes them.
  /// Acquires at system scope, for all of the threads.
  ///
  /// @return false, for all of the threads, if the timeout of the communicator passed or the
  /// communicator has failed. The kernel must then store nothing more, and return.
  template <class Threads>
  [[nodiscard]] TUTTI_DEVICE bool wait_signal(const Threads& threads, int peer, int channel,
                                              std::uint64_t times = 1) const;

  /// Waits until these threads of every rank have called it: sends a signal to every rank and waits
  /// for one from every rank, with the ordering of signal() and wait_signal().
  ///
  /// @return see wait_signal()
  template <class Threads>
  [[nodiscard]] TUTTI_DEVICE bool barrier(const Threads& threads, int channel) const;
};

}  // namespace tutti::device

#include "tutti/device/impl/peers.hpp"  // IWYU pragma: export
