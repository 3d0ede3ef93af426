/// \file
/// TUTTI_API marks the functions that libtutti.so exports.
#pragma once

#if __cplusplus < 202002L
#error "tutti's C++ API needs C++20: compile with -std=c++20 or newer, or use tutti/tutti.h"
#endif

#include "tutti/c/export.h"  // IWYU pragma: export
