// One rank's buffers: the input written, the output poisoned, canaries on all sides, and the
// verdict afterwards, against bytes that are computed anew.
#pragma once

#include <optional>
#include <string>

#include "base/bytes.hpp"
#include "conformance/movement/cell.hpp"
#include "support/group.hpp"

namespace tutti::test {

class MovementBench {
 public:
  // Room for outputs of `bytes`. Collective, but for plain buffers.
  MovementBench(Rank& rank, BufferKind kind, std::size_t bytes);

  struct Buffers {
    const std::byte* input;
    std::byte* output;
  };
  Buffers prepare(const MovementCell& cell);
  // Of a cell whose counts lie there; prepare() has written them.
  DeviceCounts device_counts(const MovementCell& cell) const;
  // Empty where the output is right, the input is what it was and nothing beside them was touched.
  std::string check(const MovementCell& cell);

 private:
  Bytes expected(const MovementCell& cell) const;
  void give_counts(const MovementCell& cell);
  std::string check_counts(const MovementCell& cell);
  void write(std::byte* area, std::size_t before, ByteView payload);
  std::string compare(const std::byte* area, std::size_t before, ByteView expected);
  std::byte* input() const { return memory_; }
  std::byte* output() const { return memory_ + area_bytes_; }

  Rank& rank_;
  std::size_t area_bytes_;
  std::optional<OwnedMemory> own_;
  SymmetricMemory shared_;
  std::byte* memory_ = nullptr;
  static constexpr std::size_t kCountsBytes = 256;
  OwnedMemory counts_{rank_.device, 2 * kCountsBytes, MemoryKind::kOrdinary};
};

}  // namespace tutti::test
