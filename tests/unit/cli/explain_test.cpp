#include "explain.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "known_gpus.hpp"

namespace tutti::cli {
namespace {

using testing::ContainsRegex;
using testing::HasSubstr;

Machine gpus(int count) {
  Machine machine;
  for (int index = 0; index < count; ++index) {
    Gpu gpu;
    gpu.index = index;
    gpu.name = "NVIDIA H200";
    gpu.compute = 90;
    machine.gpus.push_back(gpu);
  }
  const auto n = static_cast<std::size_t>(count);
  machine.peer_access.assign(n, std::vector<bool>(n, true));
  return machine;
}

Machine no_gpus() {
  Machine machine;
  machine.why_no_gpu = "none";
  return machine;
}

constexpr int kNccl = 22907;

ExplainArguments asking() {
  ExplainArguments arguments;
  arguments.collective = "all_reduce";
  return arguments;
}

TEST(Explain, AsksAboutThisMachineByDefault) {
  const auto question = read_question(asking(), gpus(4), {.nccl = kNccl});
  ASSERT_TRUE(question.is_ok()) << question.status().to_string();
  EXPECT_EQ(question->topology.backend, Backend::kCuda);
  EXPECT_EQ(question->topology.ranks, 4);
  EXPECT_TRUE(question->topology.all_reach(Reach::kPeerMemory));
  EXPECT_TRUE(question->topology.nccl);
  EXPECT_EQ(question->request.dtype, DataType::kBfloat16);
  EXPECT_EQ(question->request.count, 512u * 1024);
}

TEST(Explain, UsesTheHostWhereThereIsNoGpu) {
  const auto question = read_question(asking(), no_gpus(), {});
  ASSERT_TRUE(question.is_ok());
  EXPECT_EQ(question->topology.backend, Backend::kHost);
  EXPECT_EQ(question->request.dtype, DataType::kFloat32);
}

TEST(Explain, SeesAPairThatDoesNotReachEachOther) {
  Machine machine = gpus(4);
  machine.peer_access[3][1] = false;
  EXPECT_EQ(
      read_question(asking(), machine, {.nccl = kNccl})->topology.pair_without(Reach::kPeerMemory),
      std::pair(3, 1));
  ExplainArguments arguments = asking();
  arguments.ranks = "3";  // without GPU 3
  EXPECT_TRUE(
      read_question(arguments, machine, {.nccl = kNccl})->topology.all_reach(Reach::kPeerMemory));
}

TEST(Explain, AsksAboutAMachineThatIsDescribed) {
  ExplainArguments arguments = asking();
  arguments.gpu = "b200";
  arguments.ranks = "8";
  arguments.bytes = "1K";
  arguments.buffers = "plain";
  const auto question = read_question(arguments, no_gpus(), {});
  ASSERT_TRUE(question.is_ok());
  EXPECT_EQ(question->topology.gpu, "NVIDIA B200");
  EXPECT_EQ(question->topology.compute, 100);
  EXPECT_EQ(question->topology.multiprocessors, 148);
  EXPECT_EQ(question->topology.ranks, 8);
  EXPECT_FALSE(question->request.symmetric());
}

TEST(Explain, AsksAboutSeveralNodes) {
  ExplainArguments arguments = asking();
  arguments.gpu = "h100";
  arguments.ranks = "2x8";
  const auto question = read_question(arguments, no_gpus(), {});
  ASSERT_TRUE(question.is_ok()) << question.status().to_string();
  const Topology& topology = question->topology;
  EXPECT_EQ(topology.ranks, 16);
  EXPECT_EQ(topology.nodes(), 2);
  EXPECT_EQ(topology.node(7), 0);
  EXPECT_EQ(topology.node(8), 1);
  EXPECT_TRUE(topology.network) << "a machine that is described has all";
  EXPECT_FALSE(question->request.symmetric()) << "no memory is, between nodes";
  arguments.ranks = "1x8";
  EXPECT_EQ(read_question(arguments, no_gpus(), {})->topology.nodes(), 1);
}

TEST(Explain, HasANetworkOnlyWhereThisMachineHas) {
  ExplainArguments arguments = asking();
  arguments.ranks = "3x1";
  EXPECT_TRUE(read_question(arguments, no_gpus(), {})->topology.network);
  const Status none(StatusCode::kUnavailable, "no UCX");
  EXPECT_FALSE(read_question(arguments, no_gpus(), {.network = [&](bool) { return none; }})
                   ->topology.network);
  arguments.ranks = "3";
  EXPECT_FALSE(read_question(arguments, no_gpus(), {})->topology.network) << "on one node";
}

TEST(Explain, ACapturedStreamHasAsMuchStagingAsEagerCalls) {
  ExplainArguments arguments = asking();
  EXPECT_EQ(read_question(arguments, gpus(4), {.nccl = kNccl})->request.staging_bytes, 8u << 20);
  arguments.mode = "graph";
  const auto question = read_question(arguments, gpus(4), {.nccl = kNccl});
  EXPECT_TRUE(question->request.capturing);
  EXPECT_EQ(question->request.staging_bytes, 8u << 20);
}

TEST(Explain, LimitsSmsOnlyWhereItIsTold) {
  ExplainArguments arguments = asking();
  EXPECT_EQ(read_question(arguments, gpus(4), {.nccl = kNccl})->request.sm_budget, std::nullopt);
  arguments.sm_budget = "0";
  EXPECT_EQ(read_question(arguments, gpus(4), {.nccl = kNccl})->request.sm_budget, 0);
  arguments.sm_budget = "16";
  EXPECT_EQ(read_question(arguments, gpus(4), {.nccl = kNccl})->request.sm_budget, 16);
}

struct BadQuestion {
  std::string name;
  std::string ExplainArguments::*field;
  std::string value, text;

