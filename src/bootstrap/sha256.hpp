// SHA-256 (FIPS 180-4) and HMAC (RFC 2104): enough to prove that a peer knows the group's secret,
// without a dependency.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "base/bytes.hpp"

namespace tutti {

using Digest = std::array<std::byte, 32>;

class Sha256 {
 public:
  Sha256& add(ByteView bytes);
  Digest finish();  // at most once

 private:
  void compress(const std::byte* block);

  std::array<std::uint32_t, 8> state_{0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a,
                                      0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19};
  std::array<std::byte, 64> pending_{};
  std::size_t pending_bytes_ = 0;
  std::uint64_t total_bytes_ = 0;
};

Digest sha256(ByteView bytes);
Digest hmac_sha256(ByteView key, ByteView message);

// Takes the same time wherever the two differ.
bool equal_in_constant_time(const Digest& a, const Digest& b);

// The first eight bytes as a number, for names and identifiers.
std::uint64_t first_word(const Digest& digest);

}  // namespace tutti
