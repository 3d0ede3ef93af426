#include "matmul/host.hpp"

#include <algorithm>
#include <vector>

#include "tutti/device/scalar.hpp"

namespace tutti {
namespace {

// Of what is multiplied at once, as fp32: A, B and C take 1 MiB, 2 MiB and 2 MiB.
constexpr std::size_t kPanelM = kHostMatmulRows, kPanelN = 1024, kPanelK = 512;

struct Panels {
  std::vector<float> a, b, c;
  std::size_t m = 0, n = 0, k = 0;  // the parts that are used, without gaps
};

// C = A x B, or C += A x B where `adds`, in the order of k.
void multiply_plainly(Panels& panels, bool adds) {
  const std::size_t n = panels.n;
  for (std::size_t row = 0; row < panels.m; ++row) {
    float* const c = &panels.c[row * n];
    if (!adds) std::fill(c, c + n, 0.0F);
    for (std::size_t k = 0; k < panels.k; ++k) {
      const float a = panels.a[row * panels.k + k];
      const float* const b = &panels.b[k * n];
      for (std::size_t column = 0; column < n; ++column) c[column] += a * b[column];
    }
  }
}

void multiply_panels(const Blas* blas, Panels& panels, bool adds) {
  if (blas == nullptr) return multiply_plainly(panels, adds);
  const auto m = static_cast<int>(panels.m), n = static_cast<int>(panels.n),
             k = static_cast<int>(panels.k);
  blas->multiply({.m = m,
                  .n = n,
                  .k = k,
                  .a = panels.a.data(),
                  .lda = k,
                  .b = panels.b.data(),
                  .ldb = n,
                  .c = panels.c.data(),
                  .ldc = n,
                  .adds = adds});
}

template <class T>
class HostProduct {
 public:
  HostProduct(const CheckedMatmul& call, int which, Panels& panels)
      : problem_(call.problem),
        shape_(call.problem.product[static_cast<std::size_t>(which)]),
        places_(call.product[static_cast<std::size_t>(which)]),
        a_(static_cast<const T*>(call.a)),
        panels_(panels) {}

  void run(const Blas* blas) {
    for (std::size_t column = 0; column < shape_.n; column += kPanelN) {
      panels_.n = std::min(kPanelN, shape_.n - column);
      for (std::size_t row = 0; row < problem_.m; row += kPanelM) {
        panels_.m = std::min(kPanelM, problem_.m - row);
        std::fill_n(panels_.c.begin(), panels_.m * panels_.n, 0.0F);  // what K = 0 leaves
        for (std::size_t k = 0; k < problem_.k; k += kPanelK) {
          panels_.k = std::min(kPanelK, problem_.k - k);
          widen_a(row, k);
          widen_b(k, column);
          multiply_panels(blas, panels_, k > 0);
        }
        store(row, column);
      }
    }
  }

 private:
  void widen_a(std::size_t first_row, std::size_t first_k) {
    for (std::size_t row = 0; row < panels_.m; ++row) {
      const T* const from = a_ + (first_row + row) * problem_.lda + first_k;
      std::transform(from, from + panels_.k, &panels_.a[row * panels_.k], widen<T>);
    }
  }

  void widen_b(std::size_t first_k, std::size_t first_column) {
    const T* const b = static_cast<const T*>(places_.b);
    if (problem_.b_layout == MatrixLayout::kRowMajor) {
      for (std::size_t k = 0; k < panels_.k; ++k) {
        const T* const from = b + (first_k + k) * shape_.ldb + first_column;
        std::transform(from, from + panels_.n, &panels_.b[k * panels_.n], widen<T>);
      }
      return;
    }
    // Some columns at a time, so that whole cache lines are written.
    constexpr std::size_t kColumns = 16;
    for (std::size_t column = 0; column < panels_.n; column += kColumns) {
      const std::size_t end = std::min(column + kColumns, panels_.n);
      for (std::size_t k = 0; k < panels_.k; ++k) {
        for (std::size_t c = column; c < end; ++c) {
          panels_.b[k * panels_.n + c] = widen(b[(first_column + c) * shape_.ldb + first_k + k]);
        }
      }
    }
  }

  void store(std::size_t first_row, std::size_t first_column) {
    const T* const bias = static_cast<const T*>(places_.bias);
    T* const c = static_cast<T*>(places_.c);
    for (std::size_t row = 0; row < panels_.m; ++row) {
      const float* const sums = &panels_.c[row * panels_.n];
      T* const to = c + (first_row + row) * shape_.ldc + first_column;
      for (std::size_t column = 0; column < panels_.n; ++column) {
        const float sum = sums[column];
        to[column] = narrow<T>(bias == nullptr ? sum : sum + widen(bias[first_column + column]));
      }
    }
  }

  const MatmulProblem& problem_;
  const ProductShape& shape_;
  const ProductPlaces& places_;
  const T* const a_;
  Panels& panels_;
};

template <class T>
void run_products(const CheckedMatmul& call, const Blas* blas) {
  std::size_t widest = 0;
  for (int i = 0; i < call.problem.products; ++i) {
    widest = std::max(widest, call.problem.product[static_cast<std::size_t>(i)].n);
  }
  const std::size_t m = std::min(kPanelM, call.problem.m), n = std::min(kPanelN, widest),
                    k = std::min(kPanelK, call.problem.k);
  Panels panels{.a = std::vector<float>(m * k),
                .b = std::vector<float>(k * n),
                .c = std::vector<float>(m * n)};
  for (int i = 0; i < call.problem.products; ++i) HostProduct<T>(call, i, panels).run(blas);
}

}  // namespace

const Blas* host_blas() {
#if defined(__SANITIZE_THREAD__)
  return nullptr;
#else
  const Result<Blas>& found = find_blas();
  return found.is_ok() ? &*found : nullptr;
#endif
}

std::string host_matmul_library() {
  const Blas* const blas = host_blas();
  return blas == nullptr ? "a plain loop" : blas->name();
}

void run_host_matmul(const CheckedMatmul& call, const Blas* blas) {
  if (call.problem.dtype == DataType::kFloat32) return run_products<float>(call, blas);
  if (call.problem.dtype == DataType::kFloat16) return run_products<Half>(call, blas);
  run_products<Bfloat16>(call, blas);
}

}  // namespace tutti
