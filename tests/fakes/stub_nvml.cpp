// Stands in for libnvidia-ml.so.1: two GPUs, the first with three active links, the second hidden
// from this process.
#include <cstdio>
#include <cstring>

namespace {

struct Pci {  // nvmlPciInfo_t
  char busIdLegacy[16];
  unsigned domain, bus, device, pciDeviceId, pciSubSystemId;
  char busId[32];
};

constexpr int kNotSupported = 3;
constexpr int kNoPermission = 4;
constexpr unsigned kActiveLinks = 3;
int first_gpu = 0;

}  // namespace

// The names and parameters are the ABI's.
// NOLINTBEGIN(readability-identifier-naming,readability-function-size)
extern "C" {

int nvmlInit_v2() { return 0; }
const char* nvmlErrorString(int /*error*/) { return "stub error"; }

int nvmlSystemGetDriverVersion(char* text, unsigned bytes) {
  std::snprintf(text, bytes, "580.159.04");
  return 0;
}

int nvmlDeviceGetCount_v2(unsigned* count) {
  *count = 2;
  return 0;
}

int nvmlDeviceGetHandleByIndex_v2(unsigned index, void** device) {
  *device = &first_gpu;
  return index == 0 ? 0 : kNoPermission;
}

int nvmlDeviceGetPciInfo_v3(void* device, Pci* pci) {
  if (device != &first_gpu) return kNoPermission;
  std::memset(pci, 0, sizeof *pci);
  std::strcpy(pci->busId, "00000000:1B:00.0");
  return 0;
}

int nvmlDeviceGetNvLinkState(void* /*device*/, unsigned link, unsigned* active) {
  if (link >= 6) return kNotSupported;
  *active = link < kActiveLinks ? 1 : 0;
  return 0;
}

int nvmlDeviceGetHandleByPciBusId_v2(const char* bus_id, void** device) {
  *device = &first_gpu;
  return std::strcmp(bus_id, "0000:1b:00.0") == 0 ? 0 : kNoPermission;
}

int nvmlDeviceGetPowerUsage(void* device, unsigned* milliwatts) {
  *milliwatts = 650'500;
  return device == &first_gpu ? 0 : kNoPermission;
}

}  // extern "C"
// NOLINTEND(readability-identifier-naming,readability-function-size)
