// What copy engines and the kernels between them do to memory: on all ranks of a group, nothing is
// overwritten while it may be read or written, whatever order their streams allow. And of what
// orders them, nothing is left over.
#include "algorithms/all_gather/copy_engine.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <bitset>
#include <vector>

#include "algorithms/all_gather/copy_engine_multicast.hpp"
#include "algorithms/all_reduce/one_shot_copy_engine.hpp"
#include "algorithms/all_reduce/two_shot_copy_engine.hpp"
#include "algorithms/all_to_all/copy_engine.hpp"
#include "algorithms/bodies.hpp"
#include "algorithms/broadcast/copy_engine.hpp"
#include "algorithms/gather/copy_engine.hpp"
#include "algorithms/reduce_scatter/copy_engine.hpp"
#include "algorithms/scatter/copy_engine.hpp"
#include "device/copy_engine/stages.hpp"
#include "support/host_world.hpp"

namespace tutti {
namespace {

using test::HostWorld;

constexpr std::size_t kNodes = 2048;

struct Access {
  const std::byte* first;
  std::size_t bytes;
  bool writes;
};

bool conflict(const Access& a, const Access& b) {
  return (a.writes || b.writes) && a.first < b.first + b.bytes && b.first < a.first + a.bytes;
}

// Copies, kernels, and what comes behind kernels that meet; an edge from each to what must wait.
class StageGraph {
 public:
  int add(std::vector<Access> accesses, int after) {
    accesses_.push_back(std::move(accesses));
    before_.emplace_back();
    const int node = static_cast<int>(accesses_.size()) - 1;
    order(after, node);
    return node;
  }
  void order(int from, int to) {
    if (from >= 0) before_[static_cast<std::size_t>(to)].set(static_cast<std::size_t>(from));
  }

  int races() {
    close();
    int found = 0;
    for (std::size_t i = 0; i < accesses_.size(); ++i) {
      for (std::size_t j = 0; j < i; ++j) {
        if (before_[i][j] || before_[j][i]) continue;
        for (const Access& a : accesses_[i]) {
          for (const Access& b : accesses_[j]) found += conflict(a, b) ? 1 : 0;
        }
      }
    }
    return found;
  }

 private:
  void close() {
    for (bool grows = true; grows;) {
      grows = false;
      for (auto& before : before_) {
        const auto known = before;
        for (std::size_t j = 0; j < before_.size(); ++j) {
          if (known[j]) before |= before_[j];
        }
        grows = grows || before != known;
      }
    }
  }

  std::vector<std::vector<Access>> accesses_;
  std::vector<std::bitset<kNodes>> before_;
};

// What a rank enqueues. The wait number `without` is left out.
class RankStages : public Stages {
 public:
  RankStages(StageGraph& graph, std::size_t element_bytes, int without)
      : graph_(graph), element_bytes_(element_bytes), without_(without) {}

  void reduce(const KernelArgs& part, Publish) override {
    const std::size_t bytes = part.count * element_bytes_;
    std::vector<Access> accesses;
    for (int r = 0; bytes > 0 && r < part.ranks; ++r) {
      accesses.push_back({part.inputs.at[r], bytes, false});
    }
    accesses.push_back({part.output, bytes, true});
    kernel(std::move(accesses));
    if (!part.meets) return;
    meetings.push_back({last_kernel_, graph_.add({}, last_kernel_)});
    last_kernel_ = meetings.back().behind;
  }
  void copy(std::byte* to, const std::byte* from, std::size_t bytes) override {
    if (bytes == 0) return;
    const int node = graph_.add({{from, bytes, false}, {to, bytes, true}}, last_copies_);
    for (const int earlier : copies_wait_) graph_.order(earlier, node);
    together_.push_back(node);
    ++copied;
  }
  void copy_among_kernels(std::byte* to, const std::byte* from, std::size_t bytes) override {
    if (bytes == 0) return;
    kernel({{from, bytes, false}, {to, bytes, true}});
    ++copied;
  }
  // Copies are ordered behind those that a verb stands before, and not among themselves.
  void end_batch() override {
    if (together_.empty()) return;
    const int end = graph_.add({}, last_copies_);
    for (const int copy : together_) graph_.order(copy, end);
    together_.clear();
    last_copies_ = end;
  }
  void kernel(std::vector<Access> accesses) {
    end_batch();
    const int node = graph_.add(std::move(accesses), last_kernel_);
    for (const int earlier : kernels_wait_) graph_.order(earlier, node);
    last_kernel_ = node;
  }

  Mark kernels() override {
    end_batch();
    return last_kernel_;
  }
  Mark copies() override {
    end_batch();
    return last_copies_;
  }
  void kernels_wait(Mark copies) override {
    end_batch();
    if (waits++ != without_) kernels_wait_.push_back(copies);
  }
  void copies_wait(Mark kernels) override {
    end_batch();
    if (waits++ != without_) copies_wait_.push_back(kernels);
  }

  struct Meeting {
    int kernel, behind;
  };
  std::vector<Meeting> meetings;
  int waits = 0, copied = 0;

