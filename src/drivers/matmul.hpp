// Matrix products by the libraries that are best at them, opened at run time: cuBLASLt on a GPU, a
// BLAS on the host. Nothing of theirs is needed to build.
#pragma once

#include <cstddef>
#include <memory>
#include <string>

#include "drivers/cuda.hpp"
#include "tutti/matmul.hpp"
#include "tutti/status.hpp"
#include "tutti/types.hpp"

namespace tutti {

// C = A x B + bias: [m, k] x [k, n] + [n] -> [m, n]. A and C are row-major. Sums are in fp32.
struct MatmulShape {
  std::size_t m = 0, n = 0, k = 0;
  DataType dtype = DataType::kFloat32;  // of all matrices: fp16, bf16 or fp32
  bool tf32 = false;                    // factors of fp32 may be rounded to TF32
  MatrixLayout b_layout = MatrixLayout::kRowMajor;
  std::size_t lda = 0, ldb = 0, ldc = 0;  // as in tutti::Matmul: 0 for no gaps
  bool bias = false;
  // Powers of two that divide the addresses of A, B and C, and that of the bias, in bytes.
  std::size_t alignment = 256, bias_alignment = 256;
};

struct MatmulOperands {
  const void* a = nullptr;
  const void* b = nullptr;
  void* c = nullptr;
  const void* bias = nullptr;  // only if the shape has one
};

class LibraryMatmul {
 public:
  virtual ~LibraryMatmul() = default;
  // On a GPU it is enqueued in `stream`, which must have ended before this object does; on the host
  // it is done on return.
  virtual Status run(const MatmulOperands& operands, Stream stream) = 0;
  virtual std::string library() const = 0;  // "cuBLASLt 13.0.2"

  // How many ways the library proposes for this shape, the one it expects to be fastest first, and
  // which of them run() goes from now on. One call at a time, and not during run().
  virtual int heuristics() const { return 1; }
  virtual void choose(int heuristic) { static_cast<void>(heuristic); }
};

// On the calling thread's device, which has to be `device`. `library` is a file, else the loader's
// search finds it. kUnavailable names the package, kUnsupported what has no product there.
Result<std::unique_ptr<LibraryMatmul>> make_cublas_lt_matmul(CudaDriver& cuda, int device,
                                                             const MatmulShape& shape,
                                                             const std::string& library = {});

// One thread per call; from any number of threads. kUnavailable names the package, kUnsupported
// what has no product on the host: all but fp32 without gaps and bias.
Result<std::unique_ptr<LibraryMatmul>> make_blas_matmul(const MatmulShape& shape);

}  // namespace tutti
