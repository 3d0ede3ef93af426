// Registered memory that was freed, on the fake driver: calls are refused, and that is all.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstddef>
#include <vector>

#include "support/fake_gpus.hpp"
#include "tutti/collectives.hpp"

namespace tutti::test {
namespace {

using ::testing::HasSubstr;

constexpr std::size_t kFreedCount = 1 << 20;
constexpr std::size_t kFreedBytes = kFreedCount * sizeof(float);

class FreedMemoryTest : public ::testing::Test {
 protected:
  FreedMemoryTest() {
    for (int r = 0; r < 2; ++r) {
      streams_.push_back(gpus_.make_stream(r));
      buffers_.push_back(take(gpus_.cuda.allocate(r, kFreedBytes)));
    }
    registered_ = register_all();
  }
  ~FreedMemoryTest() override {
    for (std::byte* const each : buffers_) (void)gpus_.cuda.free(each);
  }

  std::vector<SymmetricMemory> register_all() {
    std::vector<SymmetricMemory> made(2);
    on_all_ranks(2, [&](int r) {
      made[at(r)] = take(group(r).register_memory(buffers_[at(r)], kFreedBytes));
    });
    return made;
  }
  Status reduce(int r) {
    auto* const data = reinterpret_cast<float*>(buffers_[at(r)]);
    return all_reduce(group(r), {.input = data,
                                 .output = data,
                                 .count = kFreedCount,
                                 .dtype = DataType::kFloat32,
                                 .stream = streams_[at(r)]});
  }
  Status receive(int r) {
    return recv(group(r), {.buffer = buffers_[at(r)],
                           .count = kFreedCount,
                           .dtype = DataType::kFloat32,
                           .peer = 1 - r,
                           .stream = streams_[at(r)]});
  }
  static std::size_t at(int rank) { return static_cast<std::size_t>(rank); }
  Communicator& group(int rank) { return gpus_.groups[at(rank)]; }

  FakeGpus gpus_{2};
  std::vector<Stream> streams_;
  std::vector<std::byte*> buffers_;
  std::vector<SymmetricMemory> registered_;
};

TEST_F(FreedMemoryTest, CallsAreRefusedAndTheCommunicatorStaysUsable) {
  for (const int r : {0, 1}) {
    ASSERT_TRUE(reduce(r).is_ok());
    ASSERT_TRUE(gpus_.cuda.free(buffers_[at(r)]).is_ok());
  }
  for (const int r : {0, 1}) {
    for (const Status& refused : {reduce(r), receive(r), reduce(r)}) {
      EXPECT_EQ(refused.code(), StatusCode::kInvalidArgument) << refused.to_string();
      EXPECT_THAT(refused.message(), HasSubstr("has been freed"));
    }
    EXPECT_TRUE(group(r).status().is_ok()) << group(r).status().to_string();
  }
  for (const int r : {0, 1}) {
    const std::byte* const before = buffers_[at(r)];
    buffers_[at(r)] = take(gpus_.cuda.allocate(r, kFreedBytes));
    ASSERT_EQ(buffers_[at(r)], before) << "the same address again";
    EXPECT_THAT(reduce(r).message(), HasSubstr("freed and given out again"));
  }
  registered_.clear();
  registered_ = register_all();
  for (const int r : {0, 1}) {
    const Status again = reduce(r);
    EXPECT_TRUE(again.is_ok()) << again.to_string();
  }
  EXPECT_TRUE(receive(1).is_ok());
}

}  // namespace
}  // namespace tutti::test
