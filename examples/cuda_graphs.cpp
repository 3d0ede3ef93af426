// CUDA graphs: an all_reduce is captured once and then replayed without the host. One process per
// GPU:
//   tutti run -n 2 ./cuda_graphs
// The buffer comes from cudaMalloc. finish_capture() registers it after the capture, so that
// replays are zero-copy.
#include <cuda_runtime.h>

#include <tutti/tutti.hpp>

#include <cstdio>
#include <cstdlib>
#include <span>
#include <vector>

void check(const tutti::Status& status) {
  if (status) return;
  std::fprintf(stderr, "%s\n", status.to_string().c_str());
  std::exit(1);
}
void check(cudaError_t error) {
  if (error == cudaSuccess) return;
  std::fprintf(stderr, "CUDA: %s\n", cudaGetErrorString(error));
  std::exit(1);
}

cudaGraphExec_t capture(tutti::Communicator& group, std::span<float> data, cudaStream_t stream) {
  cudaGraph_t graph = nullptr;
  cudaGraphExec_t executable = nullptr;
  check(group.start_capture());
  check(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal));
  check(tutti::all_reduce(group, data, {.stream = stream}));
  check(cudaStreamEndCapture(stream, &graph));
  check(cudaGraphInstantiate(&executable, graph, 0));
  check(cudaGraphDestroy(graph));
  check(group.finish_capture());
  return executable;
}

int main() {
  int devices = 0;
  if (cudaGetDeviceCount(&devices) != cudaSuccess || devices == 0 ||
      (devices == 1 && std::getenv("TUTTI_SHARE_GPUS") == nullptr)) {
    std::puts("skipped: needs two GPUs, or one and TUTTI_SHARE_GPUS=1");
    return 77;
  }
  auto group = tutti::Communicator::create_from_environment({.backend = tutti::Backend::kCuda});
  check(group.status());
  check(cudaSetDevice(group->device()));

  std::vector<float> values(1 << 20, 1);
  float* memory = nullptr;
  cudaStream_t stream = nullptr;
  check(cudaMalloc(&memory, values.size() * sizeof(float)));
  check(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
  check(cudaMemcpy(memory, values.data(), values.size() * sizeof(float), cudaMemcpyDefault));
  const std::span data(memory, values.size());

  constexpr int kReplays = 3;
  cudaGraphExec_t executable = capture(*group, data, stream);
  for (int i = 0; i < kReplays; ++i) check(cudaGraphLaunch(executable, stream));
  check(cudaStreamSynchronize(stream));
  check(group->status());  // reports failures of the replays

  check(cudaMemcpy(values.data(), memory, values.size() * sizeof(float), cudaMemcpyDefault));
  // Each replay multiplies by the number of ranks.
  std::printf("rank %d of %d: %g after %d replays\n", group->rank(), group->size(), values.back(),
              kReplays);
  check(cudaGraphExecDestroy(executable));
  check(cudaStreamDestroy(stream));
  check(cudaFree(memory));
}
