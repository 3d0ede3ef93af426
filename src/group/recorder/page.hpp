// The page in which a rank keeps its last operations, byte by byte: a header, then a ring of
// records. It is read by other processes, also after this one has died, so it holds no pointer and
// every word but `waits_for` has one writer. The other ranks of the group compare it with their own
// (comparison.hpp).
//
// A record is published like this: its version becomes odd, its words are stored, its version
// becomes even again. Every store after the first releases: whoever sees one of the words sees the
// odd version, so a record that did not change between two readings is whole.
#pragma once

#include <array>
#include <bit>
#include <cstdint>
#include <type_traits>

namespace tutti {

inline constexpr std::uint64_t kPageMagic = 0x6365726974747574;  // "tuttirec", little-endian
inline constexpr std::uint32_t kPageVersion = 2;
inline constexpr std::uint32_t kPageRecords = 1024;

// What such a page is called among the descriptors of a process, and how its file's name begins.
inline constexpr char kPageName[] = "tutti-recorder";

enum class OperationState : std::uint32_t {
  kEnqueued = 1,  // given to a stream; done once PageHeader::done_through has come so far
  kRunning,       // this rank's thread is in it
  kDone,
  kFailed,
  kUntracked,  // captured in a graph: its end cannot be seen from here
};

// PageRecord::op of an operation that computes nothing.
inline constexpr std::uint32_t kPageNoOp = 0xff;

// The operation with sequence number s lies in slot s % records. Sequence 0: an empty slot.
struct PageRecord {
  std::uint64_t version;  // odd while the rest is being written
  std::uint64_t sequence;
  std::uint64_t count, bytes;
  std::uint64_t started_ns, ended_ns;  // steady clock; 0: not yet
  std::uint32_t signature;             // as in KernelArgs
  std::uint32_t state;                 // OperationState
  std::uint32_t dtype, op;             // DataType, OpKind
  std::uint64_t number;                // among the operations that ranks compare; 0: not one
  std::uint32_t chain;                 // hash of the signatures of numbers 1 to `number`
  std::array<char, 52> row;            // "all_reduce/one_shot"; ends with a zero
};
static_assert(sizeof(PageRecord) == 128 && std::is_trivially_copyable_v<PageRecord>);

// The steady clock counts nanoseconds alike in all processes of a host.
struct PageHeader {
  std::uint64_t magic;
  std::uint32_t page_version;
  std::uint32_t header_bytes, record_bytes, records;
  // Who writes. Never changes.
  std::uint64_t group;  // random; the same on every rank
  std::int32_t rank, ranks;
  std::uint64_t host_id;  // equal where two pages come from one kernel and process namespace
  std::int64_t process_id;
  std::uint64_t process_start;  // as in /proc: tells apart two processes of one number
  std::int32_t backend, device;
  std::int64_t opened_unix_ns;  // the time of day
  std::uint64_t opened_ns;      // and the steady clock at that moment
  std::uint32_t library_version;
  std::uint32_t ranks_here;  // of the group, on this host; 0: the writer is older than this
  std::array<char, 64> host;
  // Bit r: rank r has not come. Written by the rank's thread while it waits, and after a failure,
  // of which the latest word stays, by whoever tells of it.
  std::uint64_t waits_for;
  // Written by the thread that watches streams.
  std::uint64_t done_through, done_ns;
  // Written once, by whoever finds the first failure; the time last.
  std::uint64_t failed_ns;
  std::uint32_t failed_code, unused_too;  // StatusCode
  std::array<char, 1024> failed_text;
  // Written at the end of a communicator that was destroyed in order.
  std::uint64_t closed_ns;
  // The sequence number of the latest record with a number; 0: none.
  std::uint64_t numbered;
  std::array<std::uint64_t, 101> reserved;
};
static_assert(sizeof(PageHeader) == 2048 && std::is_trivially_copyable_v<PageHeader>);

// PageRecord::chain after an operation with this signature.
constexpr std::uint32_t chained(std::uint32_t chain, std::uint32_t signature) {
  return (std::rotl(chain, 5) ^ signature) * 0x9e3779b1u;
}

inline constexpr std::size_t kPageBytes = sizeof(PageHeader) + kPageRecords * sizeof(PageRecord);

}  // namespace tutti