 private:
  StageGraph& graph_;
  std::size_t element_bytes_;
  int without_;
  int last_kernel_ = -1, last_copies_ = -1;
  std::vector<int> together_;
  std::vector<int> kernels_wait_, copies_wait_;
};

struct Setting {
  EngineProgram program;
  int ranks;
  bool staged;
};

// Of floats: several chunks, or passes, and something left behind the shares.
constexpr std::size_t kCount = 331, kStagingBytes = 512, kChunkBytes = 64;

struct Races {
  int races;
  int waits, copied;  // of the rank that has the most, and of all
};

// Two operations on the same memory, of which the caller writes inputs and outputs in between.
Races races_of(const Setting& setting, int without = -1) {
  HostWorld world(setting.ranks, kCount * sizeof(float), kStagingBytes);
  StageGraph graph;
  std::vector<RankStages> ranks(static_cast<std::size_t>(setting.ranks),
                                RankStages(graph, sizeof(float), without));
  for (int r = 0; r < setting.ranks; ++r) {
    RankStages& stages = ranks[static_cast<std::size_t>(r)];
    KernelArgs work = world.work(r, kCount, setting.staged);
    work.chunk_bytes = kChunkBytes;
    for (int operation = 0; operation < 2; ++operation) {
      stages.kernel({{work.input, kCount * sizeof(float), true},
                     {work.output, kCount * sizeof(float), true}});
      setting.program(stages, work, sizeof(float));
    }
    stages.kernel(
        {{work.input, kCount * sizeof(float), true}, {work.output, kCount * sizeof(float), true}});
  }
  for (std::size_t m = 0; m < ranks.front().meetings.size(); ++m) {
    for (const RankStages& from : ranks) {
      for (const RankStages& to : ranks) {
        graph.order(from.meetings[m].kernel, to.meetings[m].behind);
      }
    }
  }
  Races result{graph.races(), 0, 0};
  for (const RankStages& stages : ranks) {
    result.waits = std::max(result.waits, stages.waits);
    result.copied += stages.copied;
  }
  return result;
}

std::vector<Setting> settings() {
  std::vector<Setting> all;
  for (const bool staged : {false, true}) {
    all.push_back({AllReduceOneShotCopyEngine::program, 2, staged});
    for (const int ranks : {2, 3, 4}) {
      all.push_back({BroadcastCopyEngine::program, ranks, staged});
      all.push_back({GatherCopyEngine::program, ranks, staged});
      if (staged) all.push_back({ScatterCopyEngine::program, ranks, staged});  // it always is
      all.push_back({AllReduceTwoShotCopyEngine::program, ranks, staged});
      all.push_back({AllGatherCopyEngine::program, ranks, staged});
      all.push_back({AllGatherCopyEngineMulticast::program, ranks, staged});
      all.push_back({ReduceScatterCopyEngine::program, ranks, staged});
      all.push_back({AllToAllCopyEngine::program, ranks, staged});
    }
  }
  return all;
}

TEST(CopyEngineTest, NothingIsTouchedWhileItMayBeInUse) {
  for (const Setting& setting : settings()) {
    const Races result = races_of(setting);
    EXPECT_EQ(result.races, 0) << setting.ranks << " ranks, staged " << setting.staged;
    EXPECT_GE(result.copied, 4);
  }
}

TEST(CopyEngineTest, EveryWaitIsNeeded) {
  for (const Setting& setting : settings()) {
    const int waits = races_of(setting).waits;
    EXPECT_GE(waits, 4);
    for (int k = 0; k < waits; ++k) {
      EXPECT_GT(races_of(setting, k).races, 0)
          << setting.ranks << " ranks, staged " << setting.staged << ": without wait " << k;
    }
  }
}

// Each rank stores its piece by one copy for all of them, and the switch tells them apart.
TEST(CopyEngineTest, OneCopyServesAllRanksWhereThereIsMulticast) {
  constexpr int kRanks = 4;
  HostWorld world(kRanks, kCount * sizeof(float), kStagingBytes);
  std::vector<std::byte> all(kCount * sizeof(float));
  for (const bool multicast : {false, true}) {
    StageGraph graph;
    RankStages stages(graph, sizeof(float), -1);
    KernelArgs work = world.work(1, kCount, false);
    if (multicast) work.multicast.output = all.data();
    AllGatherCopyEngineMulticast::program(stages, work, sizeof(float));
    EXPECT_EQ(stages.copied, multicast ? 1 : kRanks);
  }
}

// Nothing orders copies that no verb stands between: a program that counts on it races.
TEST(CopyEngineTest, CopiesTogetherMustNotDependOnEachOther) {
  const auto races = [](bool apart) {
    StageGraph graph;
    RankStages stages(graph, 1, -1);
    std::byte bytes[3]{};
    stages.copy(&bytes[1], &bytes[0], 1);
    if (apart) stages.end_batch();
    stages.copy(&bytes[2], &bytes[1], 1);
    (void)stages.copies();
    return graph.races();
  };
  EXPECT_EQ(races(true), 0);
  EXPECT_EQ(races(false), 1);
}

}  // namespace
}  // namespace tutti
