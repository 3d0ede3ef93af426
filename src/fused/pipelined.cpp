#include "fused/pipelined.hpp"

#include <fmt/format.h>

#include <utility>

#include "base/try.hpp"
#include "matmul/host.hpp"

namespace tutti {
namespace {

Status check_range(std::string_view what, int value, int most) {
  if (value >= 1 && value <= most) return Status::ok();
  return {StatusCode::kInvalidArgument,
          fmt::format("{}: pipeline.{} is {}: from 1 to {}", kAllGatherMatmul, what, value, most)};
}

pipelines::Algorithm pipeline_of(AllGatherMatmulAlgorithm algorithm) {
  switch (algorithm) {
    case AllGatherMatmulAlgorithm::kPipelinedRing:
      return pipelines::Algorithm::kRing;
    case AllGatherMatmulAlgorithm::kPipelinedTiles:
      return pipelines::Algorithm::kTiles;
    default:
      return pipelines::Algorithm::kShift;
  }
}

// Programs read inputs only.
std::byte* bytes_at(const void* memory) {
  return const_cast<std::byte*>(static_cast<const std::byte*>(memory));
}

std::string text_of(const pipelines::Description& description) {
  const bool tiled = description.algorithm == pipelines::Algorithm::kTiles;
  return fmt::format("{}{}{}, {} stream{}{}", to_string(description.protocol),
                     description.mover == pipelines::Mover::kKernel ? " by kernel" : "",
                     tiled ? fmt::format(", {} tiles", description.tiles) : "", description.streams,
                     description.streams == 1 ? "" : "s",
                     description.inter_stream_order ? " in order" : "");
}

std::string text_of(const fused::FusedRows& rows) {
  const int chunks = host_chunks_of_shard(rows);
  return fmt::format("{} order, {} chunk{} of a shard", to_string(ArrivalOrder::kRotated), chunks,
                     chunks == 1 ? "" : "s");
}

Result<fused::FusedRows> describe_fused(const AllGatherMatmulProblem& problem) {
  const Matmul& matmul = problem.matmul;
  if (matmul.m <= fused::kMostFusedRows) {
    return fused::FusedRows{
        .m = matmul.m, .row_bytes = matmul.k * size_of(matmul.dtype), .ranks = problem.place.ranks};
  }
  return Status(StatusCode::kUnsupported,
                fmt::format("{}/fused: m is {}: at most {}", kAllGatherMatmul, matmul.m,
                            fused::kMostFusedRows));
}

// Biases are not described: they come with the multiplication.
Result<pipelines::Description> describe_pipeline(const AllGatherMatmul& call, int ranks,
                                                 AllGatherMatmulAlgorithm algorithm,
                                                 const MatmulProblem& product) {
  pipelines::Description description{.algorithm = pipeline_of(algorithm),
                                     .ranks = ranks,
                                     .m = call.m,
                                     .k = call.k,
                                     .dtype = call.dtype,
                                     .streams = call.pipeline.streams,
                                     .inter_stream_order = call.pipeline.inter_stream_order};
  TUTTI_ASSIGN(description.protocol, pipelines::parse_protocol(call.pipeline.protocol));
  TUTTI_ASSIGN(description.mover, pipelines::parse_mover(call.pipeline.mover));
  if (description.algorithm == pipelines::Algorithm::kTiles) {
    description.tiles = call.pipeline.tiles;
  }
  for (int i = 0; i < product.products; ++i) {
    description.products.push_back({.n = product.product[static_cast<std::size_t>(i)].n});
  }
  return description;
}

}  // namespace

Status check(const AllGatherMatmulPipeline& pipeline) {
  TUTTI_TRY(pipelines::parse_protocol(pipeline.protocol).status().with_context(kAllGatherMatmul));
  TUTTI_TRY(pipelines::parse_mover(pipeline.mover).status().with_context(kAllGatherMatmul));
  TUTTI_TRY(check_range("streams", pipeline.streams, pipelines::kMostPipelineStreams));
  return check_range("tiles", pipeline.tiles, pipelines::kMostPipelineTiles);
}

std::string options_text(const PipelinedAllGatherMatmul& call) {
  return std::visit([](const auto& one) { return text_of(one); }, call.description);
}

Result<PipelinedAllGatherMatmul> pipelined(const AllGatherMatmulProblem& problem,
                                           const AllGatherMatmul& call,
                                           AllGatherMatmulAlgorithm algorithm) {
  PipelinedAllGatherMatmul made{.algorithm = algorithm,
                                .matmul = problem.matmul,
                                .stream = call.stream,
                                .shard = problem.shard,
                                .gathered = call.gathered,
                                .timeout = call.timeout};
  TUTTI_ASSIGN(made.product, check(problem.matmul));
  if (algorithm == AllGatherMatmulAlgorithm::kFused) {
    TUTTI_ASSIGN(made.description, describe_fused(problem));
  } else {
    TUTTI_ASSIGN(made.description,
                 describe_pipeline(call, problem.place.ranks, algorithm, made.product.problem));
  }
  made.text = fmt::format("{}, {}, {}, {}", describe(problem), to_string(call.dtype),
                          to_string(algorithm), options_text(made));
  return made;
}

std::vector<std::byte*> buffers_of(const pipelines::Program& program,
                                   const PipelinedAllGatherMatmul& call) {
  std::vector<std::byte*> buffers(program.buffers.size());
  const auto at = [&](pipelines::BufferId id) -> std::byte*& {
    return buffers[static_cast<std::size_t>(id)];
  };
  for (std::size_t id = 0; id < buffers.size(); ++id) {
    if (program.buffers[id].part == pipelines::Part::kShard) buffers[id] = bytes_at(call.shard);
  }
  for (std::size_t i = 0; i < program.products.size(); ++i) {
    at(program.products[i].b) = bytes_at(call.product.product[i].b);
    at(program.products[i].c) = bytes_at(call.product.product[i].c);
  }
  if (program.gathered != pipelines::kNoBuffer) at(program.gathered) = bytes_at(call.gathered);
  return buffers;
}

fused::HostMultiply host_multiply(const CheckedMatmul& product) {
  return [&product](const fused::HostProduct& part) -> Status {
    CheckedMatmul rows = product;
    rows.a = part.a;
    rows.problem.m = part.c.count();
    rows.problem.lda = rows.problem.k;
    for (std::size_t i = 0; i < static_cast<std::size_t>(rows.problem.products); ++i) {
      const std::size_t row_bytes = rows.problem.product[i].ldc * size_of(rows.problem.dtype);
      rows.product[i].c = static_cast<std::byte*>(rows.product[i].c) + part.c.begin * row_bytes;
    }
    run_host_matmul(rows, host_blas());
    return Status::ok();
  };
}

}  // namespace tutti
