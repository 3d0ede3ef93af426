// A gated matmul on a GPU, and the plain one with whose bits it is compared; skipped where there is
// no GPU of Hopper. A is NaN wherever a chunk has not come.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <memory>
#include <random>
#include <vector>

#include "drivers/cuda.hpp"
#include "matmul/gated.hpp"
#include "matmul/own.hpp"
#include "matmul_numbers.hpp"
#include "some_problem.hpp"
#include "support/check.hpp"

namespace tutti::test {

// One more than flags: that of the go word.
inline constexpr std::size_t kFlagWords = kMostArrivalFlags + 1;
inline constexpr std::uint64_t kMostWaitNs = 10'000'000'000;

struct ChunkOfRows {
  int flag;
  std::size_t begin, end;
  std::size_t first = 0, last = SIZE_MAX;  // columns; all
};

struct GatedCase {
  NumbersShape shape;
  ArrivalPlan plan;
  MatmulTiling tiling;
  bool own_a = true;

  std::size_t shard_rows() const {
    const auto shards = static_cast<std::size_t>(plan.shards);
    return (shape.m + shards - 1) / shards;
  }
  std::size_t own_begin() const {
    return std::min(shape.m, static_cast<std::size_t>(plan.own) * shard_rows());
  }
  std::size_t own_end() const { return std::min(shape.m, own_begin() + shard_rows()); }
  // Those that have rows and come.
  std::vector<ChunkOfRows> chunks() const {
    std::vector<ChunkOfRows> chunks;
    const auto of_shard = static_cast<std::size_t>(plan.chunks);
    const std::size_t rows = (shard_rows() + of_shard - 1) / of_shard;
    for (int shard = 0; shard < plan.shards; ++shard) {
      if (shard == plan.own) continue;
      const std::size_t first = static_cast<std::size_t>(shard) * shard_rows();
      const std::size_t end = std::min(shape.m, first + shard_rows());
      for (int chunk = 0; chunk < plan.chunks; ++chunk) {
        const std::size_t begin = first + static_cast<std::size_t>(chunk) * rows;
        if (begin >= end) break;
        add_groups(
            {(shard * plan.chunks + chunk) * plan.k_groups, begin, std::min(end, begin + rows)},
            chunks);
      }
    }
    return chunks;
  }

 private:
  void add_groups(ChunkOfRows chunk, std::vector<ChunkOfRows>& chunks) const {
    const auto groups = static_cast<std::size_t>(plan.k_groups);
    const std::size_t columns = ((shape.k + 63) / 64 + groups - 1) / groups * 64;
    for (std::size_t first = 0; groups > 1 && first < shape.k; first += columns, ++chunk.flag) {
      chunk.first = first;
      chunk.last = std::min(shape.k, first + columns);
      chunks.push_back(chunk);
    }
    if (groups == 1) chunks.push_back(chunk);
  }
};

// Sizes that tiles and shards divide, and do not; less rows than shards; several products.
inline std::vector<GatedCase> gated_cases() {
  const MatmulTiling wide = {&tile_named("128x256"), nullptr, 1 << 20},
                     high = {&tile_named("256x128"), nullptr, 1 << 20},
                     both = {&tile_named("128x256"), &tile_named("128x112"), 2};
  return {
      {{.m = 2048, .n = 520, .k = 136}, {.shards = 8, .own = 3}, wide},
      {{.m = 2048, .n = 520, .k = 200}, {.shards = 4, .chunks = 2, .own = 0}, both},
      {{.m = 1000, .n = 264, .k = 72, .bias = true, .products = 3, .step = 8},
       {.shards = 8, .chunks = 3, .own = 7},
       both},
      {{.m = 1277, .n = 512, .k = 520, .gap = 8}, {.shards = 5, .chunks = 2, .own = 2}, high},
      {{.m = 5, .n = 40, .k = 64}, {.shards = 8, .own = 2}, wide},
      {{.m = 5, .n = 40, .k = 64}, {.shards = 8, .own = 7}, wide},
      {{.m = 300, .n = 136, .k = 1000, .bias = true}, {.shards = 3, .chunks = 3, .own = 1}, wide},
      {{.m = 700, .n = 264, .k = 64}, {.shards = 1}, wide},
      {{.m = 300, .n = 264, .k = 520}, {.shards = 3, .chunks = 2, .own = 1, .k_groups = 4}, both},
      {{.m = 4500, .n = 1032, .k = 72, .products = 2, .step = 40},
       {.shards = 7, .chunks = 2, .own = 5},
       both}};
}

class GatedMatmulOnGpu : public testing::Test {
 protected:
  void SetUp() override {
    std::string why;
    cuda_ = real_cuda(&why);
    if (cuda_ == nullptr) GTEST_SKIP() << why;
    require_ok(cuda_->set_device(0));
    const CudaDeviceProperties properties = take(cuda_->properties(0));
    if (!has_own_matmul() || properties.compute_major != 9) GTEST_SKIP() << "no kernels for it";
    multiprocessors_ = properties.multiprocessors;
    stream_ = take(cuda_->create_stream(0));
    copies_ = take(cuda_->create_stream(0));
    words_ = reinterpret_cast<Words*>(pinned(sizeof(Words)));
    flags_ = reinterpret_cast<std::uint32_t*>(allocate(kFlagWords * sizeof(std::uint32_t)));
  }

