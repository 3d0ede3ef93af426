// A gather and the product of what it has gathered.
#include "api/all_gather_matmul.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <memory>
#include <optional>
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

// By a kernel beside copy engines.
bool fuses(AllGatherMatmulAlgorithm algorithm, const AllGatherMatmulProblem& problem) {
  return algorithm == AllGatherMatmulAlgorithm::kFused && problem.place.backend == Backend::kCuda &&
         overlaps(problem);
}

// On the host, `fused` is prepared and run as pipelines are.
bool pipelines_it(AllGatherMatmulAlgorithm algorithm, const AllGatherMatmulProblem& problem) {
  return algorithm != AllGatherMatmulAlgorithm::kUnfused && !fuses(algorithm, problem) &&
         overlaps(problem);
}

struct CheckedCall {
  AllGatherMatmul call;  // with the options that a table names
  AllGatherMatmulProblem problem;
  SelectedAllGatherMatmul selected;
  std::optional<ArrivalTransport> transport;  // forced

  AllGatherMatmulAlgorithm algorithm() const { return selected.algorithm(); }
};

Result<SelectedAllGatherMatmul> select_for(const Communicator& communicator,
                                           const AllGatherMatmul& call,
                                           const AllGatherMatmulProblem& problem,
                                           const AllGatherMatmulParts& parts) {
  const CommunicatorImpl& group = communicator.impl();
  TUTTI_ASSIGN(SelectedAllGatherMatmul selected,
               select({.size = sizes_of(problem),
                       .dtype = call.dtype,
                       .algorithm = call.algorithm,
                       .tune = group.tune(),
                       .only_nccl = group.only_nccl()},
                      group.topology(), parts.table != nullptr ? *parts.table : group.table()));
  if (!fuses(selected.algorithm(), problem) || !selected.is_by_table()) return selected;
  TUTTI_ASSIGN(const MatmulProblem product, shared_product(problem));
  const Status can = parts.engine.check_gated(product);
  return can.is_ok() ? selected : unfused_instead(selected, can.message());
}

