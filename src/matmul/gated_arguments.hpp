// What the own kernel is told of arrivals.
#pragma once

#include "matmul/arrival_trace.hpp"
#include "matmul/kernel/arrival.hpp"

namespace tutti {

// kInvalidArgument: too many shards, chunks or k-groups, an own shard that is none of them, no
// flags, record or deadline, a misaligned own shard, or shards that no puller can bring.
Status check_arrival(const CheckedMatmul& call, const Arrival& arrival);

ArrivalChunks chunks_of(const ArrivalPlan& plan, std::size_t m, std::size_t k);

// The parts and the order of a gate that has its chunks. Of `arguments`, its cluster and order
// matter. `own_part`: the own shard, which has rows, is read from a matrix of its own.
void fill_sweep(const MatmulTiling& tiling, const OwnMatmulArguments& arguments,
                const ArrivalPlan& plan, bool own_part, ArrivalGate& gate);

// Fills new arguments and a new gate. Requires what run_gated_matmul() requires, and that
// check_arrival() is ok.
Status fill_gated_arguments(CudaDriver& cuda, const GatedMatmul& matmul,
                            OwnMatmulArguments& arguments, ArrivalGate& gate);

}  // namespace tutti
