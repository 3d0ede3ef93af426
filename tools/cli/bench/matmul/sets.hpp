// The matrices of what is measured: several sets of them, so that none is found in a cache, all
// with the same numbers.
#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "bench/matmul/device.hpp"
#include "bench/matmul/reference.hpp"

namespace tutti::cli {

struct MatmulSetting {
  MatmulExtents extents;
  DataType dtype = DataType::kFloat32;
  MatrixLayout layout = MatrixLayout::kRowMajor;  // of B
  int products = 1;
  bool bias = false;
  bool check = true;
};

class MatmulSets {
 public:
  static constexpr std::size_t kMost = 1024;
  // Allocates and fills them, at most so many.
  static Result<MatmulSets> make(MatmulDevice& device, const MatmulSetting& setting,
                                 std::size_t most = kMost);

  const MatmulSetting& setting() const { return setting_; }
  std::size_t size() const { return sets_; }
  std::size_t bytes() const { return set_bytes_; }  // of the matrices of a set

  const std::byte* a(std::size_t set) const { return a_.get() + set * a_bytes_; }
  const std::byte* b(std::size_t set, int product) const {
    return b_.get() + at(set, product) * b_bytes_;
  }
  std::byte* c(std::size_t set, int product) const {
    return c_.get() + at(set, product) * c_bytes_;
  }
  const std::byte* bias(int product) const {  // null: none
    return bias_ == nullptr ? nullptr
                            : bias_.get() + static_cast<std::size_t>(product) * bias_bytes_;
  }

  Status poison();  // every C
  // Wrong elements among samples of the C of a set. `flip`: as if the sign of the first were
  // another.
  Result<Mismatches> check(std::size_t set, bool flip = false) const;

 private:
  MatmulSets(MatmulDevice& device, const MatmulSetting& setting, std::size_t most);
  std::size_t at(std::size_t set, int product) const {
    return set * static_cast<std::size_t>(setting_.products) + static_cast<std::size_t>(product);
  }
  Status allocate();
  Status fill();
  Status repeat(std::byte* to, std::size_t bytes, const Numbers& numbers);

  MatmulDevice* device_;
  MatmulSetting setting_;
  std::size_t a_bytes_, b_bytes_, c_bytes_, bias_bytes_;  // of one, to the next
  std::size_t set_bytes_ = 0, sets_ = 1;
  std::shared_ptr<std::byte> a_, b_, c_, bias_;
  std::vector<MatmulReference> references_;  // of each product, if they are checked
};

}  // namespace tutti::cli
