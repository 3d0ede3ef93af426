#include "pipelines/runtime.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "pipelines/check.hpp"
#include "programs.hpp"
#include "support/check.hpp"

namespace tutti::pipelines::test {
namespace {

using testing::ElementsAre;
using tutti::test::take;

// Notes what it is asked for, and fails at one of these.
class Noting : public PipelineRuntime {
 public:
  explicit Noting(std::string fails_at) : fails_at_(std::move(fails_at)) {}

  int rank() const override { return 1; }
  Status allocate(BufferId) override { return note("allocate"); }
  Status share_handles(std::span<const BufferId>) override { return note("share_handles"); }
  Status begin_call(CallBuffers) override { return note("begin_call"); }
  Status wait_for_stream(int, const WaitForStream&) override { return note("wait_for_stream"); }
  Status await(int, const Await&) override { return note("await"); }
  Status signal(int, const Signal&) override { return note("signal"); }
  Status move(int, const Move&) override { return note("move"); }
  Status multiply(int, const Multiply&) override { return note("multiply"); }
  Status end_call(const Status& status) override {
    notes.push_back("end_call: " + status.message());
    return status;
  }

  std::vector<std::string> notes;

 private:
  Status note(const std::string& what) {
    notes.push_back(what);
    return what == fails_at_ ? Status(StatusCode::kTimeout, what + " failed") : Status::ok();
  }
  std::string fails_at_;
};

std::vector<std::string> notes_of(const std::string& fails_at, StatusCode expected) {
  const Program program = take(derive(small(Algorithm::kShift, Protocol::kPut, 2, 8)));
  Noting runtime(fails_at);
  std::byte any{};
  const std::vector<std::byte*> buffers(program.buffers.size(), &any);
  EXPECT_EQ(run_call(program, take(checked(program))[0], buffers, runtime).code(), expected);
  return runtime.notes;
}

TEST(PipelineRuntime, ACallThatBeganEnds) {
  EXPECT_THAT(notes_of("", StatusCode::kOk),
              ElementsAre("begin_call", "signal", "wait_for_stream", "wait_for_stream", "multiply",
                          "await", "move", "signal", "await", "multiply", "wait_for_stream",
                          "wait_for_stream", "end_call: "));
  EXPECT_THAT(
      notes_of("wait_for_stream", StatusCode::kTimeout),
      ElementsAre("begin_call", "signal", "wait_for_stream", "end_call: wait_for_stream failed"));
  EXPECT_THAT(notes_of("begin_call", StatusCode::kTimeout), ElementsAre("begin_call"));
}

TEST(PipelineRuntime, ACallNeedsTheCallersBuffers) {
  const Program program = take(derive(small(Algorithm::kShift, Protocol::kPut, 2, 8)));
  const auto ranks = take(checked(program));
  Noting runtime("");
  std::byte any{};
  std::vector<std::byte*> buffers(program.buffers.size(), &any);
  buffers[1] = nullptr;  // a workspace
  EXPECT_TRUE(run_call(program, ranks[0], buffers, runtime).is_ok());
  runtime.notes.clear();
  buffers[2] = nullptr;
  EXPECT_EQ(run_call(program, ranks[0], buffers, runtime).message(),
            "all_gather_matmul: B0 is null");
  buffers.pop_back();
  EXPECT_EQ(run_call(program, ranks[0], buffers, runtime).message(),
            "all_gather_matmul: 6 buffers, for a program of 7");
  EXPECT_THAT(runtime.notes, testing::IsEmpty());
}

// Rank 1 has no rows. Its peer's A is found where its own one is.
TEST(PipelineRuntime, OnlyASymmetricBufferIsNeededWithoutRows) {
  Description description = small(Algorithm::kShift, Protocol::kGet, 2, 1);
  for (const bool symmetric : {false, true}) {
    description.symmetric_a = symmetric;
    const Program program = take(derive(description));
    Noting runtime("");
    std::byte any{};
    std::vector<std::byte*> buffers(program.buffers.size(), &any);
    buffers[0] = nullptr;
    EXPECT_EQ(run_call(program, take(checked(program))[1], buffers, runtime).message(),
              symmetric ? "all_gather_matmul: A is null" : "");
  }
}

}  // namespace
}  // namespace tutti::pipelines::test
