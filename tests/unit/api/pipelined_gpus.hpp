// Ranks whose GPUs do not exist, and their calls of the pipelines of all_gather_matmul: streams run
// what they were given in order, each when it can, and matmuls are the host's.
#pragma once

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <cstring>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "api/all_gather_matmul.hpp"
#include "base/convert.hpp"
#include "matmul/host.hpp"
#include "support/fake_gpus.hpp"
#include "unit/api/layer_of_rank.hpp"

namespace tutti::test {

using std::chrono::milliseconds;

inline constexpr std::size_t kGpuColumns = 16, kGpuDepth = 8;
inline constexpr milliseconds kLongPatience{60000}, kLittlePatience{300};
inline constexpr int kPipelinedCalls = 4;

struct GpuPipeline {
  std::string_view algorithm = "pipelined_shift";
  AllGatherMatmulPipeline pipeline = {};
  std::size_t m = 13;
  bool gathered = false;
};

inline std::string text_of(const GpuPipeline& kind) {
  return fmt::format("{}, {}, {} streams, m {}, gathered {}", kind.algorithm,
                     kind.pipeline.protocol, kind.pipeline.streams, kind.m, kind.gathered);
}

// A rank's matrices of several calls, each with its own, in the memory of its GPU.
class GpuCalls {
 public:
  GpuCalls(FakeCuda& cuda, int rank, int ranks, const GpuPipeline& kind)
      : rank_(rank), kind_(kind) {
    for (int call = 0; call < kPipelinedCalls; ++call) {
      all_.push_back({take(cuda.allocate(rank, bytes(kind.m, kGpuDepth))),
                      take(cuda.allocate(rank, bytes(kGpuDepth, kGpuColumns))),
                      take(cuda.allocate(rank, bytes(kind.m, kGpuColumns))),
                      take(cuda.allocate(rank, bytes(kind.m, kGpuDepth)))});
      const Matrices& made = all_.back();
      std::memset(made.c, 0xff, bytes(kind.m, kGpuColumns));
      std::memset(made.gathered, 0xff, bytes(kind.m, kGpuDepth));
      const pipelines::Rows rows = pipelines::shard_rows(kind.m, ranks, rank);
      for (std::size_t k = 0; k < kGpuDepth; ++k) {
        for (std::size_t row = rows.begin; row < rows.end; ++row) {
          set(made.a, (row - rows.begin) * kGpuDepth + k, layer_number(row, k, call));
        }
        for (std::size_t n = 0; n < kGpuColumns; ++n)
          set(made.b, k * kGpuColumns + n, b(k, n, call));
      }
    }
  }

  AllGatherMatmul call(int number, Stream stream) const {
    const Matrices& matrices = all_[static_cast<std::size_t>(number)];
    return {.a = matrices.a,
            .b = matrices.b,
            .c = matrices.c,
            .m = kind_.m,
            .n = kGpuColumns,
            .k = kGpuDepth,
            .gathered = kind_.gathered ? matrices.gathered : nullptr,
            .workspace = matrices.gathered,
            .workspace_bytes = bytes(kind_.m, kGpuDepth),
            .stream = stream,
            .algorithm = kind_.algorithm,
            .pipeline = kind_.pipeline};
  }
  int count_wrong(int number) const {
    const Matrices& matrices = all_[static_cast<std::size_t>(number)];
    int wrong = 0;
    for (std::size_t row = 0; row < kind_.m; ++row) {
      for (std::size_t n = 0; n < kGpuColumns; ++n) {
        int sum = 0;
        for (std::size_t k = 0; k < kGpuDepth; ++k)
          sum += layer_number(row, k, number) * b(k, n, number);
        wrong += get(matrices.c, row * kGpuColumns + n) == sum ? 0 : 1;
      }
      for (std::size_t k = 0; kind_.gathered && k < kGpuDepth; ++k) {
        wrong +=
            get(matrices.gathered, row * kGpuDepth + k) == layer_number(row, k, number) ? 0 : 1;
      }
    }
    return wrong;
  }

 private:
  struct Matrices {
    std::byte *a, *b, *c, *gathered;
  };
  static constexpr DataType kType = DataType::kBfloat16;
  static std::size_t bytes(std::size_t rows, std::size_t columns) {
    return rows * columns * size_of(kType);
  }
  static void set(std::byte* matrix, std::size_t at, int value) {
    store_element(kType, matrix + at * size_of(kType), value);
  }
  static double get(const std::byte* matrix, std::size_t at) {
    return load_element(kType, matrix + at * size_of(kType));
  }
  int b(std::size_t k, std::size_t n, int call) const {
    return layer_number(k, n, 100 + rank_ * kPipelinedCalls + call);
  }

  const int rank_;
  const GpuPipeline kind_;
  std::vector<Matrices> all_;
};

// Products in streams of `cuda`, which both outlive.
inline MatmulSurroundings host_products(FakeCuda& cuda, std::atomic<int>& multiplied) {
  return {.cuda = [&cuda](std::string*) { return &cuda; },
          .cublas_lt = "/no/library",
          .own_kernels = true,
          .load_own = [](CudaDriver&, const MatmulProblem&,
                         const MatmulTiling&) { return Status::ok(); },
          .run_own =
              [&](CudaDriver&, const CheckedMatmul& call, const MatmulTiling&, int, Stream stream) {
                return cuda.enqueue(stream, [&multiplied, call] {
                  ++multiplied;
                  run_host_matmul(call, nullptr);
                  return Status::ok();
                });
              }};
}

class PipelinedGpus {
 public:
  explicit PipelinedGpus(int ranks, milliseconds timeout = kLongPatience) : gpus(ranks, timeout) {
    for (int r = 0; r < ranks; ++r) {
      streams.push_back(gpus.make_stream(r));
      // Looks for the library: ThreadSanitizer knows nothing of the loader's lock.
      const AllGatherMatmul call = calls(r, {}).call(0, streams.back());
      require_ok(plan(gpus.groups[at(r)], call, engine).status());
    }
  }

  static std::size_t at(int rank) { return static_cast<std::size_t>(rank); }
  GpuCalls calls(int rank, const GpuPipeline& kind) { return {gpus.cuda, rank, gpus.size(), kind}; }
  Status run(int rank, const AllGatherMatmul& call) {
    return all_gather_matmul(gpus.groups[at(rank)], call, engine);
  }
  // One call of each rank, which prepares the pipeline, and then waits.
  void prepare(const GpuPipeline& kind) {
    on_all_ranks(gpus.size(), [&](int r) {
      require_ok(run(r, calls(r, kind).call(0, streams[at(r)])));
      require_ok(gpus.cuda.synchronize(streams[at(r)]));
    });
  }
  // What the rank says once its stream has drained.
  Status end_of(int rank) {
    require_ok(gpus.cuda.synchronize(streams[at(rank)]));
    return gpus.groups[at(rank)].status();
  }
  void hurry() {
    for (Communicator& group : gpus.groups) require_ok(group.set_timeout(kLittlePatience));
  }

  FakeGpus gpus;
  std::vector<Stream> streams;
  std::atomic<int> multiplied = 0;
  MatmulEngine engine{host_products(gpus.cuda, multiplied)};
};

}  // namespace tutti::test
