// One thread per process that looks at what kernels report, so that a rank which only waits for its
// stream still tells the group. Started with the first communicator that needs it.
#pragma once

namespace tutti {

class CommunicatorImpl;

void watch(CommunicatorImpl& communicator);
// After this returns the watchdog does not touch it any more.
void unwatch(CommunicatorImpl& communicator);

}  // namespace tutti
