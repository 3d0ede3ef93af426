// OpenBLAS, or whatever BLAS the system has, through the C interface they share.
#include "drivers/blas.hpp"

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

// "OpenBLAS 0.3.21" of "OpenBLAS 0.3.21 NO_LAPACKE DYNAMIC_ARCH ...".
std::string two_words(std::string_view text) {
  const std::size_t first = text.find(' ');
  return std::string(text.substr(0, text.find(' ', std::min(first, text.size() - 1) + 1)));
}

Result<Blas> look_for_blas() {
  std::string tried;
  for (const char* name : kNames) {
    Result<Blas> found = Blas::open(name);
    if (found.is_ok()) return found;
    tried += (tried.empty() ? "" : "; ") + found.status().message();
  }
  return Status(StatusCode::kUnavailable, fmt::format("no BLAS ({}): install {}", tried, kPackage));
}

class BlasMatmul final : public LibraryMatmul {
 public:
  BlasMatmul(Blas blas, const MatmulShape& shape)
      : blas_(std::move(blas)),
        m_(static_cast<int>(shape.m)),
        n_(static_cast<int>(shape.n)),
        k_(static_cast<int>(shape.k)) {}

  Status run(const MatmulOperands& operands, Stream) override {
    blas_.multiply({.m = m_,
                    .n = n_,
                    .k = k_,
                    .a = static_cast<const float*>(operands.a),
                    .lda = k_,
                    .b = static_cast<const float*>(operands.b),
                    .ldb = n_,
                    .c = static_cast<float*>(operands.c),
                    .ldc = n_});
    return Status::ok();
  }

  std::string library() const override { return blas_.name(); }

 private:
  Blas blas_;
  int m_, n_, k_;
};

bool is_plain(const MatmulShape& shape) {
  return shape.b_layout == MatrixLayout::kRowMajor && !shape.bias &&
         shape.lda + shape.ldb + shape.ldc == 0;
}

}  // namespace

Result<Blas> Blas::open(const std::string& name) {
  TUTTI_ASSIGN(const DynamicLibrary library, DynamicLibrary::open(name));
  Blas blas;
  blas.name_ = library.path();
  if (!library.find("cblas_sgemm", blas.sgemm_)) {
    return Status(StatusCode::kUnavailable, fmt::format("{} has no cblas_sgemm", library.path()));
  }
  const char* (*get_config)() = nullptr;
  if (library.find("openblas_get_config", get_config)) {
    if (const char* text = get_config(); text != nullptr && *text != '\0') {
      blas.name_ = two_words(text);
    }
  }
  // A rank is one thread; left to itself, OpenBLAS would take all cores for each.
  void (*set_num_threads)(int) = nullptr;
  if (library.find("openblas_set_num_threads", set_num_threads)) set_num_threads(1);
  return blas;
}

void Blas::multiply(const Sgemm& call) const {
  sgemm_(kRowMajor, kNoTranspose, kNoTranspose, call.m, call.n, call.k, 1.0F, call.a, call.lda,
         call.b, call.ldb, call.adds ? 1.0F : 0.0F, call.c, call.ldc);
}

// Once in a process: ranks may be threads, which the loader's own tables are not made for.
const Result<Blas>& find_blas() {
  static const Result<Blas> found = look_for_blas();
  return found;
}

Result<std::unique_ptr<LibraryMatmul>> make_blas_matmul(const MatmulShape& shape) {
  if (shape.dtype != DataType::kFloat32) {
    return Status(StatusCode::kUnsupported,
                  fmt::format("a BLAS multiplies fp32, not {}", to_string(shape.dtype)));
  }
  if (!is_plain(shape)) {
    return Status(StatusCode::kUnsupported, "a BLAS multiplies row-major matrices without gaps");
  }
  constexpr std::size_t kMost = std::numeric_limits<int>::max();
  if (std::max({shape.m, shape.n, shape.k}) > kMost) {
    return Status(StatusCode::kUnsupported,
                  fmt::format("a BLAS takes at most {} rows and columns", kMost));
  }
  const Result<Blas>& blas = find_blas();
  TUTTI_TRY(blas.status());
  return std::unique_ptr<LibraryMatmul>(std::make_unique<BlasMatmul>(*blas, shape));
}

}  // namespace tutti
