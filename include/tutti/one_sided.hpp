// Operations of one rank on another one's memory, and signals that say when. Nothing here is
// collective: the rank that calls is the only one that does, and ranks may differ in what they
// call.
//
//   rank 0  put_signal(group, {.from = x, .to = memory.data(), .count = n, .peer = 1}, 0);
//   rank 1  wait_signal(group, {.peer = 0, .channel = 0});  // then memory.data() holds x
//
// Memory. One side of a copy is this rank's own, at any address. The other is the peer's part of a
// SymmetricMemory, and is named by this rank's address in its own part: the same offset is meant.
// The peer takes no part. Who reads what a peer puts waits for a signal that it sent behind that;
// who puts again into the same place knows, by a signal back or a barrier(), that it was read.
//
// Signals. From each rank to each, itself too, there are device::kSignalChannels channels. A signal
// counts one; a wait takes the ones that it waited for; none is ever lost or reset. Calls of a rank
// that signal the same peer on the same channel follow each other in stream order, and likewise
// those that wait. Signals of kernels (tutti/device/peers.hpp) are the same ones.
//
// Order. On CUDA calls return once they are enqueued, and work in stream order, in graphs too: a
// replay puts what lies there then, and goes on counting. On the host they return when they are
// done. A put is over for this rank when its stream has passed it; the peer sees it once it has
// waited for a signal that was sent later on the same stream, or both have passed a barrier().
//
// Errors of all of them: kInvalidArgument (a rank, channel or type that there is not, null, or an
// address that is not symmetric memory of this communicator as far as `count` goes; or between
// group_start() and group_end(), of which they are no part: nothing was done), kUnsupported
// (registered memory that peers cannot address), kUnavailable (no peer access), and the
// communicator's failure if it is poisoned. What goes wrong on the device shows in
// Communicator::status().
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>

#include "tutti/communicator.hpp"
#include "tutti/device/peers.hpp"
#include "tutti/export.hpp"
#include "tutti/types.hpp"

namespace tutti {

// What moves the bytes, on CUDA. A copy that was given to a copy engine cannot be called back:
// where the communicator fails before the stream has come to it, it still touches the peer's
// memory, which must stay until then. A kernel looks first.
enum class Mover : std::uint8_t {
  kAuto,  // puts: kernels; gets: kernels up to 64 KiB, copy engines above
  kKernel,
  kCopyEngine,  // takes no multiprocessor
};

struct Put {
  const void* from = nullptr;  // `count` elements of this rank; may be null where count is 0
  void* to = nullptr;          // this rank's address of the place in symmetric memory; likewise
  std::size_t count = 0;
  DataType dtype = DataType::kFloat32;  // bits are moved as they are; any alignment
  int peer = 0;                         // whose part is written; this rank itself is fine
  Stream stream = nullptr;
  Mover mover = Mover::kAuto;
};

// Copies `count` elements into the symmetric memory of `peer`.
TUTTI_API Status put(Communicator& communicator, const Put& call);

// The same, and one signal to `peer` on `channel` behind it, also where `count` is 0.
TUTTI_API Status put_signal(Communicator& communicator, const Put& call, int channel);

struct Get {
  const void* from = nullptr;  // this rank's address of the place in symmetric memory
  void* to = nullptr;          // `count` elements of this rank
  std::size_t count = 0;
  DataType dtype = DataType::kFloat32;
  int peer = 0;  // whose part is read
  Stream stream = nullptr;
  Mover mover = Mover::kAuto;
};

// Copies `count` elements from the symmetric memory of `peer`. What the peer wrote there is seen if
// a signal that it sent behind that was waited for, or after a barrier().
TUTTI_API Status get(Communicator& communicator, const Get& call);

struct Signal {
  int peer = 0;
  int channel = 0;  // 0..device::kSignalChannels - 1
  Stream stream = nullptr;
};

// One signal to `peer`, behind everything that is before it on the stream: what this rank wrote or
// put until here is seen by whoever waits for it.
TUTTI_API Status signal(Communicator& communicator, const Signal& call);

struct WaitSignal {
  int peer = 0;  // who sends
  int channel = 0;
  std::uint64_t times = 1;  // how many, at most 2^62; 0 waits for none
  Stream stream = nullptr;
  // For this call alone; 0: the communicator's. Host backend and eager CUDA calls.
  std::chrono::milliseconds timeout{0};
};

// Until `times` signals more of `peer` have come on the channel than were waited for before, and
// takes them. What follows sees what was before them on the peer. Where the deadline passes it
// fails with kTimeout, which names both ranks, the channel, and how many signals were expected and
// seen; that poisons the communicator. abort() and the end of a peer end it, too.
TUTTI_API Status wait_signal(Communicator& communicator, const WaitSignal& call);

// What kernels of the caller's own take (tutti/device/peers.hpp). On the host backend they are
// functions that this rank calls; of a wait that failed in one the group hears with this rank's
// next call, or status(). Valid as long as the communicator and `memory`; `memory` must be this
// communicator's. Local: asks no other rank.
TUTTI_API Result<device::Peers> device_peers(Communicator& communicator,
                                             const SymmetricMemory& memory);

}  // namespace tutti
