// Where a rank's operations run and how their time is taken: the host's clock around a call, or
// events in a CUDA stream.
#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/bytes.hpp"
#include "bench/configuration.hpp"
#include "bench/host_use.hpp"
#include "bench/operation.hpp"
#include "bench/options.hpp"
#include "tutti/tutti.hpp"

namespace tutti::cli {

// What an engine keeps for a contender: a captured graph.
class PlannedOperation {
 public:
  virtual ~PlannedOperation() = default;
};

// One configuration at one size. A sample runs all `operations` once, in order.
struct Contender {
  Configuration configuration;
  std::vector<Operation> operations;  // their streams are the engine's to set
  std::vector<std::span<std::byte>> outputs;
  bool repeatable = true;  // running it once more changes nothing: its inputs are not overwritten
  std::unique_ptr<PlannedOperation> prepared;
  std::vector<double> samples_us;  // per operation
  HostUse use = {};  // meanwhile, the barriers around each sample included; only between nodes
};

class Engine {
 public:
  virtual ~Engine() = default;

  // Memory of a user's who knows nothing of tutti.
  virtual Result<std::shared_ptr<std::byte>> allocate(std::size_t bytes) = 0;
  virtual Status write(std::byte* to, ByteView from) = 0;
  virtual Status read(std::span<std::byte> to, const std::byte* from) = 0;

  // Sets the streams of its operations, and captures them in graph mode.
  virtual Status prepare(Contender& contender) = 0;

  // Collective. Takes `rounds` samples of each contender, one after the other (A B A B), each
  // started by all ranks together. With `poison`, outputs are filled with kPoison before each
  // sample. Returns when all have ended.
  virtual Status sample(std::span<Contender* const> contenders, int rounds, bool poison) = 0;

  // How many rounds may be asked for at once: so many that work is never waited for in between.
  virtual int rounds_at_once() const = 0;

  // Memory that must be walked through to empty the caches.
  virtual std::size_t cache_bytes() const = 0;
};

// Collective: each allocates what aligns the ranks.
Result<std::unique_ptr<Engine>> make_host_engine(Communicator& communicator,
                                                 const BenchOptions& options);
Result<std::unique_ptr<Engine>> make_cuda_engine(Communicator& communicator,
                                                 const BenchOptions& options);

}  // namespace tutti::cli
