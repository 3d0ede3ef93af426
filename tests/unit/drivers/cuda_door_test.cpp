// What is said where CUDA cannot be used. Runs on any machine.
#include <gtest/gtest.h>

#include <string>

#include "drivers/cuda.hpp"
#include "drivers/cuda_advice.hpp"
#include "drivers/dynamic_library.hpp"

namespace tutti {
namespace {

constexpr CudaVersions kOldDriver = {.driver = 12040, .runtime = 13000};

testing::AssertionResult says(const std::string& text, std::string_view part) {
  if (text.find(part) != std::string::npos) return testing::AssertionSuccess();
  return testing::AssertionFailure() << "'" << text << "' lacks '" << part << "'";
}

TEST(CudaDoor, NullExactlyWhereThereIsAReason) {
  std::string why = "stale";
  CudaDriver* cuda = real_cuda(&why);
  EXPECT_EQ(cuda == nullptr, !why.empty()) << why;
  EXPECT_EQ(real_cuda(), cuda);
  if (cuda == nullptr) return;
  const auto count = cuda->device_count();
  ASSERT_TRUE(count.is_ok()) << count.status().message();
  EXPECT_GT(*count, 0);
}

TEST(CudaDoor, SaysWhatIsMissingHere) {
  std::string why;
  if (real_cuda(&why) != nullptr) GTEST_SKIP() << "there is a GPU";
#if TUTTI_WITH_CUDA
  if (!DynamicLibrary::open("libcuda.so.1").is_ok()) {
    EXPECT_TRUE(says(why, "libcuda.so.1 cannot be loaded"));
    EXPECT_TRUE(says(why, "install the driver"));
  }
#else
  EXPECT_TRUE(says(why, "built without CUDA"));
  EXPECT_TRUE(says(why, "-DTUTTI_CUDA=ON"));
#endif
}

TEST(CudaDoor, VersionsInWords) {
  EXPECT_EQ(cuda_version_text(13000), "13.0");
  EXPECT_EQ(cuda_version_text(12080), "12.8");
}

TEST(CudaDoor, AnOldDriverIsToldBothVersions) {
  const std::string text =
      advice_for(static_cast<int>(CudaTrouble::kInsufficientDriver), "", kOldDriver);
  EXPECT_TRUE(says(text, "too old"));
  EXPECT_TRUE(says(text, "12.4"));
  EXPECT_TRUE(says(text, "13.0"));
  const std::string none = advice_for(static_cast<int>(CudaTrouble::kInsufficientDriver), "",
                                      {.driver = 0, .runtime = 13000});
  EXPECT_TRUE(says(none, "no NVIDIA driver answers"));
}

TEST(CudaDoor, EachTroubleHasItsRemedyAndCudasWords) {
  const auto advice = [](CudaTrouble trouble) {
    return advice_for(static_cast<int>(trouble), "cudaErrorX: words", kOldDriver);
  };
  EXPECT_TRUE(says(advice(CudaTrouble::kNoDevice), "CUDA_VISIBLE_DEVICES"));
  EXPECT_TRUE(says(advice(CudaTrouble::kSystemNotReady), "nvidia-fabricmanager"));
  EXPECT_TRUE(says(advice(CudaTrouble::kSystemDriverMismatch), "reboot"));
  EXPECT_TRUE(says(advice(CudaTrouble::kStubLibrary), "LD_LIBRARY_PATH"));
  EXPECT_TRUE(says(advice(CudaTrouble::kNoDevice), "cudaErrorX: words"));
  EXPECT_TRUE(says(advice_for(12345, "cudaErrorX: words", kOldDriver), "cudaErrorX: words"));
}

}  // namespace
}  // namespace tutti