  void TearDown() override {
    release();
    for (const Stream stream : {stream_, copies_}) {
      if (stream != nullptr) require_ok(cuda_->destroy_stream(stream));
    }
  }

  CudaAddress allocate(std::size_t bytes) {
    allocated_.push_back(take(cuda_->allocate(0, bytes)));
    return allocated_.back();
  }
  std::byte* pinned(std::size_t bytes) {
    pinned_.push_back(take(cuda_->allocate_mapped_host(bytes)));
    return pinned_.back();
  }
  void release() {
    for (const CudaAddress address : allocated_) require_ok(cuda_->free(address));
    for (std::byte* const address : pinned_) require_ok(cuda_->free_mapped_host(address));
    allocated_.clear();
    pinned_.clear();
  }

  // A case on the GPU, and what the plain matmul makes of it.
  struct Placed {
    explicit Placed(const GatedCase& of) : with(of), numbers(of.shape) {}
    GatedCase with;
    MatmulNumbers numbers;
    CheckedMatmul call;
    std::byte* a = nullptr;        // of the call
    std::byte* whole_a = nullptr;  // pinned
    const std::byte* own = nullptr;
    std::vector<std::vector<std::byte>> expected;

    std::size_t row_bytes() const { return call.problem.lda * size_of(call.problem.dtype); }
  };

  std::unique_ptr<Placed> place(const GatedCase& with) {
    auto placed = std::make_unique<Placed>(with);
    MatmulNumbers& numbers = placed->numbers;
    placed->call = take(check(numbers.call([&](Matrix& matrix) -> void* {
      const CudaAddress copy = allocate(matrix.bytes().size());
      require_ok(cuda_->copy(copy, matrix.data(), matrix.bytes().size()));
      if (&matrix == &numbers.a()) placed->a = copy;
      return copy;
    })));
    const MatmulProblem& problem = placed->call.problem;
    const std::size_t bytes = numbers.a().bytes().size(), row = placed->row_bytes();
    placed->whole_a = pinned(bytes);
    std::memcpy(placed->whole_a, numbers.a().data(), bytes);
    if (with.own_a && with.own_end() > with.own_begin()) {
      const std::size_t own_bytes = (with.own_end() - with.own_begin()) * row;
      const CudaAddress own = allocate(own_bytes);
      require_ok(cuda_->copy(own, placed->whole_a + with.own_begin() * row, own_bytes));
      placed->own = own;
    }
    require_ok(load_own_matmul(*cuda_, problem, with.tiling));
    require_ok(load_gated_matmul(*cuda_, problem, with.tiling));
    MatmulTiling plain = with.tiling;  // as forecast() cuts it
    if (plain.narrow == nullptr) plain = {plain.tile, nullptr, rows_of_clusters(with)};
    plain.wide_rows = std::min(plain.wide_rows, rows_of_clusters(with));
    require_ok(run_own_matmul(*cuda_, placed->call, plain, multiprocessors_, stream_));
    placed->expected = products_of(*placed);
    return placed;
  }

  static int rows_of_clusters(const GatedCase& with) {
    const int rows = with.tiling.tile->m * cluster_of(*with.tiling.tile, with.shape.m);
    return (static_cast<int>(with.shape.m) + rows - 1) / rows;
  }

  std::vector<std::vector<std::byte>> products_of(Placed& placed) {
    require_ok(cuda_->synchronize(stream_));
    std::vector<std::vector<std::byte>> products;
    for (std::size_t i = 0; i < placed.numbers.all_c().size(); ++i) {
      products.emplace_back(placed.numbers.all_c()[i].bytes().size());
      require_ok(
          cuda_->copy(products.back().data(), placed.call.product[i].c, products.back().size()));
    }
    return products;
  }

