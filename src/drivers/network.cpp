#include "drivers/network.hpp"

#include "base/knobs.hpp"
#include "drivers/ucx_wire.hpp"

namespace tutti {
namespace {

WireOptions options_of(bool one_host) {
  WireOptions options = wire_options(Knobs::process());
  options.one_host = one_host;
  return options;
}

class UcxNetwork final : public NetworkDriver {
 public:
  Status usable(bool one_host) override { return check_ucx(options_of(one_host)); }
  Result<std::unique_ptr<Wire>> open(bool one_host, bool gpus) override {
    WireOptions options = options_of(one_host);
    if (gpus) options.gpus = GpuMemory::kCuda;
    return open_ucx_wire(options);
  }
};

}  // namespace

NetworkDriver* real_network() {
  static UcxNetwork network;
  return &network;
}

}  // namespace tutti