  friend void PrintTo(const BadQuestion& of, std::ostream* out) { *out << of.name; }
};

class RefusedQuestion : public testing::TestWithParam<BadQuestion> {};

TEST_P(RefusedQuestion, SaysWhy) {
  ExplainArguments arguments = asking();
  arguments.*GetParam().field = GetParam().value;
  const auto question = read_question(arguments, gpus(2), {.nccl = kNccl});
  ASSERT_FALSE(question.is_ok());
  EXPECT_THAT(question.status().message(), HasSubstr(GetParam().text));
}

const BadQuestion kBadQuestions[] = {
    {"collective", &ExplainArguments::collective, "all", "unknown collective 'all'"},
    {"ranks", &ExplainArguments::ranks, "0", "not between 1 and"},
    {"ranks_text", &ExplainArguments::ranks, "8x", "'8x'"},
    {"no_node", &ExplainArguments::ranks, "0x8", "not between 1 and"},
    {"more_nodes_than_this_one", &ExplainArguments::ranks, "2x1", "there are 2 GPUs here"},
    {"more_ranks_than_gpus", &ExplainArguments::ranks, "3", "there are 2 GPUs here"},
    {"bytes", &ExplainArguments::bytes, "much", "'much' is not a size"},
    {"dtype", &ExplainArguments::dtype, "fp12", "did you mean 'fp32'? Known are fp64"},
    {"op", &ExplainArguments::op, "xor", "known are sum"},
    {"algorithm", &ExplainArguments::algorithm, "tree", "known are one_shot"},
    {"buffers", &ExplainArguments::buffers, "old", "known are symmetric, plain"},
    {"mode", &ExplainArguments::mode, "lazy", "known are eager, graph"},
    {"sm_budget", &ExplainArguments::sm_budget, "-1", "--sm-budget"},
    {"sm_budget_text", &ExplainArguments::sm_budget, "few", "--sm-budget"},
    {"backend", &ExplainArguments::backend, "rocm", "known are auto, host, cuda"},
    {"gpu", &ExplainArguments::gpu, "V100",
     "unknown --gpu 'V100'; known are NVIDIA A100-SXM4-40GB"},
    {"gpu_ambiguous", &ExplainArguments::gpu, "a100",
     "fits NVIDIA A100-SXM4-40GB, NVIDIA A100-SXM4-80GB; give more of the name"},
};
INSTANTIATE_TEST_SUITE_P(Explain, RefusedQuestion, testing::ValuesIn(kBadQuestions),
                         [](const auto& parameter) { return parameter.param.name; });

TEST(KnownGpus, AreFoundByAnyPartOfTheirNameInAnyCase) {
  for (const char* text : {"NVIDIA H200", "nvidia h200", "h200", "H20"}) {
    const auto gpu = find_gpu(text);
    ASSERT_TRUE(gpu.is_ok()) << gpu.status().to_string();
    EXPECT_EQ(gpu->name, "NVIDIA H200");
    EXPECT_EQ(gpu->multiprocessors, 132);
  }
}

TEST(KnownGpus, AreThoseOfShippedTablesAtLeast) {
  const auto table = TuningTable::load("", "");
  ASSERT_TRUE(table.is_ok());
  const std::string list = list_gpus(*table);
  for (const TuningSource& source : table->sources()) {
    for (const TuningEntry& entry : source.entries) {
      if (entry.backend != Backend::kCuda) continue;
      ASSERT_TRUE(find_gpu(entry.gpu).is_ok()) << entry.gpu;
      EXPECT_THAT(list, ContainsRegex(entry.gpu + " .*" + source.name));
    }
  }
}

TEST(Explain, NeedsAGpuForCuda) {
  ExplainArguments arguments = asking();
  arguments.backend = "cuda";
  EXPECT_THAT(read_question(arguments, no_gpus(), {.nccl = kNccl}).status().message(),
              HasSubstr("there is no GPU here (none)"));
}

}  // namespace
}  // namespace tutti::cli
