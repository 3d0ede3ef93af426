#include "fused/cuda_pipeline.hpp"

#include <algorithm>
#include <utility>
#include <variant>

#include "base/try.hpp"

namespace tutti::fused {
namespace {

using pipelines::Multiply;
using pipelines::Rows;

std::string_view preferred_product() { return to_string(MatmulAlgorithm::kOwn); }

void* rows_of_c(void* c, std::size_t ldc, const Rows& rows, DataType dtype) {
  return c == nullptr ? c : static_cast<std::byte*>(c) + rows.begin * ldc * size_of(dtype);
}

// The product of some rows. Their A is without gaps.
struct RowsProduct {
  Matmul call;
  std::vector<MatmulProduct> more;

  RowsProduct(const Matmul& whole, const std::byte* a, const Rows& rows)
      : call(whole), more(whole.more.begin(), whole.more.end()) {
    const auto ldc = [](std::size_t given, std::size_t n) { return given == 0 ? n : given; };
    call.a = a;
    call.lda = 0;
    call.m = rows.count();
    call.c = rows_of_c(call.c, ldc(call.ldc, call.n), rows, call.dtype);
    for (MatmulProduct& product : more) {
      product.c = rows_of_c(product.c, ldc(product.ldc, product.n), rows, call.dtype);
    }
    call.more = more;
  }
  RowsProduct(const RowsProduct&) = delete;
  RowsProduct& operator=(const RowsProduct&) = delete;
};

Result<std::vector<MatmulEngine::Ready>> make_ready(MatmulEngine& engine, const Matmul& product,
                                                    std::span<const pipelines::Instruction> list,
                                                    const PipelineBuffers& buffers,
                                                    const PipelineStreams& streams) {
  std::vector<MatmulEngine::Ready> made;
  for (const pipelines::Instruction& instruction : list) {
    const auto* const multiply = std::get_if<Multiply>(&instruction.action);
    if (multiply == nullptr) continue;
    TUTTI_ASSIGN(const std::byte* const a, buffers.address(multiply->a));
    const std::size_t row = buffers.row_bytes(multiply->a.buffer);
    for (std::size_t i = 0; i < multiply->c.size(); ++i) {
      const RowsProduct rows(product, a + multiply->a.rows[i].begin * row, multiply->c[i]);
      TUTTI_ASSIGN(MatmulEngine::Ready ready,
                   engine.ready(streams.at(instruction.stream).stream, rows.call));
      made.push_back(std::move(ready));
    }
  }
  return made;
}

}  // namespace

Result<PipelineProducts> PipelineProducts::make(MatmulEngine& engine, const Matmul& product,
                                                std::span<const pipelines::Instruction> list,
                                                const PipelineBuffers& buffers,
                                                const PipelineStreams& streams) {
  PipelineProducts products(engine);
  Matmul preferred = product;
  preferred.algorithm = preferred_product();
  auto made = make_ready(engine, preferred, list, buffers, streams);
  if (made.status().code() == StatusCode::kUnsupported) {
    made = make_ready(engine, product, list, buffers, streams);
  }
  TUTTI_ASSIGN(products.ready_, std::move(made));
  return products;
}

Status PipelineProducts::run() { return engine_->run(ready_[next_++]); }

Status CudaPipeline::join(int waiting, int on) {
  const PipelineStreams::One& awaited = parts_.streams.at(on);
  TUTTI_TRY(parts_.cuda.record_event(awaited.event, awaited.stream));
  return parts_.cuda.wait_event(parts_.streams.at(waiting).stream, awaited.event);
}

Status CudaPipeline::wait_for_stream(int stream, const pipelines::WaitForStream& wait) {
  return join(stream, wait.on);
}

Status CudaPipeline::await(int stream, const pipelines::Await& await) {
  return parts_.words.await(await.word, stream, parts_.streams.at(stream).stream);
}

Status CudaPipeline::signal(int stream, const pipelines::Signal& signal) {
  return parts_.words.signal(signal.word, parts_.streams.at(stream).stream);
}

Status CudaPipeline::move(int stream, const pipelines::Move& move) {
  TUTTI_ASSIGN(const std::vector<RowsCopy> copies, buffers_.copies_of(move));
  for (const RowsCopy& copy : copies) {
    TUTTI_TRY(parts_.copy(copy, parts_.streams.at(stream).stream));
  }
  return Status::ok();
}

Status CudaPipeline::multiply(int /*stream*/, const Multiply& multiply) {
  for (std::size_t i = 0; i < multiply.c.size(); ++i) TUTTI_TRY(parts_.products.run());
  return Status::ok();
}

Status CudaPipeline::end_call(const Status& status) {
  if (status.is_ok()) return status;
  for (int stream = 0; stream < buffers_.program().streams; ++stream) {
    (void)join(pipelines::kCallerStream, stream);
  }
  return status;
}

Result<MatmulPlan> plan_products(MatmulEngine& engine, const Matmul& product) {
  Matmul preferred = product;
  preferred.algorithm = preferred_product();
  auto plan = engine.plan(preferred);
  if (plan.status().code() == StatusCode::kUnsupported) return engine.plan(product);
  if (plan.is_ok()) plan->why = "C has the same bits however the rows are divided";
  return plan;
}

}  // namespace tutti::fused
