#include "fused/host_pipeline.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <cstring>
#include <limits>
#include <memory>
#include <random>
#include <thread>

#include "pipelines/check.hpp"
#include "support/check.hpp"
#include "support/run_ranks.hpp"
#include "unit/pipelines/programs.hpp"

namespace tutti::fused::test {
namespace {

using namespace std::chrono_literals;
using pipelines::Algorithm;
using pipelines::BufferId;
using pipelines::CallBuffers;
using pipelines::Description;
using pipelines::Instruction;
using pipelines::Program;
using pipelines::Protocol;
using pipelines::Rows;
using pipelines::test::small;
using tutti::test::RankKind;
using tutti::test::require_ok;
using tutti::test::run_ranks;
using tutti::test::take;

constexpr float kPoison = std::numeric_limits<float>::quiet_NaN();

// Small integers, so that sums are exact.
float value_at(int call, std::size_t salt) {
  const std::size_t mixed = (salt + 1) * 2654435761u + static_cast<std::size_t>(call) * 40503u;
  return static_cast<float>((mixed >> 7) % 7) - 3;
}

// The memory of all ranks, in this process.
class World {
 public:
  explicit World(const Description& description, std::uint64_t epoch = 0)
      : program(take(derive(description))), lists(take(checked(program))), epoch_(epoch) {
    const auto ranks = static_cast<std::size_t>(description.ranks);
    for (const auto& buffer : program.buffers) {
      offsets_.push_back(bytes_);
      bytes_ += (buffer.rows * buffer.columns + 1) * sizeof(float);
    }
    workspace_ = bytes_;
    bytes_ += workspace_bytes(program);
    for (std::size_t rank = 0; rank < ranks; ++rank) {
      words_.emplace_back(words_per_rank(program), epoch);
      memory_.emplace_back(bytes_ / sizeof(float) + 1, kPoison);
    }
  }

  HostPipelineWords words() {
    HostPipelineWords made{.epoch = epoch_};
    for (auto& words : words_) made.words.push_back(words.data());
    return made;
  }
  PipelineBuffers memory_of(int rank) { return memory_of(rank, at(rank, workspace_)); }
  PipelineBuffers memory_of(int rank, std::byte* workspace) {
    const auto peer = [this, rank](int of, const std::byte* own) -> std::byte* {
      const auto offset = static_cast<std::size_t>(own - at(rank, 0));
      return is_symmetric(offset) ? at(of, offset) : nullptr;
    };
    return {program, rank, workspace, peer};
  }

  std::byte* at(int rank, std::size_t offset) {
    return reinterpret_cast<std::byte*>(memory_[static_cast<std::size_t>(rank)].data()) + offset;
  }
  float* matrix(int rank, BufferId id) {
    return reinterpret_cast<float*>(at(rank, offsets_[static_cast<std::size_t>(id)]));
  }
  std::vector<std::byte*> buffers_of(int rank) {
    std::vector<std::byte*> buffers;
    for (std::size_t id = 0; id < program.buffers.size(); ++id) {
      const bool callers = program.buffers[id].is_callers();
      buffers.push_back(callers ? at(rank, offsets_[id]) : nullptr);
    }
    return buffers;
  }

  // All memory of a rank is poisoned but for the inputs of this call.
  void begin(int rank, int call);
  int count_wrong(int rank, int call);
  float a_at(int call, std::size_t row, std::size_t column) const {
    return value_at(call, row * program.description.k + column);
  }

  const Program program;
  std::vector<std::vector<Instruction>> lists;

 private:
  // Whatever else a program touches of a peer is an error.
  bool is_symmetric(std::size_t offset) const {
    if (offset >= workspace_) return offset < bytes_;
    for (std::size_t id = 0; id < offsets_.size(); ++id) {
      if (offsets_[id] == offset) return program.buffers[id].is_symmetric;
    }
    return false;
  }
  float other_at(int call, int rank, BufferId id, std::size_t i) const {
    return value_at(call, 1000003 * static_cast<std::size_t>(64 * rank + id) + i);
  }

