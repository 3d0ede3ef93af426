// What a row of `tutti bench matmul` says besides what every row says.
#pragma once

#include <cstddef>
#include <optional>
#include <string>

#include "bench/all_gather_matmul/ranks/row.hpp"
#include "bench/all_gather_matmul/row.hpp"

namespace tutti::cli {

// How far a ratio moves by itself: of two arms that run the same, round by round.
struct MatmulNoise {
  double p10 = 0, p50 = 0, p90 = 0;
  friend bool operator==(const MatmulNoise&, const MatmulNoise&) = default;
};

struct MatmulRow {
  // C = A x B: [m, k] x [k, n], so many products of one A.
  std::size_t m = 0, n = 0, k = 0;
  std::string layout = "row";  // of B
  int products = 1;
  bool bias = false;
  std::string tile = {};  // that was forced; empty: chosen
  // What ran: a tile of the own kernel, a heuristic of cuBLASLt; of auto with its algorithm.
  std::string config = {};
  std::string library = {};  // that multiplies; empty: tutti
  double tflops = 0;
  double ratio = 0;  // of speeds, over the best of cuBLASLt; 0: not measured
  // Of the best of cuBLASLt over itself, or of own_matmul_only.
  std::optional<MatmulNoise> noise = {};
  double megahertz = 0;    // mean of all SMs during it; 0: not measured
  double watts = 0;        // of the GPU while its shape was measured; 0: not measured
  double utilisation = 0;  // of the tensor cores at that clock; 0: unknown
  double fill = 0;         // useful part of the waves of the own kernel's tile; 0: another kernel
  // Of rows of kAllGatherMatmulName: of one GPU that acts for several, or of several ranks.
  std::optional<ArrivalRow> arrival = {};
  std::optional<GatheredRow> gathered = {};

  // What is multiplied, but for the extents.
  bool same_kind(const MatmulRow& other) const {
    return layout == other.layout && products == other.products && bias == other.bias &&
           arrival.has_value() == other.arrival.has_value() &&
           (!arrival || arrival->same_kind(*other.arrival)) &&
           gathered.has_value() == other.gathered.has_value() &&
           (!gathered || gathered->calls == other.gathered->calls);
  }
  // Whether what else was asked for of an algorithm is the same.
  bool same_options(const MatmulRow& other) const {
    return tile == other.tile &&
           (!gathered || !other.gathered || gathered->pipeline == other.gathered->pipeline);
  }
  bool same_extents(const MatmulRow& other) const {
    return m == other.m && n == other.n && k == other.k;
  }
  friend bool operator==(const MatmulRow&, const MatmulRow&) = default;
};

}  // namespace tutti::cli
