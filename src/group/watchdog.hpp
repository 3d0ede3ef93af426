// One thread per process that looks at what kernels report, and at what the other ranks run, so
// that a rank which only waits still tells the group. It runs as long as there is a communicator
// that needs it.
#pragma once

#include "tutti/status.hpp"

namespace tutti {

class CommunicatorImpl;

// kResourceExhausted where the system gives no thread.
Status watch(CommunicatorImpl& communicator);
// After this returns the watchdog does not touch it any more.
void unwatch(CommunicatorImpl& communicator);

}  // namespace tutti
