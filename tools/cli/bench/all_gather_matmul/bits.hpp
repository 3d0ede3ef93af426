// Whether products of the same matrices have the same bits.
#pragma once

#include <memory>

#include "bench/matmul/sets.hpp"

namespace tutti::cli {

class BitComparison {
 public:
  BitComparison(MatmulDevice& device, const MatmulSets& sets) : device_(device), sets_(sets) {}

  // Elements of a set's C that differ from what they were when this set was first compared.
  Result<Mismatches> operator()(std::size_t set);

 private:
  std::size_t bytes() const;
  Result<Mismatches> compare(std::size_t set) const;

  MatmulDevice& device_;
  const MatmulSets& sets_;
  std::shared_ptr<std::byte> reference_;
  std::size_t of_ = 0;
  bool filled_ = false;
};

}  // namespace tutti::cli
