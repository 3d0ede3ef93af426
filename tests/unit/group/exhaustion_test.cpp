// One rank, a process, may open no more descriptors or map no more memory: in the midst of every
// collective that sets something up. All ranks hear which rank it is and which limit; nothing is
// changed, and once there is room the same communicator works.
#include <sys/resource.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <dirent.h>
#include <functional>
#include <set>

#include "support/group.hpp"
#include "tutti/tutti.hpp"
#include "unit/api/layer_of_rank.hpp"
#include "unit/bootstrap/ranks.hpp"

namespace tutti::test {
namespace {

using testing::ForkedRank;
using ::testing::HasSubstr;

constexpr int kSize = 3, kFailing = 1;
constexpr int kMostFree = 60;

// While it lives this process may open `free` more descriptors.
class Shortage {
 public:
  explicit Shortage(int free) {
    ::getrlimit(RLIMIT_NOFILE, &usual_);
    const std::set<int> open = open_now();
    int number = 0;
    for (int left = free; left > 0 || open.contains(number); ++number) {
      if (!open.contains(number)) --left;
    }
    rlimit limit = usual_;
    limit.rlim_cur = static_cast<rlim_t>(number);
    ::setrlimit(RLIMIT_NOFILE, &limit);
  }
  ~Shortage() { ::setrlimit(RLIMIT_NOFILE, &usual_); }
  Shortage(const Shortage&) = delete;
  Shortage& operator=(const Shortage&) = delete;

 private:
  static std::set<int> open_now() {
    std::set<int> open;
    DIR* const folder = ::opendir("/proc/self/fd");
    while (const dirent* const entry = ::readdir(folder)) open.insert(std::atoi(entry->d_name));
    open.erase(::dirfd(folder));
    ::closedir(folder);
    return open;
  }

