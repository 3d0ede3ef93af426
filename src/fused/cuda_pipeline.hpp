// Pipelines of all_gather + matmul on a GPU: a call enqueues its list in streams, and returns.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <utility>
#include <vector>

#include "drivers/cuda.hpp"
#include "fused/pipeline_buffers.hpp"
#include "matmul/engine.hpp"
#include "pipelines/runtime.hpp"

namespace tutti::fused {

// In which streams a call runs, and an event for each. Recording an event anew does not change for
// what a stream waits already.
struct PipelineStreams {
  struct One {
    Stream stream = nullptr;
    CudaEvent event = nullptr;
  };
  One caller;
  std::span<const One> own = {};  // Program::streams of them, or more

  // `stream`: a number of the program's, or kCallerStream.
  const One& at(int stream) const {
    return stream == pipelines::kCallerStream ? caller : own[static_cast<std::size_t>(stream)];
  }
};

// The words of a call: by stream memory operations. A failure of the group ends all waits.
class PipelineWords {
 public:
  virtual ~PipelineWords() = default;
  // `number`: that of the stream in the program.
  virtual Status await(const pipelines::Word& word, int number, Stream stream) = 0;
  virtual Status signal(const pipelines::Word& word, Stream stream) = 0;
};

// Enqueues a copy, by what the description names as the mover.
using EnqueueCopy = std::function<Status(const RowsCopy& copy, Stream stream)>;

// The matmuls of a call, in the order of its list. Once made, none of them can be refused any more.
class PipelineProducts {
 public:
  // `product`: of the gathered A; its C is divided by rows. `buffers` are bound. By own_matmul, if
  // that can multiply all rows: then C has the same bits however rows are divided. Otherwise each
  // is multiplied as matmul() does by itself.
  static Result<PipelineProducts> make(MatmulEngine& engine, const Matmul& product,
                                       std::span<const pipelines::Instruction> list,
                                       const PipelineBuffers& buffers,
                                       const PipelineStreams& streams);
  // The next one: of a range of rows.
  Status run();

 private:
  explicit PipelineProducts(MatmulEngine& engine) : engine_(&engine) {}

  MatmulEngine* engine_;
  std::vector<MatmulEngine::Ready> ready_;
  std::size_t next_ = 0;
};

// Of one call. The GPU of the rank is current.
class CudaPipeline : public pipelines::PipelineRuntime {
 public:
  struct Parts {
    CudaDriver& cuda;
    PipelineStreams streams;
    PipelineWords& words;
    PipelineProducts& products;
    EnqueueCopy copy;
  };
  // `buffers` are bound; they and `parts` outlive this.
  CudaPipeline(const PipelineBuffers& buffers, Parts parts)
      : buffers_(buffers), parts_(std::move(parts)) {}

  int rank() const override { return buffers_.rank(); }
  Status allocate(pipelines::BufferId buffer) override { return buffers_.check_allocated(buffer); }
  Status share_handles(std::span<const pipelines::BufferId> buffers) override {
    return buffers_.check_shared(buffers);
  }

  Status begin_call(pipelines::CallBuffers) override { return Status::ok(); }
  Status wait_for_stream(int stream, const pipelines::WaitForStream& wait) override;
  Status await(int stream, const pipelines::Await& await) override;
  Status signal(int stream, const pipelines::Signal& signal) override;
  Status move(int stream, const pipelines::Move& move) override;
  Status multiply(int stream, const pipelines::Multiply& multiply) override;
  // After a failure the caller's stream joins whatever was enqueued.
  Status end_call(const Status& status) override;

 private:
  Status join(int waiting, int on);

  const PipelineBuffers& buffers_;
  Parts parts_;
};

// What a plan says of the products of a call: as PipelineProducts selects, but for the whole A.
Result<MatmulPlan> plan_products(MatmulEngine& engine, const Matmul& product);

}  // namespace tutti::fused
