// What a fuzz target is made of. A target is one file that defines LLVMFuzzerTestOneInput:
// libFuzzer calls it with the kept corpus and with what it invents (preset host-fuzz).
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string_view>

#include "base/bytes.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size);

namespace tutti::fuzz {

inline std::string_view text_of(const std::uint8_t* data, std::size_t size) {
  return {reinterpret_cast<const char*>(data), size};
}

// What holds for every input. Ends the process where it does not: libFuzzer keeps the input.
inline void must_hold(bool holds, const char* property) {
  if (holds) return;
  std::fprintf(stderr, "does not hold: %s\n", property);
  std::abort();
}

// Takes one byte off the front: how the rest is to be used. 0 where nothing is left.
inline std::size_t take_choice(ByteView& input) {
  if (input.empty()) return 0;
  const auto choice = std::to_integer<std::size_t>(input.front());
  input = input.subspan(1);
  return choice;
}

}  // namespace tutti::fuzz
