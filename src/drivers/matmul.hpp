// Matrix products by the libraries that are best at them, opened at run time: cuBLASLt on a GPU, a
// BLAS on the host. Nothing of theirs is needed to build.
#pragma once

#include <cstddef>
#include <memory>
#include <string>

#include "drivers/cuda.hpp"
#include "tutti/status.hpp"
#include "tutti/types.hpp"

namespace tutti {

// C = A x B: [m, k] x [k, n] -> [m, n], row-major and without gaps. Sums are in fp32.
struct MatmulShape {
  std::size_t m = 0, n = 0, k = 0;
  DataType dtype = DataType::kFloat32;  // of all three: fp16, bf16 or fp32
  bool tf32 = false;                    // factors of fp32 may be rounded to TF32
};

class Matmul {
 public:
  virtual ~Matmul() = default;
  // On a GPU it is enqueued in `stream`, which must have ended before this object does; on the host
  // it is done on return.
  virtual Status run(const void* a, const void* b, void* c, Stream stream) = 0;
  virtual std::string library() const = 0;  // "cuBLASLt 13.0.2"
};

// On the calling thread's device, which has to be `device`. Matrices are aligned to 256 bytes.
// `library` is a file, else the loader's search finds it. kUnavailable names the package.
Result<std::unique_ptr<Matmul>> make_cublas_lt_matmul(CudaDriver& cuda, int device,
                                                      const MatmulShape& shape,
                                                      const std::string& library = {});

// One thread per call; from any number of threads. kUnavailable names the package, kUnsupported
// what has no product on the host: all but fp32.
Result<std::unique_ptr<Matmul>> make_blas_matmul(const MatmulShape& shape);

}  // namespace tutti
