/// \file
/// The version of these headers, and of the library that the program runs with.
#pragma once

#include "tutti/export.hpp"

#define TUTTI_VERSION_MAJOR 0
#define TUTTI_VERSION_MINOR 1
#define TUTTI_VERSION_PATCH 0
/// major * 10000 + minor * 100 + patch
#define TUTTI_VERSION \
  (TUTTI_VERSION_MAJOR * 10000 + TUTTI_VERSION_MINOR * 100 + TUTTI_VERSION_PATCH)
#define TUTTI_VERSION_STRING "0.1.0"

namespace tutti {

/// The version of the library that this program runs with, "major.minor.patch".
TUTTI_API const char* version();

}  // namespace tutti
