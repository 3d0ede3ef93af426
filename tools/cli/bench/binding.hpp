// Where a rank of the host backend runs.
#pragma once

namespace tutti::cli {

// Gives the calling thread, and those that it starts, a core of its own among `ranks` like it; does
// nothing where this process may use fewer cores. Ranks that wait do not sleep, so that two which a
// scheduler has put on one core take turns there for long, while another core is idle.
void bind_to_core(int rank, int ranks);

}  // namespace tutti::cli
