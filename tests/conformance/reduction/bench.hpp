// One rank's buffers: the input written, the output poisoned, canaries on all sides, and the
// verdict afterwards.
#pragma once

#include <optional>
#include <string>

#include "algorithms/collective.hpp"
#include "conformance/cell.hpp"
#include "support/group.hpp"
#include "support/oracle.hpp"
#include "support/uneven.hpp"

namespace tutti::test {

// Of a cell, `count` is that of one rank's output: of reduce, the root's.
class ReductionBench {
 public:
  // Room for inputs of so many elements. Collective, but for plain buffers.
  ReductionBench(Rank& rank, Collective collective, BufferKind kind, std::size_t elements);

  struct Call {
    const std::byte* input;
    std::byte* output;  // null where this rank gets nothing
    ReduceOp op;
    int root, blocks;
    DeviceCounts device_counts;  // of uneven pieces, where they come from there
  };
  Call prepare(const Cell& cell);
  // Of uneven pieces.
  UnevenCounts counts(const Cell& cell) const;
  // Of reduce_scatter: of the matrix that is split.
  // Whether the algorithm that a cell names splits rows, and nothing else.
  static bool is_for_rows(Collective collective, const Cell& cell);
  static std::size_t rows(Collective collective, const Cell& cell);
  static bool are_on_device(const Cell& cell);
  // Empty where the output is right, the input is what it was but for an output in place, and
  // nothing beside them was touched.
  std::string check(const Cell& cell);

 private:
  const Answer& answer(const Cell& cell);
  // In bytes: of an input, and of the part of the reduction that this rank gets.
  std::size_t input_bytes(const Cell& cell) const;
  std::size_t part_bytes(const Cell& cell) const;
  std::size_t place(const Cell& cell) const;
  Bytes part_of(const Cell& cell, const Bytes& expected) const;
  Sides sides(const Cell& cell) const;
  DeviceCounts give_counts(const Cell& cell);
  ReduceOp give_op(const Cell& cell, Scalar scalar);
  void write(std::byte* area, std::size_t before, ByteView payload);
  std::string read(const std::byte* area, std::size_t before, Bytes& payload);
  std::byte* input() const { return memory_; }
  std::byte* output() const { return memory_ + area_bytes_; }

  Rank& rank_;
  Collective collective_;
  Oracle oracle_;
  std::size_t area_bytes_;
  std::optional<OwnedMemory> own_;
  SymmetricMemory shared_;
  std::byte* memory_ = nullptr;
  OwnedMemory counts_{rank_.device, 256, MemoryKind::kOrdinary};
};

}  // namespace tutti::test