  rlimit usual_{};
};

// Empty if this is an answer that a lack of `what` may have; `exhausted` where it is one.
std::string complaint_of(const Status& status, std::string_view what, bool& exhausted) {
  exhausted = !status.is_ok();
  if (status.is_ok()) return {};
  const std::string text = status.to_string();
  if (status.code() != StatusCode::kResourceExhausted) return text;
  if (text.find("rank 1") == std::string::npos) return "names no rank: " + text;
  return text.find(what) == std::string::npos ? "names no limit: " + text : std::string();
}

// What is odd in the sum of everybody's `value`; empty where the group computes.
std::string sum_is(Communicator& group, std::int64_t value, std::int64_t expected) {
  const Status reduced =
      all_reduce(group, {.input = &value, .output = &value, .count = 1, .dtype = DataType::kInt64});
  if (!reduced.is_ok()) return reduced.to_string();
  return value == expected ? "" : "the ranks differ: a sum of " + std::to_string(value);
}

using Step = std::function<Status(Communicator&)>;

// Repeats `step` with 0, 1, ... descriptors left on one rank, until it succeeds.
std::string with_every_shortage(Communicator& group, const Step& step) {
  int failures = 0;
  for (int free = 0; free < kMostFree; ++free) {
    Status status;
    {
      std::optional<Shortage> shortage;
      if (group.rank() == kFailing) shortage.emplace(free);
      status = step(group);
    }
    bool exhausted = false;
    std::string complaint = complaint_of(status, "ulimit -n", exhausted);
    if (complaint.empty()) complaint = sum_is(group, exhausted, exhausted ? kSize : 0);
    if (complaint.empty() && !group.status().is_ok()) complaint = group.status().to_string();
    if (complaint.empty()) complaint = testing::text_of(step(group));  // there is room again
    if (!complaint.empty()) return std::to_string(free) + " descriptors left: " + complaint;
    if (!exhausted) return failures > 0 ? "" : "it needs no descriptors at all";
    ++failures;
  }
  return "it always fails";
}

// `steps` on every rank of a group of processes.
void on_processes(const UniqueId& id, const std::function<std::string(Communicator&)>& body) {
  std::vector<ForkedRank> ranks;
  ranks.reserve(kSize);
  for (int rank = 0; rank < kSize; ++rank) {
    ranks.emplace_back([&, rank](const ForkedRank::Say&) {
      auto group = Communicator::create(id, rank, kSize, kOnHost);
      return group.is_ok() ? body(*group) : group.status().to_string();
    });
  }
  for (int rank = 0; rank < kSize; ++rank) EXPECT_EQ(ranks[rank].complaint(), "") << rank;
}

Status allocate_some(Communicator& group) { return group.allocate(8192).status(); }

Status split_off(Communicator& group) {
  const auto part = group.split(0, -group.rank());
  if (!part.is_ok()) return part.status();
  std::int32_t value = 1;
  return all_reduce(**part,
                    {.input = &value, .output = &value, .count = 1, .dtype = DataType::kInt32});
}

UniqueId local_id() { return *UniqueId::create(); }

class ExhaustionTest : public ::testing::TestWithParam<bool> {
 protected:
  UniqueId id() const {
    if (!GetParam()) return local_id();
    return *UniqueId::create_tcp("127.0.0.1", 0);
  }
};
INSTANTIATE_TEST_SUITE_P(Meeting, ExhaustionTest, ::testing::Bool(),
                         [](const auto& over_tcp) { return over_tcp.param ? "tcp" : "local"; });

// A fresh size each time, so that none comes from the pool.
TEST_P(ExhaustionTest, OfDescriptorsWhileMemoryIsAllocated) {
  on_processes(id(), [](Communicator& group) {
    std::size_t bytes = 4096;
    return with_every_shortage(group,
                               [&](Communicator& g) { return g.allocate(bytes += 4096).status(); });
  });
}

// With a fresh m each time, for which there is neither a pipeline nor memory in the pool.
TEST(ExhaustionInAPipeline, OfDescriptorsIsToldToAll) {
  on_processes(local_id(), [](Communicator& group) {
    std::size_t m = 6;
    return with_every_shortage(group, [&](Communicator& g) {
      Layer layer{.m = m += 6, .k = 1024, .n = {1}};
      layer.algorithm = m / 12 % 2 == 0 ? "fused" : "pipelined_shift";
      LayerOfRank side(layer, g, nullptr);
      side.fill(1);
      return all_gather_matmul(g, side.call());
    });
  });
}

TEST(ExhaustionInASplit, OfDescriptorsIsToldToAll) {
  on_processes(local_id(),
               [](Communicator& group) { return with_every_shortage(group, split_off); });
}

// Several attempts over the same processes, each with one more descriptor on one rank.
TEST(ExhaustionInCreation, OfDescriptorsIsToldToAll) {
  std::vector<UniqueId> ids;
  for (int free = 0; free < kMostFree; ++free) ids.push_back(local_id());
  std::vector<ForkedRank> ranks;
  ranks.reserve(kSize);
  for (int rank = 0; rank < kSize; ++rank) {
    ranks.emplace_back([&, rank](const ForkedRank::Say& say) {
      int free = 0;
      for (; free < kMostFree; ++free) {
        std::optional<Shortage> shortage;
        if (rank == kFailing) shortage.emplace(free);
        const auto group = Communicator::create(ids[free], rank, kSize, kOnHost);
        bool exhausted = false;
        const std::string complaint = complaint_of(group.status(), "ulimit -n", exhausted);
        if (!complaint.empty()) return std::to_string(free) + " left: " + complaint;
        if (!exhausted) break;
      }
      say("works with " + std::to_string(free));
      return std::string();
    });
  }
  const std::string first = ranks[0].line();
  EXPECT_THAT(first, HasSubstr("works with")) << ranks[0].complaint();
  EXPECT_NE(first, "works with 0");
  EXPECT_NE(first, "works with " + std::to_string(kMostFree));
  for (int rank = 1; rank < kSize; ++rank) EXPECT_EQ(ranks[rank].line(), first);
  for (int rank = 0; rank < kSize; ++rank) EXPECT_EQ(ranks[rank].complaint(), "") << rank;
}

// As much address space as there is in use, and a little more.
TEST(ExhaustionOfMaps, IsToldToAllAndEndsNothing) {
  on_processes(local_id(), [](Communicator& group) -> std::string {
    constexpr std::size_t kLarge = std::size_t{32} << 20;
    rlimit usual{};
    ::getrlimit(RLIMIT_AS, &usual);
    rlimit limit = usual;
    std::size_t pages = 0;
    std::FILE* const statm = std::fopen("/proc/self/statm", "r");
    if (std::fscanf(statm, "%zu", &pages) != 1) return "no statm";
    std::fclose(statm);
    limit.rlim_cur = pages * 4096 + kLarge / 2;
    if (group.rank() == kFailing) ::setrlimit(RLIMIT_AS, &limit);
    const Status refused = group.allocate(kLarge).status();
    ::setrlimit(RLIMIT_AS, &usual);
    bool exhausted = false;
    std::string complaint = complaint_of(refused, "ulimit -v", exhausted);
    if (!exhausted) complaint = "it was allocated all the same";
    if (complaint.empty()) complaint = testing::text_of(allocate_some(group));
    return complaint.empty() ? sum_is(group, 1, kSize) : complaint;
  });
}

}  // namespace
}  // namespace tutti::test
