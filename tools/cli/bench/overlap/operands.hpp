// The matrices of a rank and what it gathers, all of random numbers that every rank can make again,
// and whether what came out is right.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <vector>

#include "base/bytes.hpp"
#include "bench/engine.hpp"
#include "bench/inputs.hpp"
#include "bench/numbers.hpp"
#include "drivers/matmul.hpp"

namespace tutti::cli {

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
