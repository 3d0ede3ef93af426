// Builds without TUTTI_MULTICAST.
#include "device/multicast/driver.hpp"

namespace tutti {

MulticastDriver* real_multicast() { return nullptr; }

}  // namespace tutti
