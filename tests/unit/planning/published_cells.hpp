// What vLLM measured in pull requests 24111 (2, 4 and 6 ranks; B200) and 42324 (8 ranks of sm_90,
// their number inferred): all-reduce of bf16, milliseconds, as published. 0: not measured.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <string_view>
#include <vector>

#include "algorithms/catalogue.hpp"

namespace tutti {

struct PublishedCell {
  std::string_view gpu;
  int compute;
  int ranks;
  std::size_t bytes;
  // one-shot, two-shot out of and in place, NCCL, multicast
  std::array<double, 5> ms;
};

// The fastest family; of equal ones the first. Without those that need multicast, if so wished.
inline Family best_of(const PublishedCell& cell, bool multicast) {
  constexpr Family kFamilies[] = {Family::kOneShot, Family::kTwoShot, Family::kTwoShot,
                                  Family::kNccl, Family::kMulticast};
  Family best = Family::kOther;
  double best_ms = 1e9;
  for (std::size_t k = 0; k < cell.ms.size(); ++k) {
    if (cell.ms[k] == 0 || cell.ms[k] >= best_ms) continue;
    if (kFamilies[k] == Family::kMulticast && !multicast) continue;
    best = kFamilies[k];
    best_ms = cell.ms[k];
  }
  return best;
}

inline constexpr std::size_t kHalf = std::size_t{1} << 19;  // 0.5 MiB
inline constexpr std::size_t kPrompt = 3062 * 8192 * 2;     // 47.84 MiB, a prompt of 3062 tokens

inline const std::vector<PublishedCell>& published_cells() {
  constexpr std::string_view kH100 = "NVIDIA H100 80GB HBM3", kB200 = "NVIDIA B200";
  static const std::vector<PublishedCell> cells = {
      {kH100, 90, 2, kHalf, {.007, .012, .014, .011, .014}},
      {kH100, 90, 2, 2 * kHalf, {.009, .014, .016, .017, .016}},
      {kH100, 90, 2, 4 * kHalf, {.013, .019, .020, .037, .023}},
      {kH100, 90, 2, 8 * kHalf, {.021, .028, .028, .040, .034}},
      {kH100, 90, 2, 32 * kHalf, {.070, .080, .084, .087, .112}},
      {kH100, 90, 2, 64 * kHalf, {.128, .167, .161, .150, .233}},
      {kH100, 90, 2, kPrompt, {.188, .246, .236, .203, .346}},
      {kH100, 90, 2, 128 * kHalf, {.250, .326, .312, .262, .463}},
      {kH100, 90, 4, kHalf, {.010, .013, .016, .016, .013}},
      {kH100, 90, 4, 2 * kHalf, {.015, .016, .018, .022, .016}},
      {kH100, 90, 4, 4 * kHalf, {.025, .021, .025, .032, .021}},
      {kH100, 90, 4, 8 * kHalf, {.044, .032, .037, .048, .031}},
      {kH100, 90, 4, 32 * kHalf, {.157, .097, .119, .114, .100}},
      {kH100, 90, 4, 64 * kHalf, {.307, .184, .229, .188, .191}},
      {kH100, 90, 4, kPrompt, {.457, .272, .333, .258, .280}},
      {kH100, 90, 4, 128 * kHalf, {.608, .360, .445, .341, .372}},
      {kH100, 90, 6, kHalf, {.013, .015, .017, .023, .013}},
      {kH100, 90, 6, 2 * kHalf, {.021, .017, .021, .025, .016}},
      {kH100, 90, 6, 4 * kHalf, {.038, .026, .029, .043, .021}},
      {kH100, 90, 6, 8 * kHalf, {.070, .037, .041, .053, .031}},
      {kH100, 90, 6, 32 * kHalf, {.267, .110, .131, .131, .098}},
      {kH100, 90, 6, 64 * kHalf, {.520, .212, .250, .212, .189}},
      {kH100, 90, 6, kPrompt, {.786, .318, .367, .296, .275}},
      {kH100, 90, 6, 128 * kHalf, {1.040, .417, .486, .344, .366}},
      {kH100, 90, 8, kHalf, {0, 0, .015, .024, .011}},
      {kH100, 90, 8, 2 * kHalf, {0, 0, .017, .025, .014}},
      {kH100, 90, 8, 4 * kHalf, {0, 0, .022, .037, .018}},
      {kH100, 90, 8, 8 * kHalf, {0, 0, .037, .050, .027}},
      {kH100, 90, 8, 16 * kHalf, {0, 0, .065, .076, .046}},
      {kH100, 90, 8, 32 * kHalf, {0, 0, .125, .121, .087}},
      {kH100, 90, 8, 64 * kHalf, {0, 0, .242, .195, .165}},
      {kH100, 90, 8, kPrompt, {0, 0, .354, .267, .244}},
      {kH100, 90, 8, 128 * kHalf, {0, 0, .468, .316, .320}},
      {kH100, 90, 8, 256 * kHalf, {0, 0, .923, .561, .631}},
      {kB200, 100, 2, kHalf, {.009, .013, .016, .014, .016}},
      {kB200, 100, 2, 2 * kHalf, {.013, .018, .018, .015, .021}},
      {kB200, 100, 2, 4 * kHalf, {.019, .025, .022, .019, .029}},
      {kB200, 100, 2, 8 * kHalf, {.032, .038, .029, .037, .047}},
      {kB200, 100, 2, 32 * kHalf, {.113, .119, .072, .054, .150}},
      {kB200, 100, 2, 64 * kHalf, {.218, .233, .133, .085, .293}},
      {kB200, 100, 2, kPrompt, {.326, .360, .197, .118, .440}},
      {kB200, 100, 2, 128 * kHalf, {.427, .496, .270, .156, .615}},
      {kB200, 100, 4, kHalf, {.010, .017, .018, .017, .016}},
      {kB200, 100, 4, 2 * kHalf, {.015, .018, .019, .019, .018}},
      {kB200, 100, 4, 4 * kHalf, {.022, .027, .023, .026, .023}},
      {kB200, 100, 4, 8 * kHalf, {.038, .043, .029, .037, .033}},
      {kB200, 100, 4, 32 * kHalf, {.126, .131, .064, .076, .091}},
      {kB200, 100, 4, 64 * kHalf, {.246, .243, .116, .121, .173}},
      {kB200, 100, 4, kPrompt, {.365, .363, .169, .151, .256}},
      {kB200, 100, 4, 128 * kHalf, {.490, .482, .226, .189, .346}},
      {kB200, 100, 6, kHalf, {.012, .022, .023, .025, .016}},
      {kB200, 100, 6, 2 * kHalf, {.017, .022, .023, .026, .018}},
      {kB200, 100, 6, 4 * kHalf, {.026, .035, .026, .031, .021}},
      {kB200, 100, 6, 8 * kHalf, {.044, .048, .037, .052, .029}},
      {kB200, 100, 6, 32 * kHalf, {.149, .137, .099, .102, .070}},
      {kB200, 100, 6, 64 * kHalf, {.291, .249, .175, .180, .132}},
      {kB200, 100, 6, kPrompt, {.427, .372, .254, .241, .192}},
      {kB200, 100, 6, 128 * kHalf, {.568, .487, .334, .310, .259}},
      {kB200, 100, 8, kHalf, {.013, .025, .023, .028, .016}},
      {kB200, 100, 8, 2 * kHalf, {.020, .026, .024, .030, .017}},
      {kB200, 100, 8, 4 * kHalf, {.031, .028, .025, .034, .020}},
      {kB200, 100, 8, 8 * kHalf, {.056, .046, .035, .054, .026}},
      {kB200, 100, 8, 32 * kHalf, {.197, .144, .080, .101, .060}},
      {kB200, 100, 8, 64 * kHalf, {.389, .261, .142, .169, .109}},
      {kB200, 100, 8, kPrompt, {.564, .383, .208, .222, .160}},
      {kB200, 100, 8, 128 * kHalf, {.748, .499, .284, .278, .218}},
  };
  return cells;
}

}  // namespace tutti
