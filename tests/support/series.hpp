// A random series of operations, the same on every rank that starts from the same seed.
#pragma once

#include <random>

#include "support/workbench.hpp"

namespace tutti::test {

class Series {
 public:
  static constexpr std::size_t kMostBytes = 320000;  // of one operation

  explicit Series(unsigned seed) : random_(seed) {}

  // Small counts as often as large ones; every dtype, op, row, offset.
  Trial next();
  // Whether the operation that next() gave is to use plain buffers instead of symmetric ones.
  bool plain() const { return plain_; }

 private:
  std::mt19937 random_;
  bool plain_ = false;
};

}  // namespace tutti::test
