// One operation while it runs: its open partitions, which of their chunks are done, and how a chunk
// is executed. The engine decides what goes over the wire, and when.
#pragma once

#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

#include "base/bytes.hpp"
#include "executors/network/engine.hpp"
#include "executors/network/message.hpp"
#include "executors/network/partitions.hpp"
#include "tutti/status.hpp"

namespace tutti {

// Memory that is not initialised.
struct NetworkScratch {
  std::unique_ptr<std::byte[]> memory;
  std::size_t bytes = 0;
};

class RunningOperation {
 public:
  // The operation's numbers: the ticket by which this rank asks for it, and what messages call it.
  struct Place {
    std::uint64_t ticket = 0;
    std::size_t domain = 0;      // index among the engine's
    std::uint64_t sequence = 0;  // within the domain
  };
  // A message that arrived before its partition was open.
  struct Held {
    NetworkMessage message;
    Bytes payload;
  };

  // Forgets what it was before, but for the memory that it used.
  void begin(NetworkOperation operation, std::shared_ptr<const NetworkPartitions> partitions,
             Place place, NetworkRule omitted);

  const NetworkOperation& what() const { return operation_; }
  const Place& place() const { return place_; }
  const NetworkPartitions& partitions() const { return *partitions_; }
  std::uint32_t opened() const { return opened_; }  // partitions
  bool ended() const { return completed_ == partitions_->count; }

  // A partition opens when the one before the last has been completed, whose scratch it gets.
  bool may_open() const;
  std::size_t scratch_bytes() const;  // of the next partition
  void open(NetworkScratch scratch);
  // Of partitions that were completed since the last call.
  std::vector<NetworkScratch>& free_scratch() { return free_scratch_; }

  // Of an operation on a GPU: where a chunk of so many bytes belongs that is expected now.
  // Otherwise null.
  std::byte* place(const NetworkMessage& message, std::size_t bytes) const;
  // A chunk of an open, or of an earlier partition. Whether it was new. kMismatch: the operation
  // has no such chunk.
  Result<bool> arrived(const NetworkMessage& message, ByteView payload);
  void sent(std::uint32_t partition, std::uint32_t chunk);

  // Chunks that may be sent to the peer, as far as the operation itself is concerned; of the
  // earlier partition first.
  struct Outgoing {
    std::uint32_t partition = 0, chunk = 0;
  };
  // The first one of each open partition: how many there are.
  std::size_t outgoing(int peer, std::array<Outgoing, 2>& into) const;
  void take_outgoing(int peer, std::uint32_t partition);
  std::size_t payload_bytes(const Outgoing& send) const;
  // The bytes to be sent; `staged` holds them if they are not sent from where they lie.
  ByteView payload(const Outgoing& send, Bytes& staged);
  NetworkMessage header(const Outgoing& send) const;
  // Peers for which something was added since the last call.
  std::vector<int>& new_outgoing() { return new_outgoing_; }

  std::vector<Held>& held() { return held_; }
  std::size_t kept_bytes() const { return kept_bytes_; }

  // Whether the operation still needs something from the peer, or brings something to it.
  bool needs(int peer) const;
  // Those who have to send, or to receive, for the next thing to be done.
  struct Waits {
    std::vector<int> to_send, to_receive;
  };
  Waits waits() const;

  // Flow control's, by peer: partitions that the peer has said to have opened, and bytes sent
  // unasked until then.
  struct Flow {
    std::uint32_t credited = 0;
    std::uint32_t last_unasked = 0;  // partition
    std::size_t unasked_bytes = 0;
    std::size_t held_bytes = 0;  // of `held`
    std::uint32_t owed = 0;      // the partition whose credit waits for the peer to begin
  };
  Flow& flow(int peer) { return flows_[static_cast<std::size_t>(peer)]; }

  std::chrono::steady_clock::time_point began_at = {};

 private:
  enum Flag : std::uint8_t { kArrived = 1, kDone = 2 };
  struct Outbox {
    std::vector<std::uint32_t> chunks;
    std::size_t head = 0;
    bool empty() const { return head == chunks.size(); }
  };
  struct Slot {
    bool is_open = false;
    std::uint32_t partition = 0;
    const ChunkedProgram* program = nullptr;
    NetworkScratch scratch;
    std::vector<std::uint32_t> waits_for;
    std::vector<std::uint8_t> flags;
    std::size_t left = 0;
    std::vector<std::uint32_t> ready;  // to be executed, from ready_head on
    std::size_t ready_head = 0;
    std::vector<Outbox> outboxes;  // by peer
    std::unordered_map<std::uint32_t, Bytes> kept;
  };
  Slot& slot_of(std::uint32_t partition) { return slots_[partition % 2]; }
  const Slot& slot_of(std::uint32_t partition) const { return slots_[partition % 2]; }
  std::byte* address(const Slot& slot, const NetworkPlace& place, std::size_t offset) const;
  void run(Slot& slot);
  void execute(Slot& slot, std::uint32_t chunk);
  void finish_chunk(Slot& slot, std::uint32_t chunk);
  void close(Slot& slot);
  // What came, if it did, and the places of the chunk's step, to where they belong.
  void reduce(const Slot& slot, std::uint32_t chunk, const std::byte* came);
  void reduce_into(std::byte* into, const Slot& slot, std::uint32_t chunk, const std::byte* came);
  bool is_scaled(const NetworkStep& step) const;

  NetworkOperation operation_;
  std::shared_ptr<const NetworkPartitions> partitions_;
  Place place_;
  NetworkRule omitted_ = NetworkRule::kNone;
  std::size_t element_bytes_ = 1;
  std::uint32_t opened_ = 0, completed_ = 0;
  std::array<Slot, 2> slots_;
  std::vector<NetworkScratch> free_scratch_;
  std::vector<int> new_outgoing_;
  std::vector<Held> held_;
  std::size_t kept_bytes_ = 0;
  std::vector<std::uint64_t> left_to_send_, left_to_receive_;  // chunks, by peer
  std::vector<Flow> flows_;
  std::vector<const std::byte*> sources_;  // of reduce()
  std::vector<Scalar> scalars_;
};

}  // namespace tutti
