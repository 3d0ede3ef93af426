// The executor by itself, in a group of one rank: what it answers when nothing runs any more.
#include "executors/network/executor.hpp"

#include <gtest/gtest.h>

#include <chrono>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "bootstrap/bootstrap.hpp"
#include "fakes/fake_cuda.hpp"
#include "fakes/thread_wire.hpp"
#include "support/check.hpp"
#include "support/copy_kernels.hpp"
#include "support/patience.hpp"
#include "topology/topology.hpp"

namespace tutti::test {
namespace {

class GroupOfOne : public GroupServices {
 public:
  explicit GroupOfOne(CudaDriver* cuda) : cuda_(cuda) { topology_.network = true; }

  Bootstrap& bootstrap() override { return *bootstraps_.front(); }
  const Topology& topology() const override { return topology_; }
  CudaDriver* cuda() const override { return cuda_; }
  int device() const override { return 0; }
  Deadline deadline() const override { return Deadline(timeout()); }
  std::chrono::milliseconds timeout() const override { return kPatience; }
  Timeout timeout_of(const Operation&) const override { return {}; }
  bool has_failed() const override { return false; }
  Status failure() const override { return {}; }
  bool has_left(int) const override { return false; }
  Status fail(const Status& cause) override { return cause; }
  void report(const FailureRecord&) override {}
  void fail_waiting(const Status&, const std::string&) override {}
  void fail_in(const Status&, const std::string&, int) override {}
  Status exchanged(const Status& answer) override { return answer; }
  void forget_plans() override {}
  Streams& streams() override { return *streams_; }
  SymmetricHeap* heap() override { return nullptr; }
  const std::string& why_no_heap() const override { return none_; }
  Result<std::shared_ptr<SymmetricSegment>> allocate_own(std::size_t, Deadline) override {
    return Status(StatusCode::kUnavailable, "no memory");
  }
  Result<OwnMemory> own_memory() override { return OwnMemory{}; }
  Result<std::vector<std::shared_ptr<SymmetricSegment>>> register_ranges(
      const std::vector<std::pair<void*, std::size_t>>&, bool) override {
    return Status(StatusCode::kUnsupported, none_);
  }
  Result<OperationPlan> plan_message(const MessageCall&, const Call&, bool) override {
    return Status(StatusCode::kUnsupported, none_);
  }
  std::string position() override { return none_; }

 private:
  CudaDriver* const cuda_;
  Topology topology_;
  std::vector<std::unique_ptr<Bootstrap>> bootstraps_ = make_in_process_group(1);
  std::unique_ptr<Streams> streams_ = make_host_streams();
  const std::string none_;
};

void expect_nothing_runs(NetworkExecutor& executor) {
  EXPECT_TRUE(executor.has_ended(1));
  EXPECT_EQ(executor.ended_through(7), 7u);
  executor.await(1);
  EXPECT_EQ(executor.position(), "");
  EXPECT_TRUE(executor.check().is_ok());
  EXPECT_TRUE(executor.set_timeout(kPatience).is_ok());
  executor.hear_of_failure();
  executor.drain(Deadline(kPatience));
}

// Of ranks on the host, and of those on GPUs, whose operations are staged.
TEST(NetworkExecutorTest, everything_has_ended_before_the_first_operation_and_after_close) {
  FakeCuda cuda(std::make_shared<FakeCudaWorld>(1));
  const CopyKernels<> kernels(cuda);
  for (CudaDriver* const driver :
       {static_cast<CudaDriver*>(nullptr), static_cast<CudaDriver*>(&cuda)}) {
    ThreadNetworkDriver network;
    GroupOfOne group(driver);
    NetworkExecutor executor(group, &network);
    expect_nothing_runs(executor);
    require_ok(executor.prepare_all(kNeedsNetwork));
    EXPECT_FALSE(executor.has_ended(1));
    executor.close(Deadline(kPatience));
    expect_nothing_runs(executor);
    executor.close(Deadline(kPatience));
  }
}

}  // namespace
}  // namespace tutti::test
