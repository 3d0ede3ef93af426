// A gather and the product of what it has gathered.
#include "api/all_gather_matmul.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <memory>
#include <utility>
#include <vector>

#include "api/fused_gather.hpp"
#include "api/group.hpp"
#include "api/guard.hpp"
#include "base/try.hpp"
#include "drivers/cuda.hpp"
#include "fused/all_gather_matmul.hpp"
#include "fused/cuda_pipeline.hpp"
#include "fused/pipelined.hpp"
#include "group/communicator_impl.hpp"
#include "group/on_device.hpp"
#include "operation/checks.hpp"
#include "planning/choose.hpp"

namespace tutti {
namespace {

AllGatherMatmulRank place_of(const Communicator& communicator) {
  return {communicator.rank(), communicator.size(), communicator.backend()};
}

struct CheckedCall {
  AllGatherMatmulProblem problem;
  SelectedAllGatherMatmul selected;
};

Result<CheckedCall> check_call(const Communicator& communicator, const AllGatherMatmul& call) {
  TUTTI_TRY(check_options(kAllGatherMatmul, {.timeout = call.timeout}));
  TUTTI_TRY(check(call.pipeline));
  CheckedCall checked;
  TUTTI_ASSIGN(checked.selected, select_all_gather_matmul(call.algorithm));
  TUTTI_ASSIGN(checked.problem, check(call, place_of(communicator)));
  return checked;
}

// The gather, as the group takes it.
Result<Call> gather_of(const AllGatherMatmulProblem& problem, const AllGatherMatmul& call) {
  const auto [rank, ranks, backend] = problem.place;
  const auto whole = std::make_shared<const std::string>(describe(problem));
  Call gather{.collective = problem.even ? Collective::kAllGather : Collective::kAllGatherV,
              .input = problem.shard,
              .output = problem.target,
              .dtype = call.dtype,
              .stream = call.stream,
              .options = {.timeout = call.timeout},
              .step_of = whole};
  if (problem.even) {
    gather.count = problem.shard_elements(rank);
    return checked(std::move(gather), rank, ranks);
  }
  for (int r = 0; r < ranks; ++r) gather.lengths.taken.push_back(problem.shard_elements(r));
  gather.lengths.sent.assign(static_cast<std::size_t>(ranks), problem.shard_elements(rank));
  return checked_uneven(std::move(gather), problem.shard_elements(0), rank, ranks);
}

// The product is made ready first: a call that is refused has not gathered, and kernels are loaded
// and memory is allocated before this rank waits for others on its GPU.
Status run_unfused(Communicator& communicator, const AllGatherMatmulProblem& problem,
                   const AllGatherMatmul& call, MatmulEngine& engine) {
  const auto product = engine.ready(call.stream, problem.matmul);
  TUTTI_TRY(product.status().with_context(kAllGatherMatmul));
  if (problem.gathers) {
    TUTTI_ASSIGN(const Call gather, gather_of(problem, call));
    TUTTI_TRY(submit(communicator, gather));
  }
  return engine.run(*product).with_context(kAllGatherMatmul);
}

Result<FusedGather> fused_of(const AllGatherMatmulProblem& problem, const AllGatherMatmul& call,
                             MatmulEngine& engine) {
  TUTTI_ASSIGN(Call gather, gather_of(problem, call));
  return FusedGather{.gather = std::move(gather),
                     .product = problem.matmul,
                     .with_own = call.gathered != nullptr,
                     .engine = engine};
}

bool fuses(const CheckedCall& checked) {
  return checked.selected.algorithm == AllGatherMatmulAlgorithm::kFused &&
         overlaps(checked.problem);
}

bool pipelines_it(const CheckedCall& checked) {
  return is_pipelined(checked.selected.algorithm) && overlaps(checked.problem);
}

// Why no pipeline can run a call for which overlaps() holds, as far as this rank sees by itself;
// empty if one can.
Result<std::string> why_not_pipelined(CommunicatorImpl& group, Stream stream) {
  if (group.heap() == nullptr) return fmt::format("no symmetric memory: {}", group.why_no_heap());
  if (group.cuda() == nullptr) return std::string();
  TUTTI_ASSIGN(const CudaCapture capture, group.cuda()->capture_of(stream));
  if (capture.state != CudaCapture::State::kNone) {
    return std::string("a captured constant cannot count calls: not in a stream capture");
  }
  TUTTI_ASSIGN(const CudaDeviceProperties gpu, group.cuda()->properties(group.device()));
  if (gpu.stream_memory_operations) return std::string();
  return std::string("the GPU has no 64-bit stream memory operations");
}

Result<PipelinedAllGatherMatmul> pipelined_of(const Communicator& communicator,
                                              const CheckedCall& checked,
                                              const AllGatherMatmul& call, MatmulEngine& engine) {
  const AllGatherMatmulAlgorithm algorithm = checked.selected.algorithm;
  TUTTI_ASSIGN(const std::string why_not, why_not_pipelined(communicator.impl(), call.stream));
  if (!why_not.empty()) {
    return Status(StatusCode::kUnsupported,
                  fmt::format("{}/{}: {}", kAllGatherMatmul, to_string(algorithm), why_not));
  }
  TUTTI_ASSIGN(auto pipelined, tutti::pipelined(checked.problem, call, algorithm));
  pipelined.engine = &engine;
  return pipelined;
}

Status run_call(Communicator& communicator, const CheckedCall& checked, const AllGatherMatmul& call,
                MatmulEngine& engine) {
  if (pipelines_it(checked)) {
    TUTTI_ASSIGN(const auto pipelined, pipelined_of(communicator, checked, call, engine));
    return communicator.impl().execute(pipelined);
  }
  if (!fuses(checked)) return run_unfused(communicator, checked.problem, call, engine);
  TUTTI_ASSIGN(const FusedGather fused, fused_of(checked.problem, call, engine));
  return run_fused(communicator.impl(), fused);
}

// What a call asks of planning where it gathers.
Result<Request> question_of(const Communicator& communicator, const CheckedCall& checked,
                            const AllGatherMatmul& call) {
  TUTTI_ASSIGN(const Call gather, gather_of(checked.problem, call));
  return communicator.impl().question(gather);
}

Result<AllGatherMatmulPlan> make_fused_plan(const Communicator& communicator,
                                            const CheckedCall& checked, const FusedGather& fused) {
  TUTTI_ASSIGN(const MatmulPlan product, plan_fused(communicator.impl(), fused));
  return AllGatherMatmulPlan{.algorithm = std::string(to_string(checked.selected.algorithm)),
                             .config = fmt::format("all_gather/copy_engine beside {} {}",
                                                   product.algorithm, product.config),
                             .why = fmt::format("{}; {}", checked.selected.why, product.why)};
}

Result<AllGatherMatmulPlan> make_pipelined_plan(const Communicator& communicator,
                                                const CheckedCall& checked,
                                                const AllGatherMatmul& call, MatmulEngine& engine) {
  TUTTI_ASSIGN(const auto pipelined, pipelined_of(communicator, checked, call, engine));
  const bool on_gpu = communicator.impl().cuda() != nullptr;
  auto product = on_gpu ? fused::plan_products(engine, checked.problem.matmul)
                        : engine.plan(checked.problem.matmul);
  TUTTI_TRY(product.status().with_context(kAllGatherMatmul));
  const std::string_view name = to_string(checked.selected.algorithm);
  return AllGatherMatmulPlan{
      .algorithm = std::string(name),
      .config =
          fmt::format("{}, {}, {}", name, options_text(pipelined.description), product->algorithm),
      .why = fmt::format("{}; {}", checked.selected.why, product->why)};
}

Result<AllGatherMatmulPlan> make_plan(const Communicator& communicator, const AllGatherMatmul& call,
                                      MatmulEngine& engine) {
  TUTTI_ASSIGN(const CheckedCall checked, check_call(communicator, call));
  if (fuses(checked)) {
    TUTTI_ASSIGN(const FusedGather fused, fused_of(checked.problem, call, engine));
    return make_fused_plan(communicator, checked, fused);
  }
  if (pipelines_it(checked)) return make_pipelined_plan(communicator, checked, call, engine);
  auto product = engine.plan(checked.problem.matmul);
  TUTTI_TRY(product.status().with_context(kAllGatherMatmul));
  const CommunicatorImpl& group = communicator.impl();
  std::vector<std::string> steps;
  if (checked.problem.gathers) {
    TUTTI_ASSIGN(const Request request, question_of(communicator, checked, call));
    TUTTI_ASSIGN(const Plan gather, choose(request, group.topology(), group.table()));
    steps.push_back(gather.alone ? "copy" : gather.algorithm);
  }
  if (!product->algorithm.empty()) {
    steps.push_back(fmt::format("{}{}{}", product->algorithm, product->config.empty() ? "" : " ",
                                product->config));
  }
  if (steps.empty()) return AllGatherMatmulPlan{.why = product->why};
  return AllGatherMatmulPlan{.algorithm = std::string(to_string(checked.selected.algorithm)),
                             .config = fmt::format("{}", fmt::join(steps, ", ")),
                             .why = fmt::format("{}; {}", checked.selected.why, product->why)};
}

Result<std::string> explain_call(const Communicator& communicator, const AllGatherMatmul& call) {
  TUTTI_ASSIGN(const CheckedCall checked, check_call(communicator, call));
  const auto product = matmul_engine().explain(checked.problem.matmul);
  TUTTI_TRY(product.status().with_context(kAllGatherMatmul));
  WhyNotOverlapped why_not{.pipelined = "there is nothing to overlap",
                           .fused = "there is nothing to fuse"};
  if (overlaps(checked.problem)) {
    TUTTI_ASSIGN(const FusedGather fused, fused_of(checked.problem, call, matmul_engine()));
    TUTTI_ASSIGN(why_not.pipelined, why_not_pipelined(communicator.impl(), call.stream));
    why_not.fused = plan_fused(communicator.impl(), fused).status().message();
  }
  std::string text = explain(checked.problem, checked.selected, why_not);
  if (checked.problem.gathers && !pipelines_it(checked)) {
    const CommunicatorImpl& group = communicator.impl();
    TUTTI_ASSIGN(const Request request, question_of(communicator, checked, call));
    text += explain(request, group.topology(), group.table());
  }
  return text + *product;
}

}  // namespace

Status all_gather_matmul(Communicator& communicator, const AllGatherMatmul& call,
                         MatmulEngine& engine) {
  return guarded(communicator, [&]() -> Status {
    if (in_group()) return invalid(kAllGatherMatmul, "not between group_start() and group_end()");
    TUTTI_TRY(communicator.impl().status());
    TUTTI_ASSIGN(const CheckedCall checked, check_call(communicator, call));
    return on_device_of(communicator.impl(),
                        [&] { return run_call(communicator, checked, call, engine); });
  });
}

Result<AllGatherMatmulPlan> plan(const Communicator& communicator, const AllGatherMatmul& call,
                                 MatmulEngine& engine) {
  return guarded([&] {
    return on_device_of(communicator.impl(), [&] { return make_plan(communicator, call, engine); });
  });
}

Status all_gather_matmul(Communicator& communicator, const AllGatherMatmul& call) {
  return guarded(communicator,
                 [&] { return all_gather_matmul(communicator, call, matmul_engine()); });
}

Result<std::size_t> all_gather_matmul_workspace(const Communicator& communicator,
                                                const AllGatherMatmul& call) {
  return guarded([&] { return workspace_bytes(call, place_of(communicator)); });
}

Result<AllGatherMatmulPlan> plan(const Communicator& communicator, const AllGatherMatmul& call) {
  return guarded([&] { return plan(communicator, call, matmul_engine()); });
}

Result<std::string> explain(const Communicator& communicator, const AllGatherMatmul& call) {
  return guarded([&] {
    return on_device_of(communicator.impl(), [&] { return explain_call(communicator, call); });
  });
}

}  // namespace tutti
