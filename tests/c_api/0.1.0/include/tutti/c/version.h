/// \file
/// The version of these headers, for C and C++.
#pragma once

#define TUTTI_VERSION_MAJOR 0
#define TUTTI_VERSION_MINOR 1
#define TUTTI_VERSION_PATCH 0
/// major * 10000 + minor * 100 + patch
#define TUTTI_VERSION \
  (TUTTI_VERSION_MAJOR * 10000 + TUTTI_VERSION_MINOR * 100 + TUTTI_VERSION_PATCH)
#define TUTTI_VERSION_STRING "0.1.0"
