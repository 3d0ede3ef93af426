// One rank's buffers for one operation at a time: inputs written, outputs poisoned, canaries on all
// sides, and the verdict afterwards.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "support/device.hpp"
#include "support/oracle.hpp"
#include "tutti/collectives.hpp"

namespace tutti::test {

enum class BufferKind : std::uint8_t {
  kSymmetric,          // Communicator::allocate
  kRegistered,         // malloc or cudaMalloc, and Communicator::register_memory
  kRegisteredVirtual,  // the same with a VMM allocation; CUDA alone
  kPlain,
};
inline constexpr BufferKind kAllBufferKinds[] = {BufferKind::kSymmetric, BufferKind::kRegistered,
                                                 BufferKind::kRegisteredVirtual,
                                                 BufferKind::kPlain};
std::string_view to_string(BufferKind kind);  // "symmetric", "registered", ...

struct Trial {
  DataType dtype = DataType::kFloat32;
  OpKind op = OpKind::kSum;
  std::size_t count = 0;
  int offset = 0;  // of both buffers, in elements from a 256-byte boundary
  bool in_place = false;
  InputKind inputs = InputKind::kRandom;
  std::uint64_t seed = 1;
  std::string_view algorithm = {};
};

class Workbench {
 public:
  static constexpr std::size_t kGuard = 1024;

  // Room for payloads of `bytes`, offsets included. Collective, but for plain buffers. Benches of
  // one rank may share an oracle.
  Workbench(Communicator& group, Device& device, BufferKind kind, std::size_t bytes,
            std::shared_ptr<Oracle> oracle = nullptr);

  // Writes the inputs and poisons the output: every element of it differs from the right one.
  AllReduce prepare(const Trial& trial, Stream stream = nullptr);

  // Once the operation is done on this rank. Empty where the output is right, the input is what it
  // was (unless in place) and nothing beside them was touched.
  std::string check(const Trial& trial);

  Device& device() { return device_; }

 private:
  const Answer& answer(const Trial& trial);
  void lay_out(std::byte* half, std::size_t offset, ByteView payload);
  std::string read_back(const std::byte* half, std::size_t offset, Bytes& payload);

  Communicator& group_;
  Device& device_;
  std::shared_ptr<Oracle> oracle_;
  std::size_t half_bytes_;  // the input's half of the memory, then the output's; then a multiplier
  std::optional<OwnedMemory> own_;
  SymmetricMemory shared_;
  std::byte* memory_ = nullptr;
};

}  // namespace tutti::test
