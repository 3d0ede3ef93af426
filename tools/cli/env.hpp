// `tutti env`.
#pragma once

#include <string>

#include "base/knobs.hpp"

namespace tutti::cli {

// A line per setting: name, value (secrets masked), source, meaning; then the warnings.
std::string print_env(const Knobs& knobs, bool json);

int run_env(bool json);

}  // namespace tutti::cli
