// What a rank measures of one setting: the matmul of a gathered A alone, and calls that gather A
// and multiply it.
#pragma once

#include <string>
#include <vector>

#include "bench/all_gather_matmul/ranks/options.hpp"
#include "bench/all_gather_matmul/ranks/together.hpp"
#include "bench/matmul/arms.hpp"
#include "bench/runnable.hpp"

namespace tutti::cli {

// Of one rank: the sets hold the whole of A, B and C; in symmetric memory there are this rank's
// shard of A, and room for the others'.
class GatherMatrices {
 public:
  // Collective.
  static Result<GatherMatrices> make(Communicator& communicator, MatmulDevice& device,
                                     const MatmulSetting& setting, int most_sets);

  MatmulSets& sets() { return *sets_; }
  const MatmulSets& sets() const { return *sets_; }
  std::byte* shard(std::size_t set) const { return at(set); }
  std::byte* gathered(std::size_t set) const { return at(set) + shard_stride_; }
  std::size_t gathered_bytes() const { return gathered_bytes_; }
  std::size_t shard_elements() const { return shard_elements_; }  // of rank 0, which has most
  Status poison(MatmulDevice& device) const;                      // all that is gathered

 private:
  std::byte* at(std::size_t set) const {
    return static_cast<std::byte*>(memory_.data()) + set * (shard_stride_ + gathered_stride_);
  }

  std::unique_ptr<MatmulSets> sets_;  // does not move
  SymmetricMemory memory_;
  std::size_t shard_elements_ = 0, gathered_bytes_ = 0;
  std::size_t shard_stride_ = 0, gathered_stride_ = 0;
};

struct GatherPlace {
  Communicator& communicator;
  RanksTogether& ranks;
  MatmulDevice& device;
  CudaDriver* cuda = nullptr;  // null on the host
  const RunnableRows& rows;    // of the all_gather
};

// Collective. All must outlive them. Each has run once. The matmuls alone come first.
Result<MatmulArms> make_gather_arms(const GatherPlace& place, const GatherMatmulOptions& options,
                                    const GatherMatrices& matrices);

}  // namespace tutti::cli
