#include "run/cores.hpp"

namespace tutti::cli {

std::optional<cpu_set_t> cores_of_rank(const cpu_set_t& usable, int rank, int ranks) {
  const int cores = CPU_COUNT(&usable);
  if (ranks > cores) return std::nullopt;
  const int first = rank * cores / ranks, end = (rank + 1) * cores / ranks;
  cpu_set_t own;
  CPU_ZERO(&own);
  int index = 0;
  for (int core = 0; core < CPU_SETSIZE; ++core) {
    if (!CPU_ISSET(core, &usable)) continue;
    if (index >= first && index < end) CPU_SET(core, &own);
    ++index;
  }
  return own;
}

}  // namespace tutti::cli
