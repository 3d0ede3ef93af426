// How A comes to a gated matmul (matmul/gated.hpp): copy engines bring it in chunks, or blocks of
// the kernel pull it by k-groups. The choice is a pure function.
//
// Copy engines leave all SMs to the product, but begin anew for each chunk, and are slow where
// several GPUs read each other. Pullers take SMs away from the whole product, and the ranks meet
// behind it. So pullers are for products that end at about the time at which A has come.
#pragma once

#include <optional>
#include <string>

#include "matmul/arrival_trace.hpp"
#include "matmul/arrival_transport.hpp"
#include "matmul/gated.hpp"
#include "matmul/problem.hpp"
#include "matmul/tiles.hpp"

namespace tutti {

struct TransportQuestion {
  MatmulProblem problem;  // m, n and k > 0; own_matmul can run it
  MatmulTiling tiling;    // with copy engines
  ArrivalPlan plan;       // likewise: two or more shards, one k-group
  int multiprocessors = 0;
  const MatmulTile* tile = nullptr;  // forced; null: the fastest
  std::optional<ArrivalTransport> forced = {};
};

struct ChosenTransport {
  ArrivalTransport transport = ArrivalTransport::kCopyEngine;
  ArrivalPlan plan;
  MatmulTiling tiling;
  int pullers = 0;  // of the question's multiprocessors; 0: copy engines
  // Predicted; 0: not, since the transport was forced, or pullers cannot be faster.
  double copy_engine_us = 0, pull_us = 0;

  // "pulled by 16 blocks, 8 k-groups"; "by copy engines"; with the prediction that decided.
  std::string text() const;
};

// kUnsupported: pullers are forced and cannot bring this A; the text says why.
Result<ChosenTransport> choose_transport(const TransportQuestion& question);

}  // namespace tutti
