// C functions for vLLM's custom all-reduce, which vllm_all_reduce.py calls. vLLM's source is not
// part of tutti: build_peers compiles this file with a copy of it. Uses no NVLink multicast.
//
// VLLM_VERSION is the version of that source, a string. Functions of type int return 0, or -1 and
// print why. Counts are elements, sizes bytes. One object per process.
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_runtime.h>

#include <cstdint>
#include <cstdio>
#include <cstring>
#include <exception>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

#include "custom_all_reduce.cuh"

struct Ranks {
  int rank = 0, ranks = 0;
  void* own = nullptr;        // signals, then the staging of the algorithm of two stages
  void* addresses = nullptr;  // where the kernels find the ranks' inputs
  std::unique_ptr<vllm::CustomAllreduce> all_reduce;
};

namespace {

constexpr std::size_t kHandle = sizeof(cudaIpcMemHandle_t), kAddresses = 1 << 20;

void check(cudaError_t status) {
  if (status != cudaSuccess) throw std::runtime_error(cudaGetErrorString(status));
}

template <typename Action>
int attempt(Action action) {
  try {
    action();
    return 0;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "vLLM's all-reduce: %s\n", error.what());
    return -1;
  }
}

}  // namespace

extern "C" {

const char* vllm_version() { return VLLM_VERSION; }

// Allocates this rank's signals and `staging` bytes. `handle` gets their IPC handle, 64 bytes.
int vllm_open(int rank, int ranks, std::size_t staging, char* handle, Ranks** made) {
  return attempt([&] {
    auto self = std::make_unique<Ranks>();
    self->rank = rank;
    self->ranks = ranks;
    const std::size_t bytes = sizeof(vllm::Signal) + staging;
    check(cudaMalloc(&self->own, bytes));
    check(cudaMemset(self->own, 0, bytes));
    check(cudaMalloc(&self->addresses, kAddresses));
    check(cudaDeviceSynchronize());
    cudaIpcMemHandle_t own;
    check(cudaIpcGetMemHandle(&own, self->own));
    std::memcpy(handle, &own, kHandle);
    *made = self.release();
  });
}

// `handles`: the IPC handles of all ranks, in the order of ranks.
int vllm_connect(Ranks* self, const char* handles) {
  return attempt([&] {
    std::vector<vllm::Signal*> signals(8);
    for (int rank = 0; rank < self->ranks; ++rank) {
      void* at = self->own;
      cudaIpcMemHandle_t handle;
      std::memcpy(&handle, handles + kHandle * static_cast<std::size_t>(rank), kHandle);
      if (rank != self->rank) {
        check(cudaIpcOpenMemHandle(&at, handle, cudaIpcMemLazyEnablePeerAccess));
      }
      signals[static_cast<std::size_t>(rank)] = static_cast<vllm::Signal*>(at);
    }
    self->all_reduce = std::make_unique<vllm::CustomAllreduce>(
        signals.data(), self->addresses, kAddresses, self->rank, self->ranks, true);
  });
}

// Call it within a capture; vllm_register() makes its input known after the capture. `dtype`: fp32,
// fp16 or bf16.
struct Sum {
  const char* dtype;
  void* input;
  void* output;
  int count;
};
int vllm_all_reduce(Ranks* self, const Sum* sum, cudaStream_t stream) {
  return attempt([&] {
    const std::string name = sum->dtype;
    const auto run = [&](auto* input) {
      auto* output = static_cast<decltype(input)>(sum->output);
      self->all_reduce->allreduce(stream, input, output, sum->count);
    };
    if (name == "fp32") return run(static_cast<float*>(sum->input));
    if (name == "fp16") return run(static_cast<half*>(sum->input));
    if (name == "bf16") return run(static_cast<nv_bfloat16*>(sum->input));
    throw std::runtime_error("it has no " + name);
  });
}

// How many inputs were captured since the last registration.
int vllm_captured(Ranks* self) {
  return static_cast<int>(self->all_reduce->graph_unreg_buffers_.size());
}

// For each captured input: the IPC handle of its allocation, and its offset there.
int vllm_handles(Ranks* self, char* handles, std::int64_t* offsets) {
  return attempt([&] {
    const auto [all_handles, all_offsets] = self->all_reduce->get_graph_buffer_ipc_meta();
    std::memcpy(handles, all_handles.data(), all_handles.size());
    std::memcpy(offsets, all_offsets.data(), all_offsets.size() * sizeof(std::int64_t));
  });
}

// What vllm_handles() gave on all ranks, in the order of ranks.
int vllm_register(Ranks* self, const char* handles, const std::int64_t* offsets) {
  return attempt([&] {
    const auto count = static_cast<std::size_t>(vllm_captured(self));
    std::vector<std::string> all_handles;
    std::vector<std::vector<std::int64_t>> all_offsets;
    for (int rank = 0; rank < self->ranks; ++rank) {
      all_handles.emplace_back(handles, count * kHandle);
      all_offsets.emplace_back(offsets, offsets + count);
      handles += count * kHandle;
      offsets += count;
    }
    self->all_reduce->register_graph_buffers(all_handles, all_offsets);
  });
}

}  // extern "C"
