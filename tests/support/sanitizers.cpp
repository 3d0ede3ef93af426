#include "support/sanitizers.hpp"

#if defined(__SANITIZE_ADDRESS__)
#include <sanitizer/lsan_interface.h>
#endif

namespace tutti::test {

bool memory_leaked() {
#if defined(__SANITIZE_ADDRESS__)
  return __lsan_do_recoverable_leak_check() != 0;
#else
  return false;
#endif
}

}  // namespace tutti::test

#if defined(__SANITIZE_ADDRESS__)
// GCC's run-time library, up to 13, takes some blocks of thread-local memory for those of an old
// glibc, where a library with such memory (UCX's) is loaded at run time. The search for leaks then
// reads beyond the block, and now and then the process ends there. The search still finds leaks.
extern "C" __attribute__((visibility("default"))) const char* __asan_default_options() {
  return "intercept_tls_get_addr=0";
}
#endif

#if defined(__SANITIZE_THREAD__)
// The first race ends the process: a child that ends by _exit() would not tell of it otherwise. The
// run-time library finds this where it is exported.
extern "C" __attribute__((visibility("default"))) const char* __tsan_default_options() {
  return "halt_on_error=1:exitcode=66";
}
#endif
