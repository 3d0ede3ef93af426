// The kernel: a persistent grid of clusters, each block of which has a producer, which loads, two
// consumers, which multiply and store, and a leader, which waits for what the producer loads. What
// it consists of is chosen by parameters: when A may be read (Gate), in which order tiles come (the
// arguments' order), what becomes of sums (Epilogue).
#pragma once

#include "matmul/kernel/consumer.cuh"
#include "matmul/kernel/epilogue.cuh"
#include "matmul/kernel/producer.cuh"

namespace tutti {

template <class Tiles, class Epilogue>
struct SharedLayout {
  static constexpr std::uint32_t kStaging = kOwnRingBytes;
  static constexpr std::uint32_t kBarriers = kStaging + Epilogue::kBytes;
  static constexpr std::uint32_t kSteps = kBarriers + 16 * kMostOwnStages;
  static constexpr std::uint32_t kBytes = kSteps + 16 + kSharedAlignment;
  static_assert(kBytes <= kSharedBytes);
};

// A consumer's part of one tile, for each number of columns.
template <class Consumer, class Store>
struct ComputeTile {
  Consumer& consumer;
  Store& store;
  const TileWork& tile;

  template <class Columns>
  __device__ __forceinline__ void operator()(Columns) const {
    typename Consumer::template Sums<Columns::value> sums;
    consumer.template run<Columns::value>(sums);
    store.template run<Columns::value>(tile.product, sums,
                                       {tile.row + consumer.first_row(), tile.end}, tile.column);
  }
};

template <class Tiles, class Element, class Gate, template <class, class> class Epilogue>
__global__ void __launch_bounds__(kOwnMatmulThreads, 1)
    own_matmul_kernel(const __grid_constant__ OwnMatmulArguments arguments,
                      const __grid_constant__ Gate gate) {
#ifdef __CUDA_ARCH_FEAT_SM90_ALL  // what other architectures get is not launched
  // 65536 registers: 3 x 128 x 168 at the start, then 128 x 40 and 256 x 232.
  constexpr int kProducerRegisters = 40, kConsumerRegisters = 232;
  using Store = Epilogue<Tiles, Element>;
  using Layout = SharedLayout<Tiles, Store>;
  static_assert(sizeof(OwnMatmulArguments) + sizeof(Gate) <= 4096);  // older drivers take no more
  extern __shared__ std::byte memory[];
  const std::uint32_t base =
      (ptx::shared_address(memory) + kSharedAlignment - 1) & ~(kSharedAlignment - 1);
  const Stages<Tiles> stages{base, base + Layout::kBarriers, arguments.stages,
                             arguments.stage_bytes};
  const int blocks = arguments.cluster;
  const int rank = blocks == 1 ? 0 : static_cast<int>(ptx::cluster_rank());
  // Pullers are the grid's first blocks: what waits for them never keeps them from an SM.
  const int pullers = gate.pullers();
  if (static_cast<int>(blockIdx.x) < pullers) {
    gate.pull();
    return;
  }
  const int cluster = (static_cast<int>(blockIdx.x) - pullers) / blocks;
  const int clusters = (static_cast<int>(gridDim.x) - pullers) / blocks;
  constexpr int kReplaying = Tiles::kConsumers * 128 + 32, kLeading = kReplaying + 32;
  const StepWord word{base + Layout::kSteps};
  if (threadIdx.x == 0) {
    stages.init(blocks);
    if (Gate::kWaits) {
      word.tell_begun(0);
      word.release(0);
    }
  }
  if (blocks > 1) ptx::cluster_sync();
  __syncthreads();

  // Lane 0's value, so that the compiler knows that it is uniform in the warp.
  const int warpgroup = __shfl_sync(~0u, static_cast<int>(threadIdx.x) / 128, 0);
  if (warpgroup == Tiles::kConsumers) {
    ptx::give_registers<kProducerRegisters>();
    if (blockIdx.x == 0 && threadIdx.x == kReplaying) gate.replay();
    if (threadIdx.x == kLeading) {
      Leader<Tiles, Gate>{arguments, gate, rank, word}.run(cluster, clusters);
    }
    if (threadIdx.x % 128 == 0) {
      ptx::prefetch_map(arguments.a);
      const StageCursor begin{stages.count, 0, 1};  // the first round finds all stages empty
      Producer<Tiles, Gate>{arguments, stages, gate, rank, word, begin}.run(cluster, clusters);
    }
  } else {
    ptx::take_registers<kConsumerRegisters>();
    using Multiply = Consumer<Tiles, Element, Gate>;
    Multiply consumer{stages, gate, warpgroup, blocks, arguments.stages_of_k, {stages.count}};
    Store store(base + Layout::kStaging, static_cast<int>(threadIdx.x));
    typename Gate::Cursor cursor;
    for (int index = cluster; index < gate.tiles(arguments); index += clusters) {
      const TileWork tile = work_of<Tiles>(arguments, gate, cursor, {index, rank});
      Tiles::with(arguments.columns[tile.width],
                  ComputeTile<Multiply, Store>{consumer, store, tile});
    }
  }
  // The other block may still arrive at this one's barriers.
  if (blocks > 1) ptx::cluster_sync();
#endif
}

}  // namespace tutti
