// One cell of the conformance test of all_reduce_residual_rms_norm.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "support/norm_reference.hpp"
#include "support/run_ranks.hpp"
#include "support/workbench.hpp"
#include "tutti/types.hpp"

namespace tutti::test {

struct NormCell {
  std::string_view algorithm;  // empty: what the library chooses
  RankKind kind = RankKind::kThreads;
  int ranks = 2;
  BufferKind buffers = BufferKind::kPlain;
  bool graph = false;  // captured, and replayed twice
  DataType dtype = DataType::kBfloat16;
  DataType output_dtype = DataType::kBfloat16;
  InputKind inputs = InputKind::kRandom;
  std::size_t tokens = 1, hidden = 1024;
  int offset = 0;                // of all buffers, in elements from a 256-byte boundary
  bool output_is_input = false;  // in place
  bool residual_in_place = false;
  int blocks = 0, threads = 0;  // 0: as planned
  std::uint64_t seed = 1;

  NormSpec spec() const;
  std::string to_string() const;
};

// What there is to choose from, and a covering in which every pair of values occurs.
struct NormSpace {
  Backend backend = Backend::kHost;
  std::vector<std::string_view> algorithms;
  std::vector<RankKind> kinds = {RankKind::kThreads, RankKind::kProcesses};
  std::vector<int> ranks = {1, 2, 3, 4, 5, 8};
  std::uint64_t seed = 1;

  std::vector<NormCell> selection() const;
};

}  // namespace tutti::test
