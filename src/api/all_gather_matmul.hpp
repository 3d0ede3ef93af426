// all_gather_matmul() and what belongs to it, with an engine for the products, and a tuning table.
// The public functions take the engine of the process, and the group's table.
#pragma once

#include "matmul/engine.hpp"
#include "planning/table.hpp"
#include "tutti/all_gather_matmul.hpp"

namespace tutti {

struct AllGatherMatmulParts {
  // NOLINTNEXTLINE(google-explicit-constructor): an engine alone says all that most callers do
  AllGatherMatmulParts(MatmulEngine& the_engine, const TuningTable* the_table = nullptr)
      : engine(the_engine), table(the_table) {}
  MatmulEngine& engine;
  const TuningTable* table;  // equal on every rank; null: the group's
};

Status all_gather_matmul(Communicator& communicator, const AllGatherMatmul& call,
                         const AllGatherMatmulParts& parts);
Result<AllGatherMatmulPlan> plan(const Communicator& communicator, const AllGatherMatmul& call,
                                 const AllGatherMatmulParts& parts);
Result<std::string> explain(const Communicator& communicator, const AllGatherMatmul& call,
                            const AllGatherMatmulParts& parts);

}  // namespace tutti
