// Capture, and the graphs it makes.
#include <memory>
#include <utility>

#include "base/try.hpp"
#include "drivers/real_cuda.hpp"

namespace tutti {
namespace {

using OnDestroy = std::function<void()>;

cudaGraph_t graph_of(CudaGraph graph) { return static_cast<cudaGraph_t>(graph); }
cudaGraphExec_t exec_of(CudaGraphExec exec) { return static_cast<cudaGraphExec_t>(exec); }

// Runs on a thread of the driver, once the last graph that holds it is gone.
void CUDART_CB run_on_destroy(void* payload) {
  const std::unique_ptr<OnDestroy> on_destroy(static_cast<OnDestroy*>(payload));
  if (*on_destroy) (*on_destroy)();
}

CudaCapture::State state_of(cudaStreamCaptureStatus status) {
  switch (status) {
    case cudaStreamCaptureStatusNone:
      return CudaCapture::State::kNone;
    case cudaStreamCaptureStatusActive:
      return CudaCapture::State::kActive;
    case cudaStreamCaptureStatusInvalidated:
      break;
  }
  return CudaCapture::State::kInvalidated;
}

cudaError_t capture_info(Stream stream, cudaStreamCaptureStatus* status, unsigned long long* id,
                         cudaGraph_t* graph) {
#if CUDART_VERSION >= 13000
  return cudaStreamGetCaptureInfo(stream, status, id, graph, nullptr, nullptr, nullptr);
#else
  return cudaStreamGetCaptureInfo_v2(stream, status, id, graph, nullptr, nullptr);
#endif
}

}  // namespace

Result<CudaCapture> RealCuda::capture_of(Stream stream) {
  cudaStreamCaptureStatus status = cudaStreamCaptureStatusNone;
  unsigned long long id = 0;
  cudaGraph_t graph = nullptr;
  TUTTI_TRY(check(capture_info(stream, &status, &id, &graph), "cudaStreamGetCaptureInfo"));
  CudaCapture capture;
  capture.state = state_of(status);
  // The rest is only set while a capture is active.
  if (capture.state == CudaCapture::State::kActive) {
    capture.id = id;
    capture.graph = graph;
  }
  return capture;
}

Status RealCuda::begin_capture(Stream stream) {
  return check(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal),
               "cudaStreamBeginCapture");
}

Status RealCuda::begin_global_capture(Stream stream) {
  return check(cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal),
               "cudaStreamBeginCapture");
}

Result<CudaGraph> RealCuda::end_capture(Stream stream) {
  cudaGraph_t graph = nullptr;
  TUTTI_TRY(check(cudaStreamEndCapture(stream, &graph), "cudaStreamEndCapture"));
  return CudaGraph{graph};
}

Result<CudaGraphExec> RealCuda::instantiate(CudaGraph graph) {
  const RelaxedCapture relaxed;
  cudaGraphExec_t exec = nullptr;
  TUTTI_TRY(check(cudaGraphInstantiate(&exec, graph_of(graph), 0), "cudaGraphInstantiate"));
  return CudaGraphExec{exec};
}

Status RealCuda::launch_graph(CudaGraphExec exec, Stream stream) {
  const RelaxedCapture relaxed;
  return check(cudaGraphLaunch(exec_of(exec), stream), "cudaGraphLaunch");
}

Status RealCuda::destroy_graph(CudaGraph graph) {
  const RelaxedCapture relaxed;
  return check(cudaGraphDestroy(graph_of(graph)), "cudaGraphDestroy");
}

Status RealCuda::destroy_graph_exec(CudaGraphExec exec) {
  const RelaxedCapture relaxed;
  return check(cudaGraphExecDestroy(exec_of(exec)), "cudaGraphExecDestroy");
}

Status RealCuda::retain_on_graph(CudaGraph graph, std::function<void()> on_destroy) {
  const RelaxedCapture relaxed;
  auto payload = std::make_unique<OnDestroy>(std::move(on_destroy));
  cudaUserObject_t object = nullptr;
  TUTTI_TRY(check(cudaUserObjectCreate(&object, payload.get(), run_on_destroy, 1,
                                       cudaUserObjectNoDestructorSync),
                  "cudaUserObjectCreate"));
  OnDestroy* const held = payload.release();  // the object deletes it from here on
  // Move: the graph takes over the one reference there is.
  Status status =
      check(cudaGraphRetainUserObject(graph_of(graph), object, 1, cudaGraphUserObjectMove),
            "cudaGraphRetainUserObject");
  if (!status.is_ok()) {
    *held = nullptr;  // the graph does not hold it: its end must not be told
    static_cast<void>(check(cudaUserObjectRelease(object, 1), "cudaUserObjectRelease"));
  }
  return status;
}

}  // namespace tutti
