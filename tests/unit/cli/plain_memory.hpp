// An engine that has memory, of this process alone, and runs nothing.
#pragma once

#include <cstring>

#include "bench/engine.hpp"

namespace tutti::cli {

class PlainMemory final : public Engine {
 public:
  Result<std::shared_ptr<std::byte>> allocate(std::size_t bytes) override {
    return std::shared_ptr<std::byte>(new std::byte[bytes], std::default_delete<std::byte[]>());
  }
  Status write(std::byte* to, ByteView from) override {
    std::memcpy(to, from.data(), from.size());
    return Status::ok();
  }
  Status read(std::span<std::byte> to, const std::byte* from) override {
    std::memcpy(to.data(), from, to.size());
    return Status::ok();
  }
  Status prepare(Contender&) override { return Status::ok(); }
  Status sample(std::span<Contender* const>, int, bool) override { return Status::ok(); }
  int rounds_at_once() const override { return 1; }
  std::size_t cache_bytes() const override { return 0; }
};

}  // namespace tutti::cli
