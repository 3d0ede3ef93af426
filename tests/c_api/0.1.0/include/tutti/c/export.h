/// \file
/// TUTTI_API marks the functions that libtutti.so exports, and TUTTI_STRUCT_INIT makes a struct's
/// function of defaults. For C and C++.
#pragma once

#include <stddef.h>
#include <string.h>

/// A function that programs may call. Everything else has hidden visibility. Members of C++ classes
/// are marked one by one, because a marked class would export its private members too.
#if defined(__GNUC__)
#define TUTTI_API __attribute__((visibility("default")))
#else
#define TUTTI_API
#endif

/// Defines tutti_NAME_init(), which returns a tutti_NAME_t that knows its size. Each field is 0, or
/// what the statements after the name make of `value`.
#define TUTTI_STRUCT_INIT(name, ...)                         \
  static inline tutti_##name##_t tutti_##name##_init(void) { \
    tutti_##name##_t value;                                  \
    memset(&value, 0, sizeof value);                         \
    value.size = sizeof value;                               \
    __VA_ARGS__                                              \
    return value;                                            \
  }
