// Where matmuls run and how their time is taken: replays of CUDA graphs or calls between events, or
// calls on the host between readings of its clock.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "drivers/cuda.hpp"
#include "drivers/nvml.hpp"
#include "tutti/status.hpp"

namespace tutti::cli {

// Something whose time is taken. A sample runs all its operations in order, operation i with set
// i modulo the number of sets.
struct MatmulArm {
  std::string algorithm = {}, tile = {};  // as in rows
  std::string config = {}, library = {};
  double fill = 0;
  bool chosen = false;
  bool multiplies = true;                           // else it writes no C
  std::function<Status(Stream stream)> begin = {};  // enqueued before a sample's operations
  std::function<Status(std::size_t set, Stream stream)> run;
  int operations = 0;                   // of a sample
  std::shared_ptr<void> prepared = {};  // by the device
  std::vector<double> samples_us = {};  // per operation
  std::vector<double> megahertz = {};   // mean of all SMs in each sample, where it is measured
  std::vector<double> host_us = {};     // of each call that enqueued an operation on a GPU
};

// Ranks that take samples together.
class MatmulRanks {
 public:
  virtual ~MatmulRanks() = default;
  // Enqueued: what follows in `stream` begins when all ranks have come to it. The host waits.
  virtual Status align(Stream stream) = 0;
  virtual Status status() = 0;  // of their group
  // Collective: what each of them says.
  virtual Result<std::vector<std::string>> exchange(const std::string& mine) = 0;
};

// How a sample's operations are started.
struct MatmulLaunch {
  // Of a sample, at least. 0: as many operations as take long enough, on a GPU replayed as a graph.
  int calls = 0;
  MatmulRanks* ranks = nullptr;  // null: one alone. Else `calls` is not 0
};

class MatmulDevice {
 public:
  virtual ~MatmulDevice() = default;

  virtual Result<std::shared_ptr<std::byte>> allocate(std::size_t bytes) = 0;
  virtual Status copy(void* to, const void* from, std::size_t bytes) = 0;  // in any direction
  virtual Status fill(std::byte* at, std::uint8_t value, std::size_t bytes) = 0;

  // Operations go round over sets of matrices of at least so many bytes together.
  virtual std::size_t rotated_bytes() const = 0;
  virtual int multiprocessors() const { return 0; }
  // Multiplications and additions per cycle of all its tensor cores, in bf16 and fp16; 0: unknown.
  virtual double operations_per_cycle() const { return 0; }

  // Of several ranks, what rank 0 says; collective.
  virtual Result<bool> agreed(bool mine) { return mine; }

  // Runs it once, and decides how many operations a sample has.
  virtual Status prepare(MatmulArm& arm, std::size_t sets) = 0;
  // Samples of each: in order, then in reverse order, and so on (A B B A). Returns when all ended.
  virtual Status sample(std::span<MatmulArm* const> arms, int rounds) = 0;

  // Mean power since the last call, where it is measured; else 0.
  virtual double watts() { return 0; }
};

// Of the current device. `nvml`: null, power is not measured. `launch.ranks` must outlive them.
Result<std::unique_ptr<MatmulDevice>> make_cuda_matmul_device(CudaDriver& cuda, NvmlDriver* nvml,
                                                              const MatmulLaunch& launch = {});
std::unique_ptr<MatmulDevice> make_host_matmul_device(const MatmulLaunch& launch = {});

// So many operations that a sample takes long against what starts and ends it: a multiple of the
// number of sets.
int operations_for(double microseconds, std::size_t sets);
// At least `calls`: a multiple of the number of sets.
int operations_of_calls(int calls, std::size_t sets);
// What `ranks` agree on: what rank 0 says.
Result<bool> agreed_by(MatmulRanks& ranks, bool mine);

}  // namespace tutti::cli
