// Builds without TUTTI_MULTICAST.
#include "transport/multicast/driver.hpp"

namespace tutti {

MulticastDriver* real_multicast() { return nullptr; }

}  // namespace tutti
