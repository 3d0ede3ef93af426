// How bytes can get from one rank's memory to another's: a set of ways.
#pragma once

#include <cstdint>

namespace tutti {

enum class Reach : std::uint8_t {
  kNone = 0,
  kPeerMemory = 1u << 0,  // kernels, or threads of the host, load and store it
  kCopyEngine = 1u << 1,  // copy engines of a GPU read and write it
  kNetwork = 1u << 2,     // a network engine carries messages
};

constexpr Reach operator|(Reach a, Reach b) {
  return static_cast<Reach>(static_cast<unsigned>(a) | static_cast<unsigned>(b));
}
constexpr Reach operator&(Reach a, Reach b) {
  return static_cast<Reach>(static_cast<unsigned>(a) & static_cast<unsigned>(b));
}
constexpr bool includes(Reach ways, Reach way) { return (ways & way) == way; }

// An ordered pair of ranks that has fewer ways than pairs like it: these.
struct PairReach {
  int from = 0, to = 0;
  Reach reach = Reach::kNone;
  friend bool operator==(const PairReach&, const PairReach&) = default;
};

}  // namespace tutti
