// Who this process is, as its peers need to know it.
#pragma once

#include <vector>

#include "bootstrap/bootstrap.hpp"
#include "bootstrap/sha256.hpp"

namespace tutti {

// host_id is equal for two processes of one kernel that share its pid and ipc namespaces;
// process_token is drawn anew in a forked child. Where the system tells nothing, the host's name
// stands for it.
PeerIdentity this_process();

// Bytes nobody can guess. kSystem where the kernel gives none.
Result<Digest> random_digest();

bool all_on_one_host(const std::vector<PeerIdentity>& identities);

}  // namespace tutti
