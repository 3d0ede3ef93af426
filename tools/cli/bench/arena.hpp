// The buffers of a rank: equal slots for inputs and for outputs, of the kind that is measured.
#pragma once

#include <cstddef>
#include <memory>
#include <span>

#include "bench/engine.hpp"
#include "bench/options.hpp"
#include "tutti/communicator.hpp"

namespace tutti::cli {

class Arena {
 public:
  struct Shape {
    BufferKind kind = BufferKind::kSymmetric;
    std::size_t slot_bytes = 0;  // of the largest message
    int inputs = 1, outputs = 1;
  };

  // Collective.
  static Result<Arena> make(Communicator& communicator, Engine& engine, const Shape& shape);

  explicit operator bool() const { return base_ != nullptr; }
  const Shape& shape() const { return shape_; }
  std::span<std::byte> input(int slot, std::size_t bytes) const;
  std::span<std::byte> output(int slot, std::size_t bytes) const;
  // Whether peers reach the memory, so that nothing is copied through staging.
  bool zero_copy() const { return memory_ && memory_.zero_copy(); }

 private:
  Shape shape_;
  std::size_t stride_ = 0;
  std::byte* base_ = nullptr;
  std::shared_ptr<std::byte> plain_;  // outlives its registration
  SymmetricMemory memory_;
};

}  // namespace tutti::cli
