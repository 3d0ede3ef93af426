// Runs programs over a wire. It decides which messages may be sent, handles those that arrive, and
// knows when an operation has ended or is late. It has no thread, lock or clock: its owner
// (progress.hpp) calls progress(). Tests drive it with a fake wire.
//
// Flow control. The payload of an operation that a peer has not begun waits in memory there, so not
// much may be sent unasked: kUnaskedBytes of each operation to each peer, and nothing of an
// operation that is kOperationsAhead or more past the last one which the peer is known to have
// begun. The rest waits for the peer's kCredit, which says that it has opened this partition: from
// then on it takes all that comes. A peer begins operations in their order, so its credit for one
// is one for the first partition of all before it, and so is its data. Scratch is bounded because a
// message is cut into partitions (kMostScratchBytes); of an operation two are open at a time, and
// of all operations of the group as many as have room in twice that.
//
// Data on GPUs (NetworkOperation::on_gpu) is sent once the peer is known to have begun the
// operation, and never before: it is received where it belongs, or nowhere.
//
// docs/internals/protocols.md explains why nothing of this waits for ever.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "algorithms/network_program.hpp"
#include "drivers/wire.hpp"
#include "executors/network/rules.hpp"
#include "tutti/status.hpp"
#include "tutti/types.hpp"

namespace tutti {

// One operation, ready to run. Buffers stay as they are until it has ended.
struct NetworkOperation {
  NetworkSchedule schedule = nullptr;
  NetworkShape shape;  // of the whole operation; `count` as a shape says it
  DataType dtype = DataType::kFloat32;
  OpKind op = OpKind::kSum;
  Scalar scalar = 1;  // this rank's pre-multiplier
  const std::byte* input = nullptr;
  std::byte* output = nullptr;
  // Buffers are memory of this rank's GPU, which only a wire that reaches it reads and writes. The
  // program only_moves() (direct_transfers.hpp), and its copy has been made.
  bool on_gpu = false;
  std::size_t chunk_bytes = 64 * 1024;
  std::uint32_t signature = 0;
  std::string text;  // for messages: "all_reduce/network_ring #7 (1024 x fp32)"
  std::chrono::steady_clock::time_point deadline;
  // Of what two ranks alone do: the one whose data moves to the other. Operations are counted apart
  // for each such pair, so that nobody else needs to know of them. `shape` is of the whole group.
  struct Pair {
    int sender = 0, receiver = 0;
  };
  std::optional<Pair> pair = {};
};

class NetworkEngine {
 public:
  using Clock = std::chrono::steady_clock;
  static constexpr std::size_t kUnaskedBytes = 256 * 1024;
  static constexpr std::uint64_t kOperationsAhead = 16;
  static constexpr std::size_t kMostScratchBytes = 16 * 1024 * 1024;
  static constexpr std::size_t kMostScratchInUse = 2 * kMostScratchBytes;  // of all operations

  // At most so much is posted to a peer and not sent yet, or one chunk: a cancel is quick.
  static constexpr std::size_t kPostedBytes = 1024 * 1024;
  static constexpr std::size_t kPostedMessages = 64;
  static constexpr std::chrono::milliseconds kSignOfLife{100};
  static constexpr std::chrono::milliseconds kLossGrace{200};

  struct Group {
    std::uint64_t id = 0;
    int rank = 0, ranks = 1;
    std::function<std::string(int rank)> name;  // RankNames
    // Whether the rank has left the group in order. If given, it may still be told of a rank that
    // was lost: kLossGrace is waited for that, or for the group to fail for a better reason.
    std::function<bool(int rank)> has_left = {};
    std::size_t most_scratch_bytes = kMostScratchBytes;  // ranks have it alike
    NetworkRule omitted = NetworkRule::kNone;            // tests'
  };
  // Sets the wire's handlers.
  NetworkEngine(Group group, Wire& wire);
  ~NetworkEngine();

  // A number for the operation, by which this rank asks for it: they count from 1, whatever they
  // are of. Operations run beside each other as far as their data lets them, and end in any order.
  // What cannot be run fails in the next progress(). Not from a handler of the wire.
  std::uint64_t start(NetworkOperation operation);

  // Handles what has come, sends what may be sent, and looks at deadlines. Whether anything was
  // done. After a failure it does nothing, and returns it. kMismatch: a peer runs another
  // operation; kTimeout names the operation, whom it waits for, and who has given no sign of life;
  // kPeerFailed: a peer is lost that an operation needs. `now` should stand still while this
  // process does (base/deadline.hpp).
  Result<bool> progress(Clock::time_point now);
  // When progress() has to be called at the latest, whatever comes.
  Clock::time_point next_event() const;

  bool has_ended(std::uint64_t ticket) const;
  std::uint64_t ended_through() const;  // all up to this one have ended
  bool idle() const;
  // What the oldest operation waits for, in words; empty: nothing.
  std::string position() const;
  // The rank that the operation waited for in which this failed; -1: it is not known.
  int missing() const;
  // Payload that has come and cannot be used yet.
  std::size_t kept_bytes() const;

  // What was sent may still be on its way when a wire says that it was sent, and a wire that closes
  // may lose it. So who leaves tells those to which it has sent something, and calls progress()
  // until each has answered, has left itself, or is lost.
  void say_goodbye();
  bool may_leave() const;

  // Sends nothing any more, and forgets all operations: their buffers are free when it returns.
  // progress() fails from then on.
  void cancel();

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace tutti
