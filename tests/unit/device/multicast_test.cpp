// What binds memory to multicast objects, on fakes; and what keeps it from being used.
#include <atomic>
#include <map>

#include "device/multicast/binding.hpp"
#include "device/multicast/support.hpp"
#include "unit/memory/heap_group.hpp"

namespace tutti::test {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;

constexpr std::size_t kBytes = 64 * KiB;

// What all ranks' drivers know of one object.
struct FakeSwitch {
  std::atomic<int> added = 0, bound = 0, bound_too_early = 0;
};

// An object is an allocation that takes everybody's parts.
class FakeMulticast final : public MulticastDriver {
 public:
  FakeMulticast(FakeSwitch& all, FakeCuda& cuda, int gpus) : all_(all), cuda_(cuda), gpus_(gpus) {}

  std::string fails;  // the name of a call
  std::size_t unit = 4 * KiB;

  Result<std::size_t> granularity(int, std::size_t) override {
    if (fails == "granularity") return failure();
    return unit;
  }
  Result<CudaAllocation> create(int gpus, std::size_t bytes) override {
    EXPECT_EQ(gpus, gpus_);
    if (fails == "create") return failure();
    all_.added = 0;
    return cuda_.create_allocation(0, bytes);
  }
  Status add_device(CudaAllocation, int) override {
    if (fails == "add_device") return failure();
    ++all_.added;
    return Status::ok();
  }
  Status bind(CudaAllocation, CudaAllocation, std::size_t) override {
    if (all_.added < gpus_) ++all_.bound_too_early;
    if (fails == "bind") return failure();
    ++all_.bound;
    return Status::ok();
  }
  Status unbind(CudaAllocation, int, std::size_t) override {
    --all_.bound;
    return Status::ok();
  }

 private:
  static Status failure() { return {StatusCode::kCuda, "fails as the test asks"}; }

  FakeSwitch& all_;
  FakeCuda& cuda_;
  const int gpus_;
};

using Binding = std::shared_ptr<MulticastBinding>;

// Ranks 1 and 2 share a process.
class MulticastTest : public ::testing::Test {
 protected:
  MulticastTest() : group_(HeapKind::kCuda, {0, 1, 1}), segments_(group_.allocate(kBytes)) {
    for (int rank = 0; rank < group_.size(); ++rank) {
      drivers_.push_back(std::make_unique<FakeMulticast>(all_, group_.cuda(rank), group_.size()));
    }
  }

  std::vector<Result<Binding>> bind() {
    std::vector<Result<Binding>> results(3, Status(StatusCode::kInternal, "not run"));
    on_all_ranks(group_.size(), [&](int rank) {
      results[rank] = bind_to_multicast(
          {group_.bootstrap(rank), group_.cuda(rank), *drivers_[rank], group_.device(rank)},
          *segments_[rank], soon());
    });
    return results;
  }

  // On every rank, with the same words, and nothing stays open.
  void expect_failure(int rank, const std::string& why) {
    const auto open = group_.open();
    for (const auto& result : bind()) {
      ASSERT_FALSE(result.is_ok());
      EXPECT_EQ(result.status().code(), StatusCode::kUnavailable);
      EXPECT_THAT(result.status().message(), HasSubstr("rank " + std::to_string(rank) + ": "));
      EXPECT_THAT(result.status().message(), HasSubstr(why));
    }
    EXPECT_EQ(group_.open(), open);
    EXPECT_EQ(all_.bound, 0);
  }

  HeapGroup group_;
  std::vector<Segment> segments_;
  FakeSwitch all_;
  std::vector<std::unique_ptr<FakeMulticast>> drivers_;
};

TEST_F(MulticastTest, EveryRankHasAnAddressOfOneObject) {
  const auto before = group_.open();
  {
    const auto bindings = bind();
    for (const auto& binding : bindings) ASSERT_TRUE(binding.is_ok()) << binding.status().message();
    EXPECT_EQ(all_.bound, 3);
    EXPECT_EQ(all_.bound_too_early, 0);
    for (std::size_t at : {std::size_t{0}, kBytes - 1}) {
      *((*bindings[0])->address() + at) = std::byte{7};
      for (const auto& binding : bindings) EXPECT_EQ(*((*binding)->address() + at), std::byte{7});
      *((*bindings[0])->address() + at) = std::byte{0};
    }
  }
  EXPECT_EQ(all_.bound, 0);
  EXPECT_EQ(group_.open(), before);
}

TEST_F(MulticastTest, WhatOneRankCannotNobodyHas) {
  for (const char* call : {"granularity", "add_device", "bind"}) {
    for (const int rank : {0, 2}) {
      drivers_[rank]->fails = call;
      expect_failure(rank, "fails as the test asks");
      drivers_[rank]->fails.clear();
    }
  }
  drivers_[0]->fails = "create";
  expect_failure(0, "fails as the test asks");
  drivers_[0]->fails.clear();
  drivers_[1]->unit = 3 * KiB;
  expect_failure(1, "no multiple of 3072");
  drivers_[1]->unit = 4 * KiB;
  EXPECT_EQ(all_.bound_too_early, 0);
  for (const auto& binding : bind()) EXPECT_TRUE(binding.is_ok());  // nothing is left behind
}

TEST_F(MulticastTest, WhatCudaRefusesNobodyHas) {
  group_.cuda(0).fail("export_allocation", 0);
  expect_failure(0, "fails as the test asks");
  group_.cuda(0).fail("map_allocation", 0);
  expect_failure(0, "fails as the test asks");
  group_.cuda(0).fail("retain_allocation", 0);
  expect_failure(0, "fails as the test asks");
}

TEST_F(MulticastTest, NegativeControlTheFakeSeesWhoIsTooEarly) {
  ASSERT_TRUE(drivers_[0]->add_device(1, 0).is_ok());
  ASSERT_TRUE(drivers_[0]->bind(1, 1, kBytes).is_ok());
  EXPECT_EQ(all_.bound_too_early, 1);
}

// ---- Whether it may be used

std::string why_not(bool built, bool wanted, std::map<std::string, std::string> environment = {}) {
  return why_no_multicast({built, wanted, [&environment](const char* name) -> const char* {
                             const auto found = environment.find(name);
                             return found == environment.end() ? nullptr : found->second.c_str();
                           }});
}

TEST(MulticastSupport, TakesABuildAndAWish) {
  EXPECT_THAT(why_not(false, true), HasSubstr("TUTTI_MULTICAST=ON"));
  EXPECT_THAT(why_not(true, false), HasSubstr("TUTTI_MULTICAST is not 1"));
  EXPECT_THAT(why_not(true, true), IsEmpty());
}

TEST(MulticastSupport, IsRefusedWhereAnyLibrarysIsSwitchedOff) {
  for (const auto& [name, off] :
       std::map<std::string, std::string>{{"NCCL_NVLS_ENABLE", "0"},
                                          {"TORCH_SYMM_MEM_DISABLE_MULTICAST", "1"},
                                          {"NVSHMEM_DISABLE_NVLS", "1"}}) {
    EXPECT_THAT(why_not(true, true, {{name, off}}), HasSubstr(name));
    EXPECT_THAT(why_not(true, true, {{name, off == "0" ? "1" : "0"}}), IsEmpty());
  }
}

// The tests themselves are of a build without it.
TEST(MulticastSupport, ThisBuildHasNone) {
  if (real_multicast() != nullptr) GTEST_SKIP() << "built with TUTTI_MULTICAST";
  EXPECT_THAT(why_no_multicast(), HasSubstr("this build has none"));
}

}  // namespace
}  // namespace tutti::test
