// Memory as ranks on different GPUs see it, and a judge of every access.
//
// Stores leave a fiber into its buffer and are delivered later, in any order: a store may overtake
// an earlier one unless a release lies between them, or both go to the same place. Which one goes
// next is the schedule's choice. A fiber sees its own stores at once.
//
// Beside the bytes, each word remembers who stored and who loaded it last. A fiber may load a word
// only if it knows (through a flag that it acquired, or the end of a kernel) that the last store to
// it is visible, and overwrite it only if it knows that all loads of it are over. Anything else is
// a violation, also where this schedule happened to give the right bytes.
//
// Bulk copies run beside the fiber that issued them, in a proxy of their own: they read their
// source when they complete, as late as they may, see ordinary stores only across a proxy fence,
// and are not held back by a release.
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "device/kernel_args.hpp"
#include "simulator/clock.hpp"
#include "simulator/schedule.hpp"

namespace tutti::simulated {

enum class Breach : std::uint8_t {
  kNone,
  kEarlyLoad,       // of what may not have been written yet
  kEarlyStore,      // over what may not have been read yet
  kUnorderedStore,  // two stores, either of which may come last
  kBulkSource,      // the source of a bulk copy changes, or was not visible to it
  kBulkTarget,      // the target of a bulk copy is used before it is complete
  kDeadlock,        // every fiber waits
  kWrongResult,
  kCanary,   // bytes beside a buffer were changed
  kOutcome,  // the operation ended in an error
};
std::string_view to_string(Breach breach);

struct Violation {
  Breach breach = Breach::kNone;
  std::string text;
};

// A store (or bulk copy) that is under way.
struct Pending {
  std::uint32_t id = 0;       // counts the fiber's stores
  std::uint32_t release = 0;  // how many releases came before
  std::byte* to = nullptr;
  const std::byte* source = nullptr;  // bulk copies alone: read on delivery
  std::uint16_t size = 0;
  bool source_free = false;   // bulk copies alone: the source was read already
  std::int32_t flag = -1;     // the flag it is a word of; -1: data
  std::int32_t message = -1;  // what the flag tells, in the fiber's sent messages
  std::int32_t packet = -1;   // the packet it is, or empties; -1: none
  std::uint64_t epoch = 0;    // packets alone: the launch it belongs to
  std::array<std::byte, 16> bytes{};
};

class WeakMemory {
 public:
  explicit WeakMemory(int fibers);

  // Memory that fibers share. `name` is for the texts of violations.
  void add_data(std::byte* base, std::size_t bytes, std::string name);
  void add_flags(Flag* base, std::size_t count);
  void add_packets(std::uint64_t* base, std::size_t count);
  // Forgets all accesses; contents of data stay, flags and packets become zero.
  void reset();

  // Ordinary accesses, of at most 16 bytes each.
  void load(int fiber, std::byte* to, const std::byte* from, std::size_t bytes);
  void store(int fiber, std::byte* to, const std::byte* from, std::size_t bytes);
  // By the stream of a rank between its kernels: as above, and complete at once.
  void load_now(int fiber, std::byte* to, const std::byte* from, std::size_t bytes);
  void store_now(int fiber, std::byte* to, const std::byte* from, std::size_t bytes);

  // Stores after this are delivered after those before it, and every later flag tells so.
  void release(int fiber);
  // What the fiber's next flags tell whoever acquires them.
  void send(int fiber, Publish publish);
  // The two words of a flag; they may arrive apart.
  void store_flag(int fiber, Flag* to, Flag value);
  Flag read_flag(const Flag* flag) const;
  void acquire(int fiber, const Flag* flag);
  // A word that is its own signal: not judged. `epoch` is for the schedule: what it tells, or ends.
  void store_packet(int fiber, std::uint64_t* to, std::uint64_t packet, std::uint64_t epoch);

