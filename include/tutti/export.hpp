/// \file
/// TUTTI_API marks the functions that libtutti.so exports.
#pragma once

#if __cplusplus < 202002L
#error "tutti needs C++20: compile with -std=c++20 or newer"
#endif

/// A function that programs may call. Everything else has hidden visibility. Members are marked one
/// by one, because a marked class would export its private members too.
#if defined(__GNUC__)
#define TUTTI_API __attribute__((visibility("default")))
#else
#define TUTTI_API
#endif
