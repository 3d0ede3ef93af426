// What an operation is bound to is used again once it has been enqueued, or refused.
#include <gtest/gtest.h>

#include <vector>

#include "base/units.hpp"
#include "device/kernel_args.hpp"
#include "support/fake_gpus.hpp"
#include "tutti/collectives.hpp"

namespace tutti::test {
namespace {

// A captured call for which no slot is left binds nothing. Operations that are prepared together
// afterwards have arguments of their own.
TEST(BindingsTest, ARefusedOperationGivesItsPlaceBackOnce) {
  FakeGpus gpus(1);
  Communicator& group = gpus.groups.front();
  const SymmetricMemory memory = take(group.allocate(4 * KiB));
  auto* const at = static_cast<float*>(memory.data());
  const auto reduce_to = [&](float* output, Stream stream) {
    return all_reduce(group, {.input = at,
                              .output = output,
                              .count = 10,
                              .stream = stream,
                              .options = {.algorithm = "two_shot"}});
  };
  const Stream stream = gpus.make_stream(0);
  gpus.cuda.on_captured_launch = [](const CudaLaunch&) { return [] { return Status::ok(); }; };
  require_ok(group.start_capture());
  require_ok(gpus.cuda.begin_capture(stream));
  std::vector<float> plain(10);
  Status refused;
  for (int k = 0; k < 5000 && refused.code() != StatusCode::kResourceExhausted; ++k) {
    refused = reduce_to(plain.data(), stream);
  }
  ASSERT_EQ(refused.code(), StatusCode::kResourceExhausted) << refused.message();
  require_ok(gpus.cuda.destroy_graph(take(gpus.cuda.end_capture(stream))));

  std::vector<std::byte*> outputs;
  gpus.cuda.on_launch = [&](const CudaLaunch& launch) {
    outputs.push_back(static_cast<const KernelArgs*>(launch.arguments[0])->output);
    return Status::ok();
  };
  group_start();
  require_ok(reduce_to(at + 100, stream));
  require_ok(reduce_to(at + 200, stream));
  require_ok(group_end());
  EXPECT_EQ(outputs, (std::vector{reinterpret_cast<std::byte*>(at + 100),
                                  reinterpret_cast<std::byte*>(at + 200)}));
}

}  // namespace
}  // namespace tutti::test
