// The matrices of a rank and what it gathers, and whether what came out is right.
//
// All are random numbers that every rank can make again: a prime number of them, repeated, so that
// no shift goes unseen and nothing large has to be kept. They use all bits of their type, since
// what a GPU draws, and so its clock, depends on them.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <vector>

#include "base/bytes.hpp"
#include "bench/engine.hpp"
#include "bench/inputs.hpp"
#include "drivers/matmul.hpp"

namespace tutti::cli {

// In [-1, 1), as they are in the type.
class Numbers {
 public:
  static constexpr std::size_t kPeriod = 65537;  // elements; prime

  Numbers(DataType dtype, std::uint64_t seed);
  double operator[](std::size_t index) const { return values_[index % kPeriod]; }
  const Bytes& period() const { return period_; }

 private:
  std::vector<float> values_;
  Bytes period_;
};

class Operands {
 public:
  struct Setting {
    MatmulShape matmul;
    bool dependent = false;  // A is what is gathered
    int rank = 0, ranks = 1;
    std::size_t part_bytes = 0;  // that each rank puts in
    // Of arithmetic (arithmetic.hpp), whose results C has then; 0: a matmul.
    std::size_t threads = 0;
  };
  // Where they are in the engine's memory. `a` is the beginning of `gathered` where dependent.
  struct Places {
    std::byte *a, *b, *c;
    std::byte *part, *gathered;
  };

  Operands(Engine& memory, const Setting& setting, const Places& places)
      : memory_(memory), setting_(setting), places_(places) {}

  const Places& places() const { return places_; }
  std::size_t product_bytes() const { return product_bytes_of(setting_); }
  static std::size_t product_bytes_of(const Setting& setting);
  std::size_t gathered_bytes() const {
    return setting_.part_bytes * static_cast<std::size_t>(setting_.ranks);
  }

  // What an all_gather writes: all but what lies in its place already. Of two runs one may be
  // empty.
  std::array<std::span<std::byte>, 2> written_by_gather() const;

  // Other numbers than before, in all that is read.
  Status fill(std::uint32_t iteration);

  // Elements of C that are not what a sum in double gives, among some of all parts of the matrix;
  // of arithmetic all that are not exactly what they should be.
  // `flip`: as if a bit of the first were another.
  Result<Mismatches> check_product(bool flip) const;
  // Elements of what was gathered that are not what the ranks put in, to the bit.
  Result<Mismatches> check_gathered(bool flip);

 private:
  std::size_t element() const { return size_of(setting_.matmul.dtype); }
  std::size_t elements_of_c() const { return setting_.matmul.m * setting_.matmul.n; }
  Result<Mismatches> check_arithmetic(bool flip) const;
  double a(std::size_t index) const;
  bool is_right(std::size_t row, std::size_t column, double got) const;
  Status write(std::byte* to, std::size_t bytes, const Numbers& numbers);

  Engine& memory_;
  const Setting setting_;
  const Places places_;
  std::vector<Numbers> matrices_;  // A, unless it is gathered, and B
  std::vector<Numbers> parts_;     // of each rank
  Bytes host_;
};

}  // namespace tutti::cli
