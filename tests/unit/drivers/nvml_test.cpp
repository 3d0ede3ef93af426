#include "drivers/nvml.hpp"

#include <gtest/gtest.h>

#include <string>

namespace tutti {
namespace {

TEST(Nvml, ReadsGpusAndTheirLinks) {
  std::string why;
  const auto nvml = open_nvml(STUB_NVML, &why);
  ASSERT_NE(nvml, nullptr) << why;
  EXPECT_EQ(*nvml->driver_version(), "580.159.04");
  const auto gpus = nvml->gpus();
  ASSERT_TRUE(gpus.is_ok());
  ASSERT_EQ(gpus->size(), 1U);  // the hidden one is left out
  const NvmlGpu& gpu = gpus->front();
  EXPECT_EQ(gpu.pci_bus_id, "0000:1b:00.0");
  EXPECT_EQ(gpu.nvlinks, 3);
}

TEST(Nvml, ReadsThePowerOfAGpu) {
  const auto nvml = open_nvml(STUB_NVML);
  ASSERT_NE(nvml, nullptr);
  const auto watts = nvml->watts("0000:1b:00.0");
  ASSERT_TRUE(watts.is_ok()) << watts.status().to_string();
  EXPECT_EQ(*watts, 650.5);
  EXPECT_EQ(nvml->watts("0000:1c:00.0").status().code(), StatusCode::kUnavailable);
}

TEST(Nvml, ALibraryWithoutItsSymbolsIsRefused) {
  std::string why;
  EXPECT_EQ(open_nvml(STUB_NCCL, &why), nullptr);
  EXPECT_NE(why.find("nvmlDeviceGetCount_v2"), std::string::npos) << why;
}

TEST(Nvml, AnAbsentLibraryIsNamed) {
  std::string why;
  EXPECT_EQ(open_nvml("libtutti-no-such-nvml.so.1", &why), nullptr);
  EXPECT_NE(why.find("libtutti-no-such-nvml.so.1"), std::string::npos) << why;
}

TEST(Nvml, TheRealOneExplainsItselfOrAnswers) {
  std::string why;
  NvmlDriver* nvml = real_nvml(&why);
  EXPECT_EQ(nvml == nullptr, !why.empty()) << why;
  EXPECT_TRUE(nvml == nullptr || nvml->gpus().is_ok());
}

}  // namespace
}  // namespace tutti
