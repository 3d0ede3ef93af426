// OpenBLAS, or whatever BLAS the system has, through the C interface they share.
#include <fmt/format.h>

#include <algorithm>
#include <limits>

#include "base/try.hpp"
#include "drivers/dynamic_library.hpp"
#include "drivers/matmul.hpp"

namespace tutti {
namespace {

constexpr const char* kNames[] = {"libopenblas.so.0", "libblas.so.3", "libcblas.so.3"};
constexpr const char* kPackage = "libopenblas0-pthread";

constexpr int kRowMajor = 101, kNoTranspose = 111;  // CBLAS_LAYOUT, CBLAS_TRANSPOSE

struct BlasLibrary {
  std::string name;  // "OpenBLAS 0.3.21"
  void (*sgemm)(int layout, int transpose_a, int transpose_b, int m, int n, int k, float alpha,
                const float* a, int lda, const float* b, int ldb, float beta, float* c,
                int ldc) = nullptr;
};

// "OpenBLAS 0.3.21" of "OpenBLAS 0.3.21 NO_LAPACKE DYNAMIC_ARCH ...".
std::string two_words(std::string_view text) {
  const std::size_t first = text.find(' ');
  return std::string(text.substr(0, text.find(' ', std::min(first, text.size() - 1) + 1)));
}

Result<BlasLibrary> load(const std::string& name) {
  TUTTI_ASSIGN(const DynamicLibrary library, DynamicLibrary::open(name));
  BlasLibrary blas{.name = library.path()};
  if (!library.find("cblas_sgemm", blas.sgemm)) {
    return Status(StatusCode::kUnavailable, fmt::format("{} has no cblas_sgemm", library.path()));
  }
  const char* (*get_config)() = nullptr;
  if (library.find("openblas_get_config", get_config)) {
    if (const char* text = get_config(); text != nullptr && *text != '\0') {
      blas.name = two_words(text);
    }
  }
  // A rank is one thread; left to itself, OpenBLAS would take all cores for each.
  void (*set_num_threads)(int) = nullptr;
  if (library.find("openblas_set_num_threads", set_num_threads)) set_num_threads(1);
  return blas;
}

Result<BlasLibrary> look_for_blas() {
  std::string tried;
  for (const char* name : kNames) {
    Result<BlasLibrary> found = load(name);
    if (found.is_ok()) return found;
    tried += (tried.empty() ? "" : "; ") + found.status().message();
  }
  return Status(StatusCode::kUnavailable, fmt::format("no BLAS ({}): install {}", tried, kPackage));
}

// Once in a process: ranks may be threads, which the loader's own tables are not made for.
const Result<BlasLibrary>& find_blas() {
  static const Result<BlasLibrary> found = look_for_blas();
  return found;
}

class BlasMatmul final : public Matmul {
 public:
  BlasMatmul(BlasLibrary blas, const MatmulShape& shape)
      : blas_(std::move(blas)),
        m_(static_cast<int>(shape.m)),
        n_(static_cast<int>(shape.n)),
        k_(static_cast<int>(shape.k)) {}

  Status run(const void* a, const void* b, void* c, Stream) override {
    blas_.sgemm(kRowMajor, kNoTranspose, kNoTranspose, m_, n_, k_, 1.0F,
                static_cast<const float*>(a), k_, static_cast<const float*>(b), n_, 0.0F,
                static_cast<float*>(c), n_);
    return Status::ok();
  }

  std::string library() const override { return blas_.name; }

 private:
  BlasLibrary blas_;
  int m_, n_, k_;
};

}  // namespace

Result<std::unique_ptr<Matmul>> make_blas_matmul(const MatmulShape& shape) {
  if (shape.dtype != DataType::kFloat32) {
    return Status(StatusCode::kUnsupported,
                  fmt::format("a BLAS multiplies fp32, not {}", to_string(shape.dtype)));
  }
  constexpr std::size_t kMost = std::numeric_limits<int>::max();
  if (std::max({shape.m, shape.n, shape.k}) > kMost) {
    return Status(StatusCode::kUnsupported,
                  fmt::format("a BLAS takes at most {} rows and columns", kMost));
  }
  const Result<BlasLibrary>& blas = find_blas();
  TUTTI_TRY(blas.status());
  return std::unique_ptr<Matmul>(std::make_unique<BlasMatmul>(*blas, shape));
}

}  // namespace tutti
