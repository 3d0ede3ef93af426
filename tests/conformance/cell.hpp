// One cell of the conformance test: an operation, how it is run and on what.
#pragma once

#include <cstdint>
#include <limits>
#include <string>
#include <string_view>
#include <vector>

#include "conformance/covering.hpp"
#include "support/run_ranks.hpp"
#include "support/workbench.hpp"
#include "tutti/types.hpp"

namespace tutti::test {

enum class Mode : std::uint8_t {
  kEager,
  kGraph,            // captured, replayed twice with fresh data
  kGraphRegistered,  // as kGraph, its plain buffers registered after the capture
};
inline constexpr Mode kAllModes[] = {Mode::kEager, Mode::kGraph, Mode::kGraphRegistered};
std::string_view to_string(Mode mode);  // "eager", "graph", "graph_registered"

struct Cell {
  std::string_view algorithm;  // an id of the catalogue; empty: what the library chooses
  RankKind kind = RankKind::kThreads;
  int ranks = 1;
  BufferKind buffers = BufferKind::kSymmetric;
  Mode mode = Mode::kEager;
  DataType dtype = DataType::kFloat32;
  OpKind op = OpKind::kSum;
  InputKind inputs = InputKind::kExact;
  std::size_t count = 0;
  int offset = 0;
  bool in_place = false;
  std::uint64_t seed = 1;

  Trial trial() const;
  std::string to_string() const;
  std::size_t payload_bytes() const { return (count + offset) * size_of(dtype); }
};

// The arguments of tutti_conformance that run this cell alone.
std::string to_arguments(const Cell& cell, Backend backend);

// What there is to choose from: one list per dimension.
struct Space {
  Backend backend = Backend::kHost;
  bool over_network = false;          // ranks are on several nodes
  bool large_for_all_dtypes = false;  // else counts above kLarge are for two dtypes only
  std::uint64_t seed = 1;

  std::vector<std::string_view> algorithms;
  std::vector<RankKind> kinds = {RankKind::kThreads, RankKind::kProcesses};
  std::vector<int> ranks = {1, 2, 3, 4, 5, 8};
  std::vector<BufferKind> buffers{std::begin(kAllBufferKinds), std::end(kAllBufferKinds)};
  std::vector<Mode> modes{std::begin(kAllModes), std::end(kAllModes)};
  std::vector<DataType> dtypes{kAllDataTypes.begin(), kAllDataTypes.end()};
  std::vector<OpKind> ops{kAllOps.begin(), kAllOps.end()};
  std::vector<InputKind> inputs{std::begin(kAllInputKinds), std::end(kAllInputKinds)};
  std::vector<std::size_t> counts = {0, 1, 7, 8, 4095, 4096, 65537, kMillion};
  std::vector<int> offsets = {0, 1, 2, 4, 8};
  std::vector<bool> in_place = {false, true};

  // Of all ranks together: for collectives whose counts are of one.
  std::size_t most_elements = std::numeric_limits<std::size_t>::max();

  static constexpr std::size_t kMillion = 1024 * 1024 + 3;
  static constexpr std::size_t kLarge = 100'000;

  std::vector<int> sizes() const;
  bool allows(const Combination& chosen) const;
  Cell at(const Combination& chosen) const;

  std::vector<Cell> selection() const;  // pairwise covering
  std::vector<Cell> everything() const;
};

}  // namespace tutti::test
