// Which algorithm runs, and how.
#pragma once

#include <cstddef>
#include <string>

namespace tutti::cli {

struct Configuration {
  std::string algorithm;        // "two_shot"
  int blocks = 0, threads = 0;  // 0: as planned
  std::size_t chunk_bytes = 0;  // 0: as planned
  bool by_itself = false;       // what auto takes, where no row runs: the call names none
  friend bool operator==(const Configuration&, const Configuration&) = default;
};

// "two_shot", "two_shot 64x512", "two_shot 64x512 chunks of 256K".
std::string to_text(const Configuration& configuration);

}  // namespace tutti::cli