  // Bulk copies of a fiber.
  void bulk_copy(int fiber, std::byte* to, const std::byte* from, std::size_t bytes);
  // Likewise from the block's shared memory, of which nobody else knows: its bytes are kept.
  void bulk_store(int fiber, std::byte* to, const std::byte* from, std::size_t bytes);
  bool copies_in_bulk(int fiber) const;
  void proxy_fence(int fiber);
  void wait_source_free(int fiber);  // the sources of all bulk copies so far have been read
  void wait_written(int fiber);      // all bulk copies so far are complete

  // The end of a kernel: `count` fibers from `first` on, whose buffers are empty, know what any of
  // them knew.
  void end_kernel(int first, int count);

  // Deliveries.
  std::span<const Pending> pending(int fiber) const { return own(fiber).buffer; }
  // May entry `index` of the fiber's buffer be delivered now?
  bool deliverable(int fiber, std::size_t index) const;
  // The same for all of them at once, which is quicker where there are many packets.
  void find_deliverable(int fiber, std::vector<bool>& may);
  void deliver(int fiber, std::size_t index);
  // The same in larger steps: a flag is delivered whole, and data that must come first comes along.
  bool flag_deliverable(int fiber, std::size_t index) const;
  void deliver_flag(int fiber, std::size_t index);
  std::int32_t flag_index(const Flag* flag) const;
  std::int32_t packet_index(const std::uint64_t* packet) const;
  std::uint32_t stores_of(int fiber) const { return own(fiber).stores; }
  // Of the flag that the entry is a word of, or of the packet that it is.
  std::uint64_t epoch_of(const Pending& entry) const;

  const Violation& violation() const { return violation_; }

 private:
  static constexpr std::size_t kWord = 4;
  static constexpr std::size_t kPiece = sizeof(Pending::bytes);
  struct Shadow {
    Time stored_at = 0;
    std::int32_t stored_by = -1;
    std::array<Time, kMaxFibers> loaded_at{};
  };
  struct Region {
    std::byte* base;
    std::size_t bytes;
    std::string name;
    std::vector<Shadow> shadows;  // one per word
  };
  struct FlagBlock {
    Flag* base;
    std::size_t count;
    std::int32_t first;  // index of its first flag
  };
  struct PacketBlock {
    std::uint64_t* base;
    std::size_t count;
    std::int32_t first;
  };
  struct Told {
    std::int16_t by = -1;
    std::int32_t message = -1;
  };
  struct Own {
    std::vector<Pending> buffer;
    std::vector<Knowledge> sent;
    Knowledge known;     // of the fibers' accesses
    Knowledge released;  // what any flag from now on tells: up to the last release, or kernel
    Time time = 1;
    Time fenced_at = 0;  // of the last proxy fence
    std::uint32_t releases = 0, stores = 0;
  };

  Own& own(int fiber) { return fibers_[static_cast<std::size_t>(fiber)]; }
  const Own& own(int fiber) const { return fibers_[static_cast<std::size_t>(fiber)]; }
  Region* region_of(const std::byte* address);
  template <class F>
  void for_each_shadow(const std::byte* from, std::size_t bytes, F&& f);

  void judge_load(int fiber, const std::byte* from, std::size_t bytes);
  void judge_store(int fiber, const std::byte* to, std::size_t bytes);
  void judge_bulk(int fiber, const std::byte* at, std::size_t bytes, bool stores);
  void report(Breach breach, int fiber, const std::byte* at, int other);
  Pending& push(int fiber, std::byte* to, std::size_t bytes);
  void apply(int fiber, const Pending& entry);

  std::vector<Region> regions_;
  std::vector<FlagBlock> flag_blocks_;
  std::vector<PacketBlock> packet_blocks_;
  std::vector<std::uint32_t> packet_seen_;  // per packet: the search that met it last
  std::uint32_t searches_ = 0;
  std::vector<Told> told_;  // per flag: what its delivered value tells
  std::vector<Own> fibers_;
  Violation violation_;
  bool any_bulk_ = false;
};

}  // namespace tutti::simulated
