// What the own kernel is told of arrivals.
#pragma once

#include "matmul/arrival_trace.hpp"
#include "matmul/kernel/arrival.hpp"

namespace tutti {

// kInvalidArgument: too many shards, chunks or k-groups, an own shard that is none of them, no
// flags, record or deadline, a misaligned own shard, or shards that no puller can bring.
Status check_arrival(const CheckedMatmul& call, const Arrival& arrival);

ArrivalChunks chunks_of(const ArrivalPlan& plan, std::size_t m, std::size_t k);

// Fills new arguments and a new gate. Requires what run_gated_matmul() requires, and that
// check_arrival() is ok.
Status fill_gated_arguments(CudaDriver& cuda, const GatedMatmul& matmul,
                            OwnMatmulArguments& arguments, ArrivalGate& gate);

}  // namespace tutti
