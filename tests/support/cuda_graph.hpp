// A captured CUDA graph, as tests use one. It is instantiated with its first launch: CUDA refuses
// that while any capture of the thread goes on.
#pragma once

#include <cstdint>
#include <functional>
#include <utility>

#include "drivers/cuda.hpp"
#include "support/check.hpp"
#include "support/group.hpp"

namespace tutti::test {

class CapturedGraph {
 public:
  // Whose calls may break the capture.
  enum class Mode : std::uint8_t { kThisThread, kAnyThread };

  // Captures what `body` puts on `stream`.
  CapturedGraph(CudaDriver& cuda, Stream stream, const std::function<void()>& body,
                Mode mode = Mode::kThisThread)
      : cuda_(&cuda) {
    require_ok(mode == Mode::kThisThread ? cuda.begin_capture(stream)
                                         : cuda.begin_global_capture(stream));
    try {
      body();
    } catch (...) {
      // The capture must not outlive a failure: nothing else could use the stream.
      if (auto broken = cuda.end_capture(stream); broken.is_ok()) {
        (void)cuda.destroy_graph(*broken);
      }
      throw;
    }
    graph_ = take(cuda.end_capture(stream));
  }
  CapturedGraph(CapturedGraph&& other) noexcept
      : cuda_(other.cuda_),
        graph_(std::exchange(other.graph_, nullptr)),
        exec_(std::exchange(other.exec_, nullptr)) {}
  CapturedGraph& operator=(CapturedGraph&&) = delete;
  ~CapturedGraph() {
    if (exec_ != nullptr) (void)cuda_->destroy_graph_exec(exec_);
    if (graph_ != nullptr) (void)cuda_->destroy_graph(graph_);
  }

  // By all ranks, before the first launch. Instantiating waits for the kernels of the context.
  // Where ranks are threads and share a GPU, another rank's kernel could wait for this one
  // meanwhile.
  void instantiate(const Rank& rank) const {
    exec_ = take(cuda_->instantiate(graph_));
    if (rank.shares_gpu()) rank.meet();
  }

  void launch(Stream stream) const {
    if (exec_ == nullptr) exec_ = take(cuda_->instantiate(graph_));
    require_ok(cuda_->launch_graph(exec_, stream));
  }

 private:
  CudaDriver* cuda_;
  CudaGraph graph_ = nullptr;
  mutable CudaGraphExec exec_ = nullptr;
};

}  // namespace tutti::test
