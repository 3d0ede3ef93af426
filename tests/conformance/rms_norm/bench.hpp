// One rank's five buffers: inputs written, outputs poisoned, canaries on all sides, and the verdict
// afterwards.
#pragma once

#include <optional>
#include <string>

#include "conformance/rms_norm/cell.hpp"
#include "support/device.hpp"
#include "tutti/collectives.hpp"

namespace tutti::test {

class NormBench {
 public:
  // Room for matrices of `bytes` each, offsets included. Collective, but for plain buffers.
  NormBench(Communicator& group, Device& device, BufferKind kind, std::size_t bytes);

  AllReduceResidualRmsNorm prepare(const NormCell& cell, const NormAnswer& answer, Stream stream);
  // Empty where both outputs are right, no input was changed and nothing beside them was touched.
  std::string check(const NormCell& cell, const NormAnswer& answer);

 private:
  enum Place { kInput, kResidual, kWeight, kResidualOutput, kOutput, kPlaces };
  std::byte* area(Place place) const;
  void write(Place place, std::size_t before, ByteView payload);
  std::string read(Place place, std::size_t before, Bytes& payload);
  std::string compare(Place place, const NormCell& cell, DataType dtype, ByteView expected);
  Place place_of_output(const NormCell& cell) const;
  Place place_of_residual_output(const NormCell& cell) const;

  Device& device_;
  std::size_t area_bytes_;
  std::optional<OwnedMemory> own_;
  SymmetricMemory shared_;
  std::byte* memory_ = nullptr;
};

}  // namespace tutti::test
