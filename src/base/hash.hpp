// For comparing values between ranks: the same on every machine, not for adversaries.
#pragma once

#include <cstdint>
#include <string_view>

namespace tutti {

// FNV-1a.
class Hash {
 public:
  // Each text is followed by its length, so that "ab","c" and "a","bc" differ.
  Hash& add(std::string_view text) {
    for (const char c : text) add_byte(static_cast<std::uint8_t>(c));
    return add(static_cast<std::uint64_t>(text.size()));
  }
  Hash& add(std::uint64_t value) {
    for (int shift = 0; shift < 64; shift += 8) add_byte(static_cast<std::uint8_t>(value >> shift));
    return *this;
  }
  std::uint64_t value() const { return value_; }

 private:
  void add_byte(std::uint8_t byte) { value_ = (value_ ^ byte) * 0x100000001b3u; }
  std::uint64_t value_ = 0xcbf29ce484222325u;
};

// Of words alone, a multiplication for each: for what is done in every call.
class WordHash {
 public:
  WordHash& add(std::uint64_t word) {
    value_ = (value_ ^ word) * 0x9e3779b97f4a7c15u;
    value_ ^= value_ >> 32;
    return *this;
  }
  std::uint64_t value() const { return value_; }

 private:
  std::uint64_t value_ = 0xcbf29ce484222325u;
};

// Of 32 bits, and never 0: for words of which 0 means that nobody has written them.
constexpr std::uint32_t signature_from(std::uint64_t hash) {
  const auto folded = static_cast<std::uint32_t>(hash ^ hash >> 32);
  return folded != 0 ? folded : 1;
}

}  // namespace tutti
