#include "bench/configuration.hpp"

#include <fmt/core.h>

#include "base/units.hpp"

namespace tutti::cli {

std::string to_text(const Configuration& configuration) {
  std::string text = configuration.algorithm;
  if (configuration.threads > 0) {
    text += fmt::format(" {}x{}", configuration.blocks, configuration.threads);
  }
  if (configuration.chunk_bytes > 0) {
    text += fmt::format(" chunks of {}", format_bytes(configuration.chunk_bytes));
  }
  return text;
}

}  // namespace tutti::cli
