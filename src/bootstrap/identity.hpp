// Who this process is, as its peers need to know it.
#pragma once

#include <string>
#include <vector>

#include "bootstrap/bootstrap.hpp"
#include "bootstrap/sha256.hpp"

namespace tutti {

// host_id is equal for two processes of one kernel that share its pid and ipc namespaces;
// process_token is drawn anew in a forked child. folder_id is that of TUTTI_RUNTIME_DIR, or of what
// stands for it. Where the system tells nothing, the host's name stands for it.
PeerIdentity this_process();

// Bytes nobody can guess. kSystem where the kernel gives none.
Result<Digest> random_digest();

// The folder as the kernel knows it, whatever path leads there; 0 where there is none.
std::uint64_t folder_id_of(const std::string& path);

// How many ranks are on the host of this one, itself included.
int ranks_of_host(const std::vector<PeerIdentity>& identities, int rank);

// Whether UNIX connections can be made between all of them.
bool all_can_meet(const std::vector<PeerIdentity>& identities);

}  // namespace tutti
