// How messages over the network are cut: a pure function of values, the same on all ranks.
//
// Over TCP a chunk is sent eagerly, and 32 to 64 KiB fill the link best. Over RDMA a chunk is a
// transfer of its own, which takes the link's delay: it may be as long as what is on its way.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

namespace tutti {

// Shares and chunks of the network executor begin at multiples of so many bytes.
inline constexpr std::size_t kNetworkUnitBytes = 64;

enum class NetworkKind : std::uint8_t { kTcp, kRdma };

// What a choice depends on. Bytes are those of the larger buffer.
struct NetworkCutInput {
  std::size_t bytes = 0;
  int ranks = 2;
  NetworkKind kind = NetworkKind::kTcp;
  // Where ranks forward the whole vector, as in trees: how many chunks are sent one after another
  // before all links are busy (Crossing::chunks). 0: ranks forward shares.
  double chunks_to_fill = 0;
  // Bandwidth x delay: what is on its way between two hosts; 0: unknown.
  std::size_t delay_bytes = 0;
  std::size_t staging_bytes = 0;  // scratch that an operation may have open at a time
  std::size_t unit_bytes = 16;    // chunks are whole multiples of it
};

struct NetworkCut {
  std::size_t chunk_bytes = 0;
  int depth = 1;       // chunks of a rank's share: what is on its way while one is treated
  int partitions = 1;  // one behind the other, where all does not fit into staging
  friend bool operator==(const NetworkCut&, const NetworkCut&) = default;
};
NetworkCut network_cut(const NetworkCutInput& input);

// Several lines for people: what is chosen for 1 KiB to 1 GiB. `input.bytes` is not looked at.
std::string network_cut_table(const NetworkCutInput& input);

}  // namespace tutti
