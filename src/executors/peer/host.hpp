// Runs a body on this thread: block after block, so that no body may rely on its blocks running
// side by side.
#pragma once

#include "algorithms/catalogue.hpp"
#include "device/host_shared/host_team.hpp"

namespace tutti {

Outcome run_on_host(HostBody body, const KernelArgs& work,
                    const ProtocolMutation* weakening = nullptr,
                    std::uint64_t* waits_for = nullptr);

}  // namespace tutti
