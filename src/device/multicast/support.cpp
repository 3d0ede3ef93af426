#include "device/multicast/support.hpp"

#include <fmt/core.h>

#include <cstdlib>
#include <string_view>

#include "base/knobs.hpp"

namespace tutti {
namespace {

// Who switches it off for one library means the machine.
struct Switch {
  const char* name;
  std::string_view off;
};
constexpr Switch kSwitches[] = {{"NCCL_NVLS_ENABLE", "0"},
                                {"TORCH_SYMM_MEM_DISABLE_MULTICAST", "1"},
                                {"NVSHMEM_DISABLE_NVLS", "1"}};

#if TUTTI_MULTICAST
constexpr bool kIsBuilt = true;
#else
constexpr bool kIsBuilt = false;
#endif

}  // namespace

std::string why_no_multicast(const MulticastSettings& settings) {
  if (!settings.built) return "this build has none: it takes -DTUTTI_MULTICAST=ON";
  if (!settings.wanted) return "TUTTI_MULTICAST is not 1";
  for (const Switch& each : kSwitches) {
    const char* const value = settings.variable(each.name);
    if (value != nullptr && value == each.off) {
      return fmt::format("{}={} switches it off", each.name, value);
    }
  }
  return {};
}

std::string why_no_multicast() {
  return why_no_multicast({.built = kIsBuilt,
                           .wanted = Knobs::process().flag("TUTTI_MULTICAST"),
                           .variable = [](const char* name) { return std::getenv(name); }});
}

}  // namespace tutti
