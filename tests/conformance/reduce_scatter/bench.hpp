// One rank's buffers: the input written, the output poisoned, canaries on all sides, and the
// verdict afterwards.
#pragma once

#include <optional>
#include <string>

#include "conformance/cell.hpp"
#include "support/group.hpp"
#include "support/oracle.hpp"
#include "tutti/collectives.hpp"

namespace tutti::test {

// Of a cell, `count` is that of one rank.
class ScatterBench {
 public:
  // Room for inputs of so many elements. Collective, but for plain buffers.
  ScatterBench(Rank& rank, BufferKind kind, std::size_t elements);

  ReduceScatter prepare(const Cell& cell, Stream stream);
  // Empty where the output is right, the input is what it was but for an output in place, and
  // nothing beside them was touched.
  std::string check(const Cell& cell);

 private:
  const Answer& answer(const Cell& cell);
  void write(std::byte* area, std::size_t before, ByteView payload);
  std::string read(const std::byte* area, std::size_t before, Bytes& payload);
  std::byte* input() const { return memory_; }
  std::byte* output() const { return memory_ + area_bytes_; }

  Rank& rank_;
  Oracle oracle_;
  std::size_t area_bytes_;
  std::optional<OwnedMemory> own_;
  SymmetricMemory shared_;
  std::byte* memory_ = nullptr;
};

}  // namespace tutti::test