  // No product is there, no flag is set, and A is NaN: all of it or, with `data`, only the rows
  // that are not read from it.
  void poison(Placed& placed, bool data, std::uint32_t epoch) {
    for (std::size_t i = 0; i < placed.expected.size(); ++i) {
      const Matrix& c = placed.numbers.all_c()[i];
      require_ok(cuda_->copy(placed.call.product[i].c, c.bytes().data(), c.bytes().size()));
    }
    require_ok(cuda_->set_async(placed.a, 0xFF, placed.numbers.a().bytes().size(), stream_));
    require_ok(cuda_->synchronize(stream_));
    if (placed.own == nullptr) bring(placed, {0, placed.with.own_begin(), placed.with.own_end()});
    if (data) {
      for (const ChunkOfRows& chunk : placed.with.chunks()) bring(placed, chunk);
    }
    require_ok(cuda_->synchronize(copies_));
    const std::vector<std::uint32_t> before(kFlagWords, epoch - 1);
    require_ok(cuda_->copy(flags_, before.data(), before.size() * sizeof(std::uint32_t)));
    words_->failure = {};
    words_->abort = 0;
  }

  void bring(const Placed& placed, const ChunkOfRows& chunk) {
    const std::size_t row = placed.row_bytes(), bytes = (chunk.end - chunk.begin) * row;
    if (bytes == 0) return;
    for (std::size_t at = chunk.begin; chunk.last != SIZE_MAX && at < chunk.end; ++at) {
      const std::size_t from = at * row + 2 * chunk.first;
      require_ok(cuda_->copy_async(placed.a + from, placed.whole_a + from,
                                   2 * (chunk.last - chunk.first), copies_));
    }
    if (chunk.last != SIZE_MAX) return;
    require_ok(cuda_->copy_async(placed.a + chunk.begin * row, placed.whole_a + chunk.begin * row,
                                 bytes, copies_));
  }
  // Behind what was brought. `epochs` is pinned.
  void raise(int flag, const std::uint32_t* epoch) {
    require_ok(cuda_->copy_async(flags_ + flag, epoch, sizeof *epoch, copies_));
  }

  Arrival arrival_of(const Placed& placed, std::uint32_t epoch) const {
    return {.plan = placed.with.plan,
            .own_a = placed.own,
            .own_lda = placed.call.problem.lda,
            .flags = flags_,
            .epoch = epoch,
            .timeout_ns = kMostWaitNs,
            .abort = &words_->abort,
            .failure = &words_->failure};
  }

  void run(Placed& placed, const Arrival& arrival) {
    require_ok(run_gated_matmul(*cuda_, {placed.call, placed.with.tiling, arrival},
                                multiprocessors_, stream_));
  }

  void expect_plain_bits(Placed& placed) {
    EXPECT_TRUE(products_of(placed) == placed.expected);
    EXPECT_EQ(words_->failure.failed, 0U) << "chunk " << words_->failure.chunk;
  }

  // Every case with every order, element type and layout, and with and without an own matrix.
  template <class Body>
  void each_case(const Body& body) {
    for (GatedCase with : gated_cases()) {
      for (int choice = 0; choice < 8; ++choice) {
        with.shape.dtype = choice % 2 == 0 ? DataType::kBfloat16 : DataType::kFloat16;
        with.shape.layout =
            choice / 2 % 2 == 0 ? MatrixLayout::kRowMajor : MatrixLayout::kColumnMajor;
        with.own_a = choice / 4 == 0;
        const std::unique_ptr<Placed> placed = place(with);
        for (const ArrivalOrder order :
             {ArrivalOrder::kPlain, ArrivalOrder::kRotated, ArrivalOrder::kFrontier}) {
          SCOPED_TRACE(testing::Message()
                       << "M " << with.shape.m << ", " << with.plan.shards << " x "
                       << with.plan.chunks << ", " << to_string(order) << ", "
                       << to_string(with.shape.dtype) << ", " << to_string(with.shape.layout)
                       << "-major" << (with.own_a ? ", own A" : ""));
          placed->with.plan.order = order;
          body(*placed);
        }
      }
    }
  }

  struct Words {
    GateFailure failure;
    std::uint32_t abort;
    std::uint32_t epochs[8];
  };

  CudaDriver* cuda_ = nullptr;
  int multiprocessors_ = 0;
  Stream stream_ = nullptr, copies_ = nullptr;
  Words* words_ = nullptr;          // pinned
  std::uint32_t* flags_ = nullptr;  // on the GPU
  std::mt19937 random_{3};

 private:
  std::vector<CudaAddress> allocated_;
  std::vector<std::byte*> pinned_;
};

}  // namespace tutti::test