Result<CheckedCall> check_call(const Communicator& communicator, const AllGatherMatmul& call,
                               const AllGatherMatmulParts& parts) {
  TUTTI_TRY(check_options(kAllGatherMatmul, {.timeout = call.timeout}));
  TUTTI_TRY(check(call.pipeline));
  if (!call.algorithm.empty()) {
    TUTTI_TRY(parse_all_gather_matmul_algorithm(call.algorithm).status());
  }
  CheckedCall checked{.call = call};
  const auto transport = parse_transport(call.fused.transport);
  TUTTI_TRY(transport.status().with_context(kAllGatherMatmul));
  checked.transport = *transport;
  TUTTI_ASSIGN(checked.problem, check(call, place_of(communicator)));
  TUTTI_ASSIGN(checked.selected, select_for(communicator, call, checked.problem, parts));
  const AllGatherMatmulWay& way = checked.selected.way;
  if (checked.selected.is_by_table() && way.transport) checked.transport = way.transport;
  if (checked.selected.is_by_table() && is_pipelined(way.algorithm)) {
    AllGatherMatmulPipeline& pipeline = checked.call.pipeline;
    pipeline.protocol = to_string(way.protocol);
    pipeline.streams = way.streams;
    if (way.tiles > 0) pipeline.tiles = way.tiles;
    pipeline.mover = to_string(way.mover);
    pipeline.inter_stream_order = way.inter_stream_order;
  }
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
// and memory is allocated before this rank waits for others on its GPU. `how`: changes the gather.
Status run_unfused(Communicator& communicator, const CheckedCall& checked, MatmulEngine& engine,
                   Call (*how)(Call) = nullptr) {
  const AllGatherMatmulProblem& problem = checked.problem;
  const auto product = engine.ready(checked.call.stream, problem.matmul);
  TUTTI_TRY(product.status().with_context(kAllGatherMatmul));
  if (problem.gathers) {
    TUTTI_ASSIGN(Call gather, gather_of(problem, checked.call));
    TUTTI_TRY(submit(communicator, how == nullptr ? gather : how(std::move(gather))));
  }
  return engine.run(*product).with_context(kAllGatherMatmul);
}

// Pieces are equal, and the output ends where A does: a rank without rows still says where its A
// is, since that tells where the others' is.
Result<Call> fused_gather_of(const AllGatherMatmulProblem& problem, const AllGatherMatmul& call) {
  const auto [rank, ranks, backend] = problem.place;
  if (call.a == nullptr) {
    return Status(StatusCode::kUnsupported,
                  fmt::format("{}/fused: a is null, which has to be in symmetric memory on ranks "
                              "without rows, too",
                              kAllGatherMatmul));
  }
  return checked({.collective = Collective::kAllGather,
                  .input = call.a,
                  .output = problem.target,
                  .count = problem.shard_elements(0),
                  .dtype = call.dtype,
                  .stream = call.stream,
                  .options = {.timeout = call.timeout},
                  .arrivals = {.output_bytes = call.m * call.k * size_of(call.dtype)},
                  .step_of = std::make_shared<const std::string>(describe(problem))},
                 rank, ranks);
}

Result<FusedGather> fused_of(const CheckedCall& checked, MatmulEngine& engine) {
  TUTTI_ASSIGN(Call gather, fused_gather_of(checked.problem, checked.call));
  return FusedGather{.gather = std::move(gather),
                     .product = checked.problem.matmul,
                     .with_own = checked.call.gathered != nullptr,
                     .transport = checked.transport,
                     .engine = engine};
}

bool fuses(const CheckedCall& checked) { return fuses(checked.algorithm(), checked.problem); }
bool pipelines_it(const CheckedCall& checked) {
  return pipelines_it(checked.algorithm(), checked.problem);
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
                                              const CheckedCall& checked, MatmulEngine& engine) {
  const AllGatherMatmulAlgorithm algorithm = checked.algorithm();
  TUTTI_ASSIGN(const std::string why_not,
               why_not_pipelined(communicator.impl(), checked.call.stream));
  if (!why_not.empty()) {
    return Status(StatusCode::kUnsupported,
                  fmt::format("{}/{}: {}", kAllGatherMatmul, to_string(algorithm), why_not));
  }
  TUTTI_ASSIGN(auto pipelined, tutti::pipelined(checked.problem, checked.call, algorithm));
  pipelined.engine = &engine;
  return pipelined;
}

// What runs in place of what a table names, and cannot run.
struct Instead {
  SelectedAllGatherMatmul selected;
  // The other ranks run fused, and expect its gather. M is a multiple of the ranks: select() fuses
  // no other call that a table decides.
  bool by_copy_engine = false;
};

// Nothing if `status` is no reason. What the ranks have alike makes all of them run unfused. What
// is only this rank's own, such as the alignment of its C, the others do not know.
Result<std::optional<Instead>> instead_of(const Communicator& communicator,
                                          const CheckedCall& checked, const Status& status,
                                          MatmulEngine& engine) {
  std::optional<Instead> instead;
  if (!communicator.status().is_ok()) return instead;
  const bool unsupported = status.code() == StatusCode::kUnsupported;
  // Every rank is told that one has no memory for a pipeline. Fused calls in captures may be too
  // many, on one rank alone: it still gathers with the others.
  const bool exhausted = status.code() == StatusCode::kResourceExhausted;
  if (!checked.selected.is_by_table() || !(unsupported || exhausted)) return instead;
  instead.emplace(Instead{unfused_instead(checked.selected, status.message())});
  if (!fuses(checked)) return instead;
  TUTTI_ASSIGN(const FusedGather fused, fused_of(checked, engine));
  const Status shared = check_fused_gather(communicator.impl(), fused);
  if (!shared.is_ok() && shared.code() != StatusCode::kUnsupported) return shared;
  instead->by_copy_engine = shared.is_ok();
  if (shared.is_ok()) {
    instead->selected.why += "; copy engines gather A, as on ranks that run fused";
  } else {
    instead->selected = unfused_instead(checked.selected, shared.message());
  }
  return instead;
}

Status run_selected(Communicator& communicator, const CheckedCall& checked, MatmulEngine& engine) {
  if (pipelines_it(checked)) {
    TUTTI_ASSIGN(const auto pipelined, pipelined_of(communicator, checked, engine));
    return communicator.impl().execute(pipelined);
  }
  TUTTI_ASSIGN(const FusedGather fused, fused_of(checked, engine));
  return run_fused(communicator.impl(), fused);
}

Status run_call(Communicator& communicator, const CheckedCall& checked, MatmulEngine& engine) {
  if (!fuses(checked) && !pipelines_it(checked)) return run_unfused(communicator, checked, engine);
  const Status status = run_selected(communicator, checked, engine);
  if (status.is_ok()) return status;
  TUTTI_ASSIGN(const auto instead, instead_of(communicator, checked, status, engine));
  if (!instead) return status;
  return run_unfused(communicator, checked, engine,
                     instead->by_copy_engine ? by_copy_engine : nullptr);
}

// What a call asks of planning where it gathers.
Result<Request> question_of(const Communicator& communicator, const CheckedCall& checked,
                            bool by_copy_engines = false) {
  TUTTI_ASSIGN(Call gather, gather_of(checked.problem, checked.call));
  return communicator.impl().question(by_copy_engines ? by_copy_engine(std::move(gather)) : gather);
}

Result<AllGatherMatmulPlan> make_fused_plan(const Communicator& communicator,
                                            const CheckedCall& checked, MatmulEngine& engine) {
  TUTTI_ASSIGN(const FusedGather fused, fused_of(checked, engine));
  TUTTI_ASSIGN(const FusedPlan plan, plan_fused(communicator.impl(), fused));
  return AllGatherMatmulPlan{.algorithm = std::string(to_string(checked.algorithm())),
                             .config = plan.config,
                             .why = fmt::format("{}; {}", checked.selected.why, plan.why)};
}

Result<AllGatherMatmulPlan> make_pipelined_plan(const Communicator& communicator,
                                                const CheckedCall& checked, MatmulEngine& engine) {
  TUTTI_ASSIGN(const auto pipelined, pipelined_of(communicator, checked, engine));
  const bool on_gpu = communicator.impl().cuda() != nullptr;
  auto product = on_gpu ? fused::plan_products(engine, checked.problem.matmul)
                        : engine.plan(checked.problem.matmul);
  TUTTI_TRY(product.status().with_context(kAllGatherMatmul));
  const std::string_view name = to_string(checked.algorithm());
  return AllGatherMatmulPlan{
      .algorithm = std::string(name),
      .config = fmt::format("{}, {}, {}", name, options_text(pipelined), product->algorithm),
      .why = fmt::format("{}; {}", checked.selected.why, product->why)};
}

Result<AllGatherMatmulPlan> make_unfused_plan(const Communicator& communicator,
                                              const CheckedCall& checked, const Instead& as,
                                              MatmulEngine& engine) {
  auto product = engine.plan(checked.problem.matmul);
  TUTTI_TRY(product.status().with_context(kAllGatherMatmul));
  const CommunicatorImpl& group = communicator.impl();
  std::vector<std::string> steps;
  if (checked.problem.gathers) {
    TUTTI_ASSIGN(const Request request, question_of(communicator, checked, as.by_copy_engine));
    TUTTI_ASSIGN(const Plan gather, choose(request, group.topology(), group.table()));
    steps.push_back(gather.alone ? "copy" : gather.algorithm);
  }
  if (!product->algorithm.empty()) {
    steps.push_back(fmt::format("{}{}{}", product->algorithm, product->config.empty() ? "" : " ",
                                product->config));
  }
  if (steps.empty()) return AllGatherMatmulPlan{.why = product->why};
  return AllGatherMatmulPlan{.algorithm = std::string(to_string(as.selected.algorithm())),
                             .config = fmt::format("{}", fmt::join(steps, ", ")),
                             .why = fmt::format("{}; {}", as.selected.why, product->why)};
}

Result<AllGatherMatmulPlan> make_plan(const Communicator& communicator, const AllGatherMatmul& call,
                                      const AllGatherMatmulParts& parts) {
  MatmulEngine& engine = parts.engine;
  TUTTI_ASSIGN(const CheckedCall checked, check_call(communicator, call, parts));
  if (!fuses(checked) && !pipelines_it(checked)) {
    return make_unfused_plan(communicator, checked, {checked.selected}, engine);
  }
  auto plan = fuses(checked) ? make_fused_plan(communicator, checked, engine)
                             : make_pipelined_plan(communicator, checked, engine);
  if (plan.is_ok()) return plan;
  TUTTI_ASSIGN(const auto instead, instead_of(communicator, checked, plan.status(), engine));
  return instead ? make_unfused_plan(communicator, checked, *instead, engine) : plan;
}

// What prevents the algorithms from running a call for which overlaps() holds.
Result<WhyNotOverlapped> why_not_overlapped(const Communicator& communicator,
                                            const CheckedCall& checked, MatmulEngine& engine) {
  WhyNotOverlapped why_not;
  TUTTI_ASSIGN(why_not.pipelined, why_not_pipelined(communicator.impl(), checked.call.stream));
  if (communicator.backend() == Backend::kCuda) {
    const auto fused = fused_of(checked, engine);
    const Status planned =
        fused.is_ok() ? plan_fused(communicator.impl(), *fused).status() : fused.status();
    why_not.fused = planned.message();
    return why_not;
  }
  why_not.fused = why_not.pipelined;
  if (!why_not.fused.empty()) return why_not;
  const auto fused = pipelined(checked.problem, checked.call, AllGatherMatmulAlgorithm::kFused);
  why_not.fused = fused.status().message();
  return why_not;
}

// What runs: the selected algorithm, or what runs in its place.
Result<Instead> settled(const Communicator& communicator, const CheckedCall& checked,
                        const WhyNotOverlapped& why_not, MatmulEngine& engine) {
  if (!fuses(checked) && !pipelines_it(checked)) return Instead{checked.selected};
  const std::string& why = is_pipelined(checked.algorithm()) ? why_not.pipelined : why_not.fused;
  if (why.empty()) return Instead{checked.selected};
  TUTTI_ASSIGN(const auto instead,
               instead_of(communicator, checked, {StatusCode::kUnsupported, why}, engine));
  return instead.value_or(Instead{checked.selected});
}

}  // namespace

