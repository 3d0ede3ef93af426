/// \file
/// The version of these headers (tutti/c/version.h has the macros), and of the library that the
/// program runs with.
#pragma once

#include "tutti/c/version.h"  // IWYU pragma: export
#include "tutti/export.hpp"

namespace tutti {

/// The version of the library that this program runs with, "major.minor.patch".
TUTTI_API const char* version();

}  // namespace tutti
