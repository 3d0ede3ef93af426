// What the kernel's files under /proc and /sys say of GPUs and of this host.
#pragma once

#include <string>
#include <string_view>

namespace tutti {

// The whole file; empty where it is not there or cannot be read.
std::string kernel_text(const std::string& path);

// One spelling for what drivers write in several: "00000000:1B:00.0" becomes "0000:1b:00.0".
std::string normal_pci_bus_id(std::string_view text);

// The NUMA node a PCI device hangs on; -1 where the kernel does not know.
int pci_numa_node(const std::string& normal_bus_id);

// The version in /proc/driver/nvidia/version ("580.159.04"); empty if `text` holds none.
std::string nvidia_driver_version(std::string_view text);

}  // namespace tutti
