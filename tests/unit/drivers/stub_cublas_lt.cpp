// Stands in for libcublasLt.so.13, and where STUB_IS_OLD for one that only bears its name.
#include <cstddef>

// The name is the ABI's.
// NOLINTNEXTLINE(readability-identifier-naming)
extern "C" std::size_t cublasLtGetVersion() {
#ifdef STUB_IS_OLD
  return 111103;
#else
  return 130002;
#endif
}
