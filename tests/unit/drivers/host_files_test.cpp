#include "drivers/host_files.hpp"

#include <gtest/gtest.h>

namespace tutti {
namespace {

TEST(HostFiles, PciIdsHaveOneSpelling) {
  EXPECT_EQ(normal_pci_bus_id("00000000:1B:00.0"), "0000:1b:00.0");
  EXPECT_EQ(normal_pci_bus_id("0000:1B:00.0"), "0000:1b:00.0");
  EXPECT_EQ(normal_pci_bus_id("00010000:0A:1F.7"), "10000:0a:1f.7");  // a wide domain stays
  EXPECT_EQ(normal_pci_bus_id(""), "");
}

TEST(HostFiles, DriverVersionOfBothKernelModules) {
  EXPECT_EQ(nvidia_driver_version("NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  "
                                  "580.159.04  Release Build  (dvs-builder)  Mon Jan 1 2026\n"
                                  "GCC version:  gcc version 12.2.0 (Debian 12.2.0-14)\n"),
            "580.159.04");
  EXPECT_EQ(nvidia_driver_version("NVRM version: NVIDIA UNIX x86_64 Kernel Module  535.54.03  "
                                  "Tue Jun  6 22:20:39 UTC 2023\n"),
            "535.54.03");
  EXPECT_EQ(nvidia_driver_version("GCC version:  gcc version 12.2.0\n"), "");
  EXPECT_EQ(nvidia_driver_version("NVRM version: none\nGCC version: 12.2.0\n"), "");
  EXPECT_EQ(nvidia_driver_version(""), "");
}

TEST(HostFiles, AbsentFilesAreNoError) {
  EXPECT_EQ(kernel_text("/proc/no/such/file"), "");
  EXPECT_EQ(kernel_text("/proc"), "");  // a folder
  EXPECT_EQ(pci_numa_node("ffff:ff:1f.7"), -1);
  EXPECT_NE(kernel_text("/proc/self/comm"), "");
}

}  // namespace
}  // namespace tutti
