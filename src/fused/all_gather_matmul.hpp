// One all_gather_matmul as a value: what its arguments mean on this rank, and what is wrong with
// them. It asks nobody.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "matmul/problem.hpp"
#include "pipelines/description.hpp"
#include "planning/all_gather_matmul.hpp"
#include "tutti/all_gather_matmul.hpp"

namespace tutti {

// Who makes a call.
struct AllGatherMatmulRank {
  int rank = 0, ranks = 1;
  Backend backend = Backend::kHost;
};

// A checked call on one rank.
struct AllGatherMatmulProblem {
  AllGatherMatmulRank place;
  bool even = true;             // all shards have as many rows
  bool gathers = false;         // A is gathered; by one rank alone, copied
  const void* shard = nullptr;  // null: this rank has no rows
  void* target = nullptr;       // of the gather
  Matmul matmul;                // of the gathered A; its `more` is the caller's

  // Of rank r.
  pipelines::Rows rows(int r) const { return pipelines::shard_rows(matmul.m, place.ranks, r); }
  std::size_t shard_elements(int r) const { return rows(r).count() * matmul.k; }
};

// The errors of all_gather_matmul() that this rank can see by itself, but for memory that the
// matmul cannot reach. Equal sizes and types give equal answers on every rank.
Result<AllGatherMatmulProblem> check(const AllGatherMatmul& call, const AllGatherMatmulRank& place);

// What the public function says. Pointers do not matter, but for whether `gathered` is null.
Result<std::size_t> workspace_bytes(const AllGatherMatmul& call, const AllGatherMatmulRank& place);

// All that ranks must agree on, but for the type, which the gather has: "all_gather_matmul (m 64, n
// 32 + 8, k 128, column, 2 Bs)".
std::string describe(const AllGatherMatmulProblem& problem);

AllGatherMatmulSize sizes_of(const AllGatherMatmulProblem& problem);

// The product that all ranks have alike: as if all matrices were aligned and had no gaps, and
// without biases. Of a call for which overlaps() holds.
Result<MatmulProblem> shared_product(const AllGatherMatmulProblem& problem);

// Whether there is both something to gather and something to multiply: else nothing is fused.
bool overlaps(const AllGatherMatmulProblem& problem);

// Why algorithms cannot run a call; empty if they can.
struct WhyNotOverlapped {
  std::string pipelined, fused;
};
// The problem, then a line for each algorithm, with its time if a table has it; * marks the
// selected one.
std::string explain(const AllGatherMatmulProblem& problem, const SelectedAllGatherMatmul& selected,
                    const WhyNotOverlapped& why_not);

}  // namespace tutti
