// What a test process has to know of the sanitizer it was built with.
#pragma once

namespace tutti::test {

// A process that ends by _exit() leaves LeakSanitizer out: this asks it. False without it.
bool memory_leaked();

// Code runs about ten times as long under a sanitizer, so tests that repeat a computation with many
// values take fewer of them there.
#if defined(__SANITIZE_THREAD__) || defined(__SANITIZE_ADDRESS__)
inline constexpr bool kSanitizer = true;
#else
inline constexpr bool kSanitizer = false;
#endif

#if defined(__SANITIZE_THREAD__)
inline constexpr bool kThreadSanitizer = true;
#else
inline constexpr bool kThreadSanitizer = false;
#endif

}  // namespace tutti::test