Result<std::string> explain(const Communicator& communicator, const AllGatherMatmul& call,
                            const AllGatherMatmulParts& parts) {
  TUTTI_ASSIGN(const CheckedCall checked, check_call(communicator, call, parts));
  const auto product = parts.engine.explain(checked.problem.matmul);
  TUTTI_TRY(product.status().with_context(kAllGatherMatmul));
  WhyNotOverlapped why_not{.pipelined = "there is nothing to overlap",
                           .fused = "there is nothing to fuse"};
  if (overlaps(checked.problem)) {
    TUTTI_ASSIGN(why_not, why_not_overlapped(communicator, checked, parts.engine));
  }
  TUTTI_ASSIGN(const Instead runs, settled(communicator, checked, why_not, parts.engine));
  std::string text = explain(checked.problem, runs.selected, why_not);
  const bool pipelines = pipelines_it(runs.selected.algorithm(), checked.problem);
  if (checked.problem.gathers && !pipelines) {
    const CommunicatorImpl& group = communicator.impl();
    TUTTI_ASSIGN(const Request request, question_of(communicator, checked, runs.by_copy_engine));
    text += explain(request, group.topology(), group.table());
  }
  return text + *product;
}

Status all_gather_matmul(Communicator& communicator, const AllGatherMatmul& call,
                         const AllGatherMatmulParts& parts) {
  return guarded(communicator, [&]() -> Status {
    if (in_group()) return invalid(kAllGatherMatmul, "not between group_start() and group_end()");
    TUTTI_TRY(communicator.impl().status());
    return on_device_of(communicator.impl(), [&]() -> Status {
      TUTTI_ASSIGN(const CheckedCall checked, check_call(communicator, call, parts));
      return run_call(communicator, checked, parts.engine);
    });
  });
}

Result<AllGatherMatmulPlan> plan(const Communicator& communicator, const AllGatherMatmul& call,
                                 const AllGatherMatmulParts& parts) {
  return guarded([&] {
    return on_device_of(communicator.impl(), [&] { return make_plan(communicator, call, parts); });
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
    return on_device_of(communicator.impl(),
                        [&] { return explain(communicator, call, matmul_engine()); });
  });
}

}  // namespace tutti
