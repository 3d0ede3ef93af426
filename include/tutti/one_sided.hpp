/// \file
/// One-sided operations: copies into and out of a peer's symmetric memory, and signals. Only the
/// calling rank takes part; nothing here is collective.
///
///     // rank 0
///     put_signal(group, {.from = x, .to = memory.data(), .count = n, .peer = 1}, 0);
///     // rank 1: after the wait, memory.data() holds x
///     wait_signal(group, {.peer = 0, .channel = 0});
///
/// **Memory.** One side of a copy is memory of the calling rank, at any address. The other side is
/// the peer's part of a SymmetricMemory. It is given as the calling rank's own address: the copy
/// uses the same offset in the peer's part.
///
/// Before reading data put by a peer, wait for a signal that the peer sent after the put. Before
/// putting to the same place again, make sure that the peer has read it: by a signal back, or by a
/// barrier().
///
/// **Signals.** From each rank to each rank, itself included, there are device::kSignalChannels
/// channels. A channel counts signals; a wait consumes the signals that it waited for. Signals are
/// never lost or reset. Calls of one rank that signal the same peer on the same channel must be
/// ordered by a stream; the same holds for calls that wait. Signals of kernels
/// (tutti/device/peers.hpp) use the same channels.
///
/// **Order.** On CUDA calls return once the operation is enqueued, and run in stream order, also in
/// graphs: a replay copies what is in the buffer then, and continues to count signals. On the host
/// backend calls return when they are done. A put is complete on the calling rank when its stream
/// has passed it. The peer sees it after it has waited for a signal that was sent later on the same
/// stream, or after both have passed a barrier().
///
/// **Errors.** kInvalidArgument: unknown rank, channel or type, null, `count` elements that do not
/// lie in symmetric memory of this communicator, or a call between group_start() and group_end().
/// kUnsupported: registered memory that peers cannot address. kUnavailable: no peer access. In all
/// these cases nothing was done. After a failure of the communicator every call returns that
/// failure. Failures on the device are in Communicator::status().
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>

#include "tutti/communicator.hpp"
#include "tutti/device/peers.hpp"
#include "tutti/export.hpp"
#include "tutti/types.hpp"

namespace tutti {

/// What copies the bytes on CUDA.
///
/// A copy that was enqueued on a copy engine cannot be cancelled: if the communicator fails first,
/// the copy still accesses the peer's memory, which must stay allocated until then. A kernel checks
/// for a failure before it copies.
enum class Mover : std::uint8_t {
  kAuto,        ///< puts: kernels; gets: kernels up to 64 KiB, copy engines above
  kKernel,      ///< a kernel
  kCopyEngine,  ///< a copy engine; uses no SM
};

/// Arguments of put() and put_signal().
struct Put {
  const void* from = nullptr;  ///< `count` elements of this rank; may be null if count is 0
  void* to = nullptr;  ///< in symmetric memory, as this rank's address; may be null if count is 0
  std::size_t count = 0;
  DataType dtype = DataType::kFloat32;  ///< bits are copied; any alignment
  int peer = 0;                         ///< whose part is written; may be this rank
  Stream stream = nullptr;
  Mover mover = Mover::kAuto;
};

/// Copies `count` elements into the symmetric memory of `peer`.
TUTTI_API Status put(Communicator& communicator, const Put& call);

/// put(), and then a signal to `peer` on `channel`, also if `count` is 0.
TUTTI_API Status put_signal(Communicator& communicator, const Put& call, int channel);

/// Arguments of get().
struct Get {
  const void* from = nullptr;  ///< in symmetric memory, as this rank's address
  void* to = nullptr;          ///< `count` elements of this rank
  std::size_t count = 0;
  DataType dtype = DataType::kFloat32;  ///< bits are copied; any alignment
  int peer = 0;                         ///< whose part is read; may be this rank
  Stream stream = nullptr;
  Mover mover = Mover::kAuto;
};

/// Copies `count` elements from the symmetric memory of `peer`. To see what the peer wrote there,
/// first wait for a signal that the peer sent after the write, or pass a barrier().
TUTTI_API Status get(Communicator& communicator, const Get& call);

/// Arguments of signal().
struct Signal {
  int peer = 0;     ///< the receiver
  int channel = 0;  ///< 0 to device::kSignalChannels - 1
  Stream stream = nullptr;
};

/// Sends one signal to `peer`, after all earlier work of the stream. When the peer has waited for
/// it, it sees what this rank wrote or put before.
TUTTI_API Status signal(Communicator& communicator, const Signal& call);

/// Arguments of wait_signal().
struct WaitSignal {
  int peer = 0;             ///< the sender
  int channel = 0;          ///< 0 to device::kSignalChannels - 1
  std::uint64_t times = 1;  ///< number of signals, at most 2^62; 0: does not wait
  Stream stream = nullptr;
  /// Timeout of this call; 0: the communicator's. Applies on the host backend and to eager CUDA
  /// calls.
  std::chrono::milliseconds timeout{0};
};

/// Blocks until `times` further signals from `peer` arrive on `channel`, then consumes them. On
/// CUDA it is the stream that blocks. Later work of the stream sees what the peer did before it
/// sent the signals.
///
/// A timeout is kTimeout with both ranks, the channel, and the expected and received number of
/// signals; the communicator has then failed. abort() and the end of the peer end the wait too.
TUTTI_API Status wait_signal(Communicator& communicator, const WaitSignal& call);

/// What your own kernels need to access `memory` and signals: see tutti/device/peers.hpp. Local.
///
/// The result is valid as long as the communicator and `memory`, which must belong to this
/// communicator. On the host backend a "kernel" is a function that this rank calls; if a wait in it
/// fails, the group learns of that at this rank's next call, or from its status().
TUTTI_API Result<device::Peers> device_peers(Communicator& communicator,
                                             const SymmetricMemory& memory);

}  // namespace tutti
