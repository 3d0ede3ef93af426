#include "matmul/problem.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <string>

#include "base/guard.hpp"
#include "base/names.hpp"
#include "base/try.hpp"
#include "base/units.hpp"

namespace tutti {
namespace {

constexpr std::size_t kMostAlignment = 256;

Status invalid_matmul(std::string_view text) {
  return {StatusCode::kInvalidArgument, fmt::format("matmul: {}", text)};
}

// A matrix as it lies in memory: `lines` of `length` elements each, `distance` apart.
struct Lines {
  std::string_view name, distance_name;
  const void* address = nullptr;
  std::size_t lines = 0, length = 0, distance = 0;
  bool used = false;  // whether an element of it is read or written
};

// `path`: of the struct that has its members.
Status check_lines(const Lines& matrix, std::size_t element, const std::string& path) {
  if (matrix.distance < matrix.length) {
    return invalid_matmul(fmt::format("{}{} {} is less than the {} elements that follow each other",
                                      path, matrix.distance_name, matrix.distance, matrix.length));
  }
  if (matrix.lines > 0 && matrix.distance > kMostBytes / element / matrix.lines) {
    return invalid_matmul(fmt::format("the size of {}{} overflows", path, matrix.name));
  }
  if (matrix.used && matrix.address == nullptr) {
    return invalid_matmul(fmt::format("null {}{}", path, matrix.name));
  }
  if (reinterpret_cast<std::uintptr_t>(matrix.address) % element != 0) {
    return invalid_matmul(
        fmt::format("{}{} is not aligned to its elements' {} bytes", path, matrix.name, element));
  }
  return Status::ok();
}

std::size_t distance_or(std::size_t given, std::size_t without_gaps) {
  return given != 0 ? given : std::max<std::size_t>(without_gaps, 1);
}

class Checker {
 public:
  explicit Checker(const Matmul& call) : call_(call), element_(size_of(call.dtype)) {}

  Result<CheckedMatmul> check() {
    MatmulProblem& problem = checked_.problem;
    problem.m = call_.m;
    problem.k = call_.k;
    problem.lda = distance_or(call_.lda, call_.k);
    problem.dtype = call_.dtype;
    problem.b_layout = call_.b_layout;
    TUTTI_TRY(add_product({call_.b, call_.c, call_.bias, call_.n, call_.ldb, call_.ldc}, ""));
    for (std::size_t i = 0; i < call_.more.size(); ++i) {
      TUTTI_TRY(add_product(call_.more[i], fmt::format("more[{}].", i)));
    }
    const Lines a{
        "a", "lda", call_.a, call_.m, call_.k, problem.lda, problem.products > 0 && call_.k > 0};
    TUTTI_TRY(check_lines(a, element_, ""));
    checked_.a = call_.a;
    if (a.used) note(a);
    problem.alignment = alignment_of(bits_);
    problem.bias_alignment = alignment_of(bias_bits_);
    return checked_;
  }

 private:
  // `path`: how the caller writes what has the product's members, "" or "more[0].".
  Status add_product(const MatmulProduct& product, const std::string& path) {
    const bool rows = call_.b_layout == MatrixLayout::kRowMajor;
    const bool some = call_.m > 0 && product.n > 0;
    const std::size_t b_length = rows ? product.n : call_.k;
    const Lines b{"b",
                  "ldb",
                  product.b,
                  rows ? call_.k : product.n,
                  b_length,
                  distance_or(product.ldb, b_length),
                  some && call_.k > 0};
    const Lines c{"c", "ldc", product.c, call_.m, product.n, distance_or(product.ldc, product.n),
                  some};
    const Lines bias{"bias", "", product.bias, 1, product.n, std::max<std::size_t>(product.n, 1),
                     false};
    for (const Lines& matrix : {b, c, bias}) TUTTI_TRY(check_lines(matrix, element_, path));
    if (!some) return Status::ok();
    if (b.used) note(b);
    note(c);
    bias_bits_ |= reinterpret_cast<std::uintptr_t>(product.bias);
    const auto at = static_cast<std::size_t>(checked_.problem.products++);
    checked_.problem.product[at] = {
        .n = product.n, .ldb = b.distance, .ldc = c.distance, .bias = product.bias != nullptr};
    checked_.product[at] = {product.b, product.c, product.bias};
    return Status::ok();
  }

  void note(const Lines& matrix) {
    bits_ |= reinterpret_cast<std::uintptr_t>(matrix.address) | matrix.distance * element_;
  }

  static std::size_t alignment_of(std::uintptr_t bits) {
    return std::min<std::size_t>(bits & (~bits + 1), kMostAlignment);
  }

  const Matmul& call_;
  const std::size_t element_;
  CheckedMatmul checked_;
  // An address or distance is a multiple of 2^i if its lowest i bits are 0.
  std::uintptr_t bits_ = kMostAlignment, bias_bits_ = kMostAlignment;
};

constexpr Name<MatrixLayout> kLayouts[] = {{MatrixLayout::kRowMajor, "row"},
                                           {MatrixLayout::kColumnMajor, "column"}};

}  // namespace

Status check_kinds(const Matmul& call) {
  if (static_cast<std::size_t>(call.dtype) >= kAllDataTypes.size()) {
    return invalid_matmul("unknown dtype");
  }
  if (call.b_layout > MatrixLayout::kColumnMajor) return invalid_matmul("unknown layout of B");
  if (call.backend > Backend::kCuda) return invalid_matmul("unknown backend");
  if (call.more.size() >= kMaxMatmulProducts) {
    return invalid_matmul(
        fmt::format("{} products: at most {}", call.more.size() + 1, kMaxMatmulProducts));
  }
  const bool known = call.dtype == DataType::kBfloat16 || call.dtype == DataType::kFloat16 ||
                     call.dtype == DataType::kFloat32;
  if (known) return Status::ok();
  return {StatusCode::kUnsupported,
          fmt::format("matmul: of bf16, fp16 or fp32, not {}", to_string(call.dtype))};
}

Result<CheckedMatmul> check(const Matmul& call) {
  TUTTI_TRY(check_kinds(call));
  return Checker(call).check();
}

std::string_view to_string(MatrixLayout layout) { return name_of<MatrixLayout>(kLayouts, layout); }

Result<MatrixLayout> parse_matrix_layout(std::string_view text) {
  return guarded(
      [&] { return parse_name<MatrixLayout>(kLayouts, {}, "layout of a matrix", text); });
}

}  // namespace tutti
