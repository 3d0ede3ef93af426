// What the headers of algorithms say of them beside the catalogue: for gates.
#pragma once

#include <span>
#include <string_view>

#include "algorithms/descriptor.hpp"

namespace tutti::test {

struct Described {
  const Algorithm& algorithm;
  Traffic traffic;
};
std::span<const Described> described_algorithms();  // in the catalogue's order

struct Promised {
  std::string_view body;  // the name of its struct, which is in the names of its kernels
  KernelPromises promises;
};
std::span<const Promised> promised_kernels();

}  // namespace tutti::test
