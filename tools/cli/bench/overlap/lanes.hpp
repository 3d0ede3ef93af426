// The two lanes of a rank, one for the matmul and one for the all_gather, and the time on them.
#pragma once

#include <memory>
#include <span>
#include <vector>

#include "bench/engine.hpp"
#include "bench/overlap/operands.hpp"
#include "bench/overlap/options.hpp"
#include "tutti/collectives.hpp"

namespace tutti::cli {

// Microseconds. What a phase does not have is 0.
struct LaneTimes {
  double total = 0;   // from the common start until both have ended
  double matmul = 0;  // of its own, within that
  double gather = 0;
  double megahertz = 0;  // of the multiprocessors during the matmul; 0: not measured
};

// What is measured: a phase, with the all_gather of one row.
struct Act {
  Phase phase = Phase::kMatmul;
  AllGather gather = {};  // its stream is the lanes' to set
  std::vector<LaneTimes> samples = {};
};

class Lanes {
 public:
  virtual ~Lanes() = default;
  // Collective. `rounds` samples of each act, one after the other (A B A B), each started by all
  // ranks together. With `poison`, what an act writes is filled with kPoison before. Returns when
  // all have ended.
  virtual Status sample(std::span<Act* const> acts, int rounds, bool poison) = 0;
  // How many rounds may be asked for at once: so many that work is never waited for in between.
  virtual int rounds_at_once() const = 0;
};

// Collective. `operands` must outlive them. On the GPU of the communicator; `matmul` is of it.
Result<std::unique_ptr<Lanes>> make_cuda_lanes(CudaDriver& cuda, Communicator& communicator,
                                               const OverlapOptions& options,
                                               const Operands& operands,
                                               std::unique_ptr<LibraryMatmul> matmul);
Result<std::unique_ptr<Lanes>> make_host_lanes(Communicator& communicator,
                                               const OverlapOptions& options,
                                               const Operands& operands,
                                               std::unique_ptr<LibraryMatmul> matmul);

}  // namespace tutti::cli
