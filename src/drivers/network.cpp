#include "drivers/network.hpp"

#include "base/knobs.hpp"
#include "drivers/ucx_library.hpp"
#include "drivers/ucx_wire.hpp"

namespace tutti {
namespace {

class UcxNetwork final : public NetworkDriver {
 public:
  Status usable() override {
    static const Status found = find_ucx(wire_options(Knobs::process()).library).status();
    return found;
  }
  Result<std::unique_ptr<Wire>> open() override {
    return open_ucx_wire(wire_options(Knobs::process()));
  }
};

}  // namespace

NetworkDriver* real_network() {
  static UcxNetwork network;
  return &network;
}

}  // namespace tutti
