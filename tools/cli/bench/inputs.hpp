// What the ranks put in, and what must come out, bit for bit.
//
// Inputs are small whole numbers (powers of two for products) whose every partial result, in any
// order, is exact in the element type, as far as the type has room: then every correct algorithm
// gives the same bits. They repeat with a prime period, so that no shift by a chunk or a block goes
// unseen, and differ from rank to rank and from iteration to iteration. Nothing here calls the
// library's arithmetic or conversions.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "base/bytes.hpp"
#include "tutti/types.hpp"

namespace tutti::cli {

// What outputs hold before an operation: in no type an element of what one operation can give.
inline constexpr std::uint8_t kPoison = 0xA4;

class ExactInputs {
 public:
  struct Shape {
    DataType dtype = DataType::kFloat32;
    OpKind op = OpKind::kSum;
    int ranks = 1;         // 1 to 16
    int applications = 1;  // how often the operation is applied to its own result (chained)
  };
  static constexpr std::size_t kPeriod = 16381;  // elements; prime

  explicit ExactInputs(const Shape& shape);

  ReduceOp op(int rank) const;  // with the rank's multiplier

  // One period of what `rank` puts in, and of what every rank must get out.
  Bytes input(int rank, std::uint32_t iteration) const;
  Bytes expected(std::uint32_t iteration) const;

 private:
  Shape shape_;
  bool cancels_ = false;   // the ranks' values add up to zero
  bool balanced_ = false;  // the ranks' values differ, their mean does not need the room of a sum
  std::int64_t budget_ = 0;
  std::int64_t magnitude_ = 0;
  int active_ = 0;  // ranks with a value other than the neutral one, per element

  double value(int rank, std::size_t index, std::uint32_t iteration) const;
  double sum_value(int rank, std::size_t index, std::uint32_t iteration) const;
  double product_value(int rank, std::size_t index, std::uint32_t iteration) const;
  double scalar(int rank) const;
  template <class T>
  T reduce(std::size_t index, std::uint32_t iteration) const;
  template <class T>
  T reduce_again(T value) const;
};

// Repeats `period` over `out`.
void tile(std::span<std::byte> out, ByteView period);

struct Mismatches {
  std::uint64_t count = 0;  // elements
  std::size_t first = 0;    // index of the first
};
// Compares `got` with the repeated `period`, element by element, all bits.
Mismatches count_mismatches(ByteView got, ByteView period, std::size_t element_bytes);

}  // namespace tutti::cli
