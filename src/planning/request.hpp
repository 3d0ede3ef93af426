// What is asked of one operation, as far as a choice may depend on it. The same on every rank. A
// plain value, which plans are kept under: the texts that it names live as long as it does.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>

#include "algorithms/catalogue.hpp"
#include "base/knobs.hpp"
#include "tutti/types.hpp"

namespace tutti {

// Who can address a buffer as it lies.
enum class BufferReach : std::uint8_t {
  kOwner,    // this rank alone: peers need a copy in staging
  kKernels,  // the other ranks, too, but not by copy engines (SymmetricSegment::copies_queue)
  kPeers,    // the other ranks, by either
  kSwitch,   // and all ranks' parts of it at once, by NVLink multicast
};

struct Request {
  Collective collective = Collective::kAllReduce;
  std::size_t count = 0;
  DataType dtype = DataType::kFloat32;
  OpKind op = OpKind::kSum;
  std::size_t hidden = 0;  // elements of a token, or of a row that is split; 0: there are none
  bool in_place = false;
  BufferReach input_reach = BufferReach::kSwitch, output_reach = BufferReach::kSwitch;
  bool by_address = false;        // ranks tell each other where buffers lie that are not symmetric
  bool registers_late = false;    // finish_capture() will register what peers do not reach
  bool registers_now = false;     // and this call, what copy engines have to reach
  bool sizes_differ = false;      // of input and output, where one rank is alone
  std::size_t staging_bytes = 0;  // of one pass through staging; 0: large enough for all
  std::size_t packet_bytes = 0;   // room for packets in a generation
  std::size_t ring_bytes = 0;     // staging for chunks that go around a ring
  bool has_lanes = true;          // slots for messages between ranks
  std::int64_t stream_barrier_bytes = kSizeAutomatic;  // TUTTI_STREAM_BARRIER_MAX_BYTES
  bool has_stream_barrier = true;                      // or none was asked for yet
  std::int64_t bidirectional_bytes = kSizeAutomatic;   // TUTTI_RING_BIDIRECTIONAL_MAX_BYTES
  bool counts_on_device = false;                       // of uneven pieces
  bool tells_counts = false;  // not all ranks know them: they tell each other
  bool capturing = false;
  bool nccl_ready = true;  // its communicator is there, or can be made now
  // Of NCCL's windows, for its kernels and for its copy engines: whether they can hold both buffers
  // as they lie; whether they are open or can be opened now, and why the ranks agreed that there
  // will be none.
  bool in_blocks = true;
  struct Windows {
    bool ready = true;
    std::string_view none = {};
    friend bool operator==(const Windows&, const Windows&) = default;
  };
  Windows windows, copies;
  bool default_stream = false;  // the legacy one
  bool deterministic = false;
  std::optional<int> sm_budget = {};  // multiprocessors that it may take; 0: copy engines alone
  int blocks = 0, threads = 0;        // told by the call; 0: not
  std::size_t chunk_bytes = 0;        // likewise
  std::string_view algorithm = {};    // forced by the call; empty: none
  std::string_view tune = {};         // the text of TUTTI_TUNE; empty: none
  bool only_nccl = false;             // TUTTI_DISABLE=1

  // Whether peers reach input and output both, as they lie. The buffer that the root alone has, and
  // of pieces of unequal length the one that a rank may have none of, are not asked for: other
  // ranks do not know where they lie.
  bool symmetric() const;
  void set_plain() { input_reach = output_reach = BufferReach::kOwner; }

  std::size_t bytes() const { return count * size_of(dtype); }
  Extent extent(int ranks) const { return {bytes(), ranks, hidden * size_of(dtype)}; }
  friend bool operator==(const Request&, const Request&) = default;
};

inline bool Request::symmetric() const {
  if (by_address || registers_late) return true;
  const RootSide alone = root_side(collective);
  const bool uneven = is_uneven(collective), computes = reduces(collective);
  const bool asks_input = alone != RootSide::kInput && (!uneven || computes);
  const bool asks_output = alone != RootSide::kOutput && (!uneven || !computes);
  return (!asks_input || input_reach != BufferReach::kOwner) &&
         (!asks_output || output_reach != BufferReach::kOwner);
}

// Whether ranks may meet by stream memory operations, as `limit` says
// (TUTTI_STREAM_BARRIER_MAX_BYTES): by default only where a call leaves no SM to its operation.
inline bool admits_stream_barrier(std::int64_t limit, std::optional<int> sm_budget,
                                  std::size_t bytes) {
  if (limit == kSizeAutomatic) return sm_budget == 0;
  return limit == kSizeAlways || (limit > 0 && bytes <= static_cast<std::size_t>(limit));
}

}  // namespace tutti