  std::uint64_t epoch_;
  std::size_t bytes_ = 0, workspace_ = 0;
  std::vector<std::size_t> offsets_;
  std::vector<std::vector<std::uint64_t>> words_;
  std::vector<std::vector<float>> memory_;
};

void World::begin(int rank, int call) {
  std::ranges::fill(memory_[static_cast<std::size_t>(rank)], kPoison);
  for (std::size_t i = 0; i < program.buffers.size(); ++i) {
    const auto& buffer = program.buffers[i];
    const auto id = static_cast<BufferId>(i);
    if (buffer.role != pipelines::Role::kInput) continue;
    const bool shard = buffer.part == pipelines::Part::kShard;
    const Rows rows = shard_rows(program.description, rank);
    const std::size_t count = (shard ? rows.count() : buffer.rows) * buffer.columns;
    for (std::size_t e = 0; e < count; ++e) {
      matrix(rank, id)[e] = shard ? a_at(call, rows.begin, e) : other_at(call, rank, id, e);
    }
  }
}

int World::count_wrong(int rank, int call) {
  const auto& [m, k] = std::pair(program.description.m, program.description.k);
  int wrong = 0;
  for (const auto& product : program.products) {
    const std::size_t n = program.buffers[static_cast<std::size_t>(product.c)].columns;
    for (std::size_t i = 0; i < m * n; ++i) {
      const bool has_bias = product.bias != pipelines::kNoBuffer;
      float sum = has_bias ? other_at(call, rank, product.bias, i % n) : 0;
      for (std::size_t e = 0; e < k; ++e) {
        sum += a_at(call, i / n, e) * other_at(call, rank, product.b, e * n + i % n);
      }
      wrong += matrix(rank, product.c)[i] == sum ? 0 : 1;
    }
  }
  if (program.gathered == pipelines::kNoBuffer) return wrong;
  for (std::size_t i = 0; i < m * k; ++i) {
    wrong += matrix(rank, program.gathered)[i] == a_at(call, 0, i) ? 0 : 1;
  }
  return wrong;
}

// C = a x B + bias, by a plain loop.
Status multiply_plainly(const Program& program, const HostProduct& call) {
  const std::size_t k = program.description.k;
  const auto floats = [&](BufferId id) {
    return reinterpret_cast<float*>(call.buffers[static_cast<std::size_t>(id)]);
  };
  const auto* a = reinterpret_cast<const float*>(call.a);
  for (const auto& product : program.products) {
    const std::size_t n = program.buffers[static_cast<std::size_t>(product.c)].columns;
    for (std::size_t i = 0; i < call.c.count() * n; ++i) {
      const std::size_t row = i / n, column = i % n;
      float sum = product.bias == pipelines::kNoBuffer ? 0 : floats(product.bias)[column];
      for (std::size_t e = 0; e < k; ++e) sum += a[row * k + e] * floats(product.b)[e * n + column];
      floats(product.c)[(call.c.begin + row) * n + column] = sum;
    }
  }
  return Status::ok();
}

HostPatience patience(std::chrono::milliseconds timeout = 20s) {
  return {.timeout = [timeout] { return timeout; }};
}

// A rank that is now and then late.
class Rank : public HostPipeline {
 public:
  Rank(World& world, int rank, unsigned seed)
      : HostPipeline(
            world.memory_of(rank), world.words(),
            [this, &world](const HostProduct& call) {
              dawdle();
              return multiply_plainly(world.program, call);
            },
            patience()),
        random_(seed) {}

  Status signal(int stream, const pipelines::Signal& signal) override {
    dawdle();
    return HostPipeline::signal(stream, signal);
  }
  Status move(int stream, const pipelines::Move& move) override {
    dawdle();
    return HostPipeline::move(stream, move);
  }

  void dawdle() {
    const unsigned chance = random_() % 16;
    if (chance == 0) std::this_thread::sleep_for(std::chrono::microseconds(random_() % 100));
    if (chance < 4) std::this_thread::yield();
  }

