// The fused form of all_gather_matmul: own_matmul multiplies what is there of A, while the rest
// comes. Either copy engines gather it in a stream beside the caller's, or blocks of own_matmul
// pull it (matmul/transport.hpp). To the other ranks both are the same: a rank meets them, reads
// what they have, and meets them again. So each rank chooses for itself.
#pragma once

#include <optional>
#include <string>

#include "group/communicator_impl.hpp"
#include "matmul/engine.hpp"
#include "matmul/gated.hpp"

namespace tutti {

struct FusedGather {
  // An all_gather, as the group takes it; its stream is the caller's. Its pieces are of ceil(M /
  // ranks) rows, and its output ends with row M (Arrivals::output_bytes).
  Call gather;
  Matmul product;  // of what is gathered
  // This rank's rows are copied to the output, too, behind the product, which does not need them
  // there.
  bool with_own = false;
  ArrivalOrder order = ArrivalOrder::kRotated;     // with copy engines
  std::optional<ArrivalTransport> transport = {};  // forced
  MatmulEngine& engine;
};

// kUnsupported if it cannot run; the text says why. What all ranks have alike gives the same answer
// on all. Then nothing was enqueued, and the group stays usable. The group's device is current.
struct FusedPlan {
  std::string config;  // "A pulled by own_matmul 128x256x64, cluster 2x1, 4 stages"
  std::string why;
};
Result<FusedPlan> plan_fused(CommunicatorImpl& group, const FusedGather& call);
Status run_fused(CommunicatorImpl& group, const FusedGather& call);

// The same of what all ranks have alike: whether A can be gathered for it. What is only this rank's
// own, as alignment, is not looked at.
Status check_fused_gather(CommunicatorImpl& group, const FusedGather& call);
// The gather of a fused call. A rank that cannot multiply meanwhile takes part in it in this way.
Call by_copy_engine(Call gather);

// In how many chunks a shard is brought.
int chunks_of_shard(std::size_t rows, std::size_t row_bytes, int shards);

}  // namespace tutti
