#include "conformance/gpu/own_kernel.hpp"

namespace tutti::test {
namespace {

using device::Block;
using device::Peers;
using device::Thread;

__global__ void messages_kernel(const __grid_constant__ Peers peers, Messages messages) {
  const Block block;
  const int next = (peers.rank + 1) % peers.ranks;
  const int before = (peers.rank + peers.ranks - 1) % peers.ranks;
  const std::size_t bytes = messages.words * sizeof(std::uint64_t);
  auto* const got = peers.pointer<std::uint64_t>(peers.rank);
  auto* const mine = got + messages.words;
  const auto word = [](std::uint64_t round, int rank, std::uint64_t w) {
    return (round << 32) + (static_cast<std::uint64_t>(rank) << 24) + w;
  };
  for (std::uint64_t round = 0; round < messages.rounds; ++round) {
    for (std::uint64_t w = block.thread(); w < messages.words; w += block.threads()) {
      mine[w] = word(round, peers.rank, w);
    }
    block.sync();
    if (round > 0 && !peers.wait_signal(block, next, 1)) return;
    peers.put_signal(block, {next, 0, mine, bytes}, 0);
    if (!peers.wait_signal(block, before, 0)) return;
    unsigned long long wrong = 0;
    for (std::uint64_t w = block.thread(); w < messages.words; w += block.threads()) {
      wrong += got[w] != word(round, before, w);
    }
    if (wrong != 0) atomicAdd(reinterpret_cast<unsigned long long*>(messages.wrong), wrong);
    peers.signal(block, before, 1);
  }
  if (!peers.wait_signal(block, next, 1)) return;
  (void)peers.barrier(block, 2);
}

__global__ void wait_kernel(const __grid_constant__ Peers peers, int peer, int channel) {
  (void)peers.wait_signal(Thread(), peer, channel);
}

bool load(const void* kernel) {
  cudaFuncAttributes attributes;
  return cudaFuncGetAttributes(&attributes, kernel) == cudaSuccess;
}

}  // namespace

bool load_own_kernel() {
  return load(reinterpret_cast<const void*>(messages_kernel)) &&
         load(reinterpret_cast<const void*>(wait_kernel));
}

bool launch_own_kernel(const Peers& peers, const Messages& messages, Stream stream) {
  messages_kernel<<<1, 256, 0, static_cast<cudaStream_t>(stream)>>>(peers, messages);
  return cudaGetLastError() == cudaSuccess;
}

bool launch_own_wait(const Peers& peers, int peer, int channel, Stream stream) {
  wait_kernel<<<1, 1, 0, static_cast<cudaStream_t>(stream)>>>(peers, peer, channel);
  return cudaGetLastError() == cudaSuccess;
}

}  // namespace tutti::test
