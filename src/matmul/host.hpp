// Matmuls on the calling thread: by a BLAS, or by a plain loop where none is installed and under
// ThreadSanitizer, which knows nothing of a BLAS's threads.
#pragma once

#include <cstddef>
#include <string>

#include "drivers/blas.hpp"
#include "matmul/problem.hpp"

namespace tutti {

// Rows of A that are multiplied at once: a matmul with fewer rows widens and reads all of B as
// well.
inline constexpr std::size_t kHostMatmulRows = 512;

// The process's BLAS; null: the plain loop.
const Blas* host_blas();
std::string host_matmul_library();  // "OpenBLAS 0.3.21" or "a plain loop"

// `blas`: null for the plain loop, which adds in the order of k. Memory beyond the matrices stays
// below 8 MiB. At least one product.
void run_host_matmul(const CheckedMatmul& call, const Blas* blas);

}  // namespace tutti