 private:
  std::minstd_rand random_;
};

// Four calls of all ranks, as threads, without a synchronisation between them. The number of wrong
// elements.
int run_calls(World& world, unsigned seed) {
  std::atomic<int> wrong = 0;
  const int ranks = world.program.description.ranks;
  const std::string failures = run_ranks(RankKind::kThreads, ranks, [&](int rank) {
    Rank runtime(world, rank, seed * 16 + static_cast<unsigned>(rank));
    require_ok(run_setup(world.program, runtime));
    const auto buffers = world.buffers_of(rank);
    for (int call = 0; call < 4; ++call) {
      runtime.dawdle();
      world.begin(rank, call);
      require_ok(
          run_call(world.program, world.lists[static_cast<std::size_t>(rank)], buffers, runtime));
      wrong += world.count_wrong(rank, call);
    }
  });
  EXPECT_EQ(failures, "");
  return wrong;
}

// With an M that ranks do not divide, and one below the number of ranks.
TEST(HostPipeline, AllProgramsMultiplyTheGatheredA) {
  std::minstd_rand random;
  for (int ranks = 1; ranks <= 5; ++ranks) {
    const auto uneven = static_cast<std::size_t>(4 * ranks - 1);
    for (const std::size_t m : {uneven, std::size_t{3}}) {
      for (const Description& kind : pipelines::test::all_kinds(ranks, m)) {
        const Description description = pipelines::test::varied(kind, random);
        World world(description);
        EXPECT_EQ(run_calls(world, static_cast<unsigned>(random())), 0)
            << pipelines::test::name(description);
      }
    }
  }
}

TEST(HostPipeline, EpochsWrap) {
  for (const Protocol protocol : {Protocol::kGet, Protocol::kPut}) {
    World world(small(Algorithm::kRing, protocol, 3, 9), std::uint64_t{0} - 3);
    EXPECT_EQ(run_calls(world, 1), 0);
  }
}

// The call of a rank whose peers never call.
Status call_alone(World& world, HostPipeline& runtime, int rank) {
  require_ok(run_setup(world.program, runtime));
  world.begin(rank, 0);
  return run_call(world.program, world.lists[static_cast<std::size_t>(rank)],
                  world.buffers_of(rank), runtime);
}

HostPipeline rank_of(World& world, int rank, HostPatience patience) {
  return {world.memory_of(rank), world.words(),
          [&world](const HostProduct& call) { return multiply_plainly(world.program, call); },
          std::move(patience)};
}

TEST(HostPipeline, ATimeoutNamesTheRankThatDidNotCome) {
  World world(small(Algorithm::kShift, Protocol::kGet, 3, 9), 6);
  HostPipeline runtime = rank_of(world, 1, patience(20ms));
  const Status status = call_alone(world, runtime, 1);
  EXPECT_EQ(status.code(), StatusCode::kTimeout);
  EXPECT_EQ(status.message(),
            "all_gather_matmul: rank 1 waited 20 ms for rank 2: ready[0] is at epoch 6, not 7");
  const Status again = call_alone(world, runtime, 1);
  EXPECT_EQ(again.code(), StatusCode::kTimeout);
  EXPECT_EQ(again.message(), status.message());
}

TEST(HostPipeline, AWaitEndsIfTheGroupFails) {
  World world(small(Algorithm::kTiles, Protocol::kPut, 2, 8));
  HostPatience failed = patience();
  failed.group_status = [] { return Status(StatusCode::kPeerFailed, "rank 1 has ended"); };
  HostPipeline runtime = rank_of(world, 0, std::move(failed));
  EXPECT_EQ(call_alone(world, runtime, 0).code(), StatusCode::kPeerFailed);
}

TEST(HostPipeline, WorkspacesAndSharedBuffersHaveToBeSymmetric) {
  World world(small(Algorithm::kShift, Protocol::kPut, 2, 8));
  const auto setup = [&](std::byte* workspace) {
    HostPipeline runtime(world.memory_of(0, workspace), world.words(), {}, patience());
    const Status status = run_setup(world.program, runtime);
    EXPECT_EQ(status.code(), StatusCode::kInvalidArgument);
    return status.message();
  };
  EXPECT_EQ(setup(nullptr), "all_gather_matmul: no workspace for A_gathered");
  EXPECT_EQ(setup(world.at(0, 4)),
            "all_gather_matmul: A_gathered of rank 0 is not in symmetric memory");
}

// Rank 1 writes its A only after rank 0's last matmul, or as rank 0 waits for it.
int count_wrong_of_rank_0(bool waits) {
  Description description = small(Algorithm::kShift, Protocol::kGet, 2, 8);
  description.symmetric_a = true;
  World world(description);
  if (!waits) {
    auto& list = world.lists[0];
    const auto await = std::ranges::find_if(list, [](const Instruction& one) {
      return std::holds_alternative<pipelines::Await>(one.action);
    });
    list.erase(await);
  }
  std::atomic<bool> begins = false;
  int wrong = 0;
  const std::string failures = run_ranks(RankKind::kThreads, 2, [&](int rank) {
    int multiplied = 0;
    HostPipeline runtime(
        world.memory_of(rank), world.words(),
        [&](const HostProduct& call) {
          if (rank == 0 && ++multiplied == (waits ? 1 : 2)) begins = true;
          return multiply_plainly(world.program, call);
        },
        patience());
    require_ok(run_setup(world.program, runtime));
    while (rank == 1 && !begins) std::this_thread::yield();
    world.begin(rank, 0);
    require_ok(run_call(world.program, world.lists[static_cast<std::size_t>(rank)],
                        world.buffers_of(rank), runtime));
    if (rank == 0) wrong = world.count_wrong(0, 0);
  });
  EXPECT_EQ(failures, "");
  return wrong;
}

TEST(HostPipeline, WithoutAWaitTheResultIsWrong) {
  EXPECT_EQ(count_wrong_of_rank_0(true), 0);
  EXPECT_EQ(count_wrong_of_rank_0(false), 4 * 3);  // the peer's rows of both Cs
}

}  // namespace
}  // namespace tutti::fused::test
