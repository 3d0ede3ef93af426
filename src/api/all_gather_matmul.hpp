// all_gather_matmul() and what belongs to it, with an engine for the products. The public functions
// take that of the process.
#pragma once

#include "matmul/engine.hpp"
#include "tutti/all_gather_matmul.hpp"

namespace tutti {

Status all_gather_matmul(Communicator& communicator, const AllGatherMatmul& call,
                         MatmulEngine& engine);
Result<AllGatherMatmulPlan> plan(const Communicator& communicator, const AllGatherMatmul& call,
                                 MatmulEngine& engine);

}  // namespace tutti
