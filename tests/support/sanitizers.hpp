// What a test process has to know of the sanitizer it was built with.
#pragma once

namespace tutti::test {

// A process that ends by _exit() leaves LeakSanitizer out: this asks it. False without it.
bool memory_leaked();

#if defined(__SANITIZE_THREAD__)
inline constexpr bool kThreadSanitizer = true;
#else
inline constexpr bool kThreadSanitizer = false;
#endif

}  // namespace tutti::test
