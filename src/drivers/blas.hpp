// A BLAS of the system, opened at run time.
#pragma once

#include <string>

#include "tutti/status.hpp"

namespace tutti {

// C = A x B, or C += A x B: fp32, row-major.
struct Sgemm {
  int m = 0, n = 0, k = 0;
  const float* a = nullptr;
  int lda = 0;
  const float* b = nullptr;
  int ldb = 0;
  float* c = nullptr;
  int ldc = 0;
  bool adds = false;
};

// From any number of threads; each call uses its own thread alone.
class Blas {
 public:
  static Result<Blas> open(const std::string& library);
  const std::string& name() const { return name_; }  // "OpenBLAS 0.3.21"
  void multiply(const Sgemm& call) const;

 private:
  std::string name_;
  void (*sgemm_)(int layout, int transpose_a, int transpose_b, int m, int n, int k, float alpha,
                 const float* a, int lda, const float* b, int ldb, float beta, float* c,
                 int ldc) = nullptr;
};

// Looked for once in a process. kUnavailable names the package.
const Result<Blas>& find_blas();

}  // namespace tutti
