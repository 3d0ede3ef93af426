// Ranks on fakes that make fused calls: what their matmuls are told is kept.
#pragma once

#include <cstddef>
#include <cstring>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "api/fused_gather.hpp"
#include "support/fake_gpus.hpp"

namespace tutti::test {

inline constexpr std::size_t kK = 64, kN = 128;

// Ranks with a shard each, of `rows` rows.
class FusedRanks {
 public:
  FusedRanks(int ranks, std::size_t rows)
      : gpus(ranks), rows_(rows), told(static_cast<std::size_t>(ranks)) {
    memory.resize(told.size());
    for (int r = 0; r < ranks; ++r) streams.push_back(gpus.make_stream(r));
    on_all_ranks(ranks, [&](int r) {
      memory[at(r)] =
          take(gpus.groups[at(r)].allocate((told.size() + 1) * shard_bytes() + 2 * kOther));
    });
    for (int r = 0; r < ranks; ++r) {
      engines.push_back(std::make_unique<MatmulEngine>(surroundings(r)));
      // Opens the library: ThreadSanitizer knows nothing of the loader's lock.
      require_ok(gpus.cuda.set_device(r));
      require_ok(
          engines.back()->ready_gated(call(r, told.size() * rows_).product, shard(r)).status());
    }
  }

  static std::size_t at(int rank) { return static_cast<std::size_t>(rank); }
  std::size_t shard_bytes() const { return rows_ * kK * 2; }
  std::byte* shard(int rank) { return static_cast<std::byte*>(memory[at(rank)].data()); }
  std::byte* gathered(int rank) { return shard(rank) + shard_bytes(); }
  std::byte* piece(int rank, int of) { return gathered(rank) + at(of) * shard_bytes(); }

  // Driver calls of all ranks that enqueue something.
  int enqueued() const {
    int calls = 0;
    for (const char* const each : {"copy_async", "copy_batch", "set_async", "record_event",
                                   "wait_event", "memory_operations", "launch"}) {
      calls += gpus.cuda.calls(each);
    }
    return calls;
  }

  FusedGather call(int rank, std::size_t m) {
    std::byte* const b = piece(rank, gpus.size());
    return {.gather = {.collective = Collective::kAllGather,
                       .input = shard(rank),
                       .output = gathered(rank),
                       .count = told.size() * rows_ * kK,
                       .dtype = DataType::kBfloat16,
                       .stream = streams[at(rank)],
                       .arrivals = {.output_bytes = m * kK * 2}},
            .product = {.a = gathered(rank),
                        .b = b,
                        .c = b + kOther,
                        .m = m,
                        .n = kN,
                        .k = kK,
                        .backend = Backend::kCuda},
            .with_own = with_own,
            .transport = transport,
            .engine = *engines[at(rank)]};
  }
  Status run(int rank, int seed) { return run(rank, seed, told.size() * rows_); }
  Status run(int rank, int seed, std::size_t m) {
    require_ok(gpus.cuda.set_device(rank));
    require_ok(gpus.cuda.set_async(shard(rank), seed + rank, shard_bytes(), streams[at(rank)]));
    return run_fused(gpus.groups[at(rank)].impl(), call(rank, m));
  }

  FakeGpus gpus;
  const std::size_t rows_;
  std::optional<ArrivalTransport> transport = ArrivalTransport::kCopyEngine;
  bool with_own = false;

  struct Told {
    Arrival arrival;
    int multiprocessors = 0;
  };
  std::vector<std::optional<Told>> told;  // by rank: what its last matmul was
  Status matmul_says = Status::ok();
  std::function<Status(int rank, Stream stream)> on_matmul;
  std::vector<Stream> streams;
  std::vector<SymmetricMemory> memory;
  std::vector<std::unique_ptr<MatmulEngine>> engines;

 private:
  static constexpr std::size_t kOther = 1 << 18;

  MatmulSurroundings surroundings(int rank) {
    return {
        .cuda = [this](std::string*) { return &gpus.cuda; },
        .cublas_lt = STUB_CUBLAS_LT,
        .own_kernels = true,
        .load_gated = [](CudaDriver&, const MatmulProblem&,
                         const MatmulTiling&) { return Status::ok(); },
        .run_gated =
            [this, rank](CudaDriver&, const GatedMatmul& call, int multiprocessors, Stream stream) {
              told[at(rank)] = {call.arrival, multiprocessors};
              return on_matmul ? on_matmul(rank, stream) : matmul_says;
            }};
  }
};

}  // namespace tutti::test
