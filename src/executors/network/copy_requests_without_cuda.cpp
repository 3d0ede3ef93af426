#include "executors/network/copy_ring.hpp"

namespace tutti {

const void* requested_copies_kernel() { return nullptr; }

}  // namespace tutti
