// Descriptions that tests have in common.
#pragma once

#include <algorithm>
#include <random>
#include <span>
#include <string>
#include <vector>

#include "pipelines/derive.hpp"
#include "pipelines/lower.hpp"

namespace tutti::pipelines::test {

// [m, 4] times two Bs, one with a bias, on two streams.
inline Description small(Algorithm algorithm, Protocol protocol, int ranks, std::size_t m) {
  return {.algorithm = algorithm,
          .ranks = ranks,
          .m = m,
          .k = 4,
          .products = {{.n = 2, .bias = true}, {.n = 1}},
          .dtype = DataType::kFloat32,
          .protocol = protocol,
          .streams = 2,
          .tiles = 3};
}

inline constexpr Algorithm kAllAlgorithms[] = {Algorithm::kShift, Algorithm::kRing,
                                               Algorithm::kTiles};

// All algorithms and protocols, with A in symmetric memory or not, and both orders of streams.
inline std::vector<Description> all_kinds(int ranks, std::size_t m) {
  std::vector<Description> all;
  for (const Algorithm algorithm : kAllAlgorithms) {
    for (const bool order : {false, true}) {
      Description description = small(algorithm, Protocol::kPut, ranks, m);
      description.inter_stream_order = order;
      all.push_back(description);
      description.protocol = Protocol::kGet;
      all.push_back(description);
      description.symmetric_a = true;
      all.push_back(description);
    }
  }
  return all;
}

// Other streams, tiles and outputs than the kind has.
inline Description varied(Description description, std::minstd_rand& random) {
  description.streams = 1 + static_cast<int>(random() % 4);
  description.tiles = 1 + static_cast<int>(random() % 4);
  description.gathered = random() % 3 != 0;
  description.symmetric_gathered = description.gathered && random() % 2 == 0;
  return description;
}

inline bool waits_for_another(const Instruction& instruction) {
  return std::holds_alternative<Await>(instruction.action) ||
         std::holds_alternative<WaitForStream>(instruction.action);
}

// A wait of instruction `i` that no rows depend on. It lets transfers begin in order; or, with get,
// it lets ranks make progress whose streams are not independent, if all ranks have it.
inline bool only_orders(const Description& d, std::span<const Instruction> list, std::size_t i) {
  const auto* wait = std::get_if<WaitForStream>(&list[i].action);
  if (wait == nullptr || d.protocol == Protocol::kPut || list[i].stream == kCallerStream) {
    return false;
  }
  if (d.algorithm == Algorithm::kTiles) {
    return d.inter_stream_order && !d.symmetric_a && wait->on != kCallerStream;
  }
  return std::ranges::any_of(
      list.first(i), [&](const Instruction& earlier) { return earlier.stream == list[i].stream; });
}

inline std::string name(const Description& d) {
  return std::string(to_string(d.algorithm)) + " " + std::string(to_string(d.protocol)) +
         (d.inter_stream_order ? " ordered" : "") + (d.symmetric_a ? " symmetric" : "") +
         (d.gathered ? " gathered" : "") + (d.symmetric_gathered ? " symmetrically" : "") + " of " +
         std::to_string(d.ranks) + " ranks, m " + std::to_string(d.m) + ", " +
         std::to_string(d.streams) + " streams, " + std::to_string(d.tiles) + " tiles";
}

}  // namespace tutti::pipelines::test
