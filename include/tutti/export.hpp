// What marks a function as one that programs may call.
#pragma once

// Everything is compiled with hidden visibility: libtutti.so exports what is marked and nothing
// else. Members are marked one by one, since a marked class would export its private ones, too. A
// function without the mark is there for the library alone.
#if defined(__GNUC__)
#define TUTTI_API __attribute__((visibility("default")))
#else
#define TUTTI_API
#endif
