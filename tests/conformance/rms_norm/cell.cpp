#include "conformance/rms_norm/cell.hpp"

#include <fmt/format.h>

#include <array>

#include "conformance/covering.hpp"

namespace tutti::test {
namespace {

constexpr DataType kDtypes[] = {DataType::kFloat16, DataType::kBfloat16, DataType::kFloat32};
// The first: the message's own.
constexpr DataType kOutputs[] = {DataType::kFloat32, DataType::kFloat8E4M3, DataType::kFloat8E5M2};
constexpr std::size_t kTokens[] = {0, 1, 2, 3, 7, 33, 130};
constexpr std::size_t kHiddens[] = {1024, 1032, 4096, 8192, 16384, 9112};
constexpr int kOffsets[] = {0, 1, 4, 8};
constexpr BufferKind kBuffers[] = {BufferKind::kPlain, BufferKind::kSymmetric,
                                   BufferKind::kRegistered};
constexpr InputKind kInputs[] = {InputKind::kRandom, InputKind::kExact, InputKind::kSpecial};
struct Grid {
  int blocks, threads;
};
constexpr Grid kGrids[] = {{0, 0}, {1, 64}, {3, 512}, {7, 96}, {8, 64}, {16, 160}};
constexpr std::size_t kMostElements = 300'000;

enum Dimension : std::size_t {
  kAlgorithm,
  kKind,
  kRanks,
  kBuffer,
  kGraph,
  kDtype,
  kOutput,
  kInput,
  kToken,
  kHidden,
  kOffset,
  kOutputInPlace,
  kResidualInPlace,
  kGrid,
  kDimensions
};

}  // namespace

NormSpec NormCell::spec() const {
  const bool has_8_bits = output_dtype != dtype;
  return {.inputs = {.dtype = dtype, .kind = inputs, .ranks = ranks, .seed = seed},
          .tokens = tokens,
          .hidden = hidden,
          .output_dtype = output_dtype,
          .epsilon = seed % 2 == 0 ? 1e-6F : 1e-5F,
          .scale = has_8_bits ? 0.0625F * static_cast<float>(1 + seed % 7) : 1.0F};
}

std::string NormCell::to_string() const {
  return fmt::format(
      "{} {} {} buffers={} {} dtype={} output={} inputs={} tokens={} hidden={} offset={}{}{} "
      "blocks={} threads={} seed={}",
      algorithm.empty() ? "auto" : algorithm, ranks, tutti::test::to_string(kind),
      tutti::test::to_string(buffers), graph ? "graph" : "eager", tutti::to_string(dtype),
      tutti::to_string(output_dtype), tutti::test::to_string(inputs), tokens, hidden, offset,
      output_is_input ? " output=input" : "", residual_in_place ? " residual in place" : "", blocks,
      threads, seed);
}

std::vector<NormCell> NormSpace::selection() const {
  const auto size = [](const auto& values) { return static_cast<int>(std::size(values)); };
  const std::vector<int> sizes = {size(algorithms),
                                  size(kinds),
                                  size(ranks),
                                  size(kBuffers),
                                  2,
                                  size(kDtypes),
                                  size(kOutputs),
                                  size(kInputs),
                                  size(kTokens),
                                  size(kHiddens),
                                  size(kOffsets),
                                  2,
                                  2,
                                  size(kGrids)};
  const auto is = [](const Combination& chosen, Dimension d, int value) {
    return chosen[d] == value;
  };
  const auto allowed = [&](const Combination& c) {
    if (backend == Backend::kHost && is(c, kGraph, 1)) return false;
    if (c[kOutput] > 0 && is(c, kOutputInPlace, 1)) return false;  // 8 bits
    if (c[kToken] == kAny || c[kHidden] == kAny) return true;
    return kTokens[c[kToken]] * kHiddens[c[kHidden]] <= kMostElements;
  };
  std::vector<NormCell> cells;
  for (const Combination& c : pairwise(sizes, allowed, seed)) {
    const auto at = [&](Dimension d) { return static_cast<std::size_t>(c[d]); };
    const DataType dtype = kDtypes[at(kDtype)];
    const Grid grid = kGrids[at(kGrid)];
    cells.push_back({.algorithm = algorithms[at(kAlgorithm)],
                     .kind = kinds[at(kKind)],
                     .ranks = ranks[at(kRanks)],
                     .buffers = kBuffers[at(kBuffer)],
                     .graph = c[kGraph] == 1,
                     .dtype = dtype,
                     .output_dtype = c[kOutput] == 0 ? dtype : kOutputs[at(kOutput)],
                     .inputs = kInputs[at(kInput)],
                     .tokens = kTokens[at(kToken)],
                     .hidden = kHiddens[at(kHidden)],
                     .offset = kOffsets[at(kOffset)],
                     .output_is_input = c[kOutputInPlace] == 1,
                     .residual_in_place = c[kResidualInPlace] == 1,
                     .blocks = grid.blocks,
                     .threads = grid.threads,
                     .seed = seed + cells.size() % 5});
  }
  return cells;
}

}  // namespace tutti::test
