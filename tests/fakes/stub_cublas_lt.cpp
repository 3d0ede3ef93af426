// Stands in for libcublasLt.so.13, and where STUB_IS_OLD for one that only bears its name.
//
// It multiplies fp32 on the host, in the library's own terms: columns are contiguous.
#include <cstddef>
#include <cstdint>

// The names are the ABI's.
// NOLINTBEGIN(readability-identifier-naming)
extern "C" std::size_t cublasLtGetVersion() {
#ifdef STUB_IS_OLD
  return 111103;
#else
  return 130002;
#endif
}

#ifndef STUB_IS_OLD
namespace {

constexpr int kSuccess = 0, kNotSupported = 15;
constexpr int kFloat32 = 0;
constexpr std::uint64_t kAlgorithm = 42;  // that the heuristic gives and the product wants

struct Layout {
  int type;
  std::uint64_t rows, columns;
  std::int64_t leading;
  std::size_t at(std::uint64_t row, std::uint64_t column) const {
    return row + column * static_cast<std::uint64_t>(leading);
  }
};

struct Heuristic {
  std::uint64_t algorithm[8];
  std::size_t workspace;
  int state;
  float waves;
  int reserved[4];
};

int something;  // what handles point to that hold nothing

}  // namespace

extern "C" {

const char* cublasLtGetStatusString(int status) {
  return status == kNotSupported ? "the requested functionality is not supported" : "success";
}

int cublasLtCreate(void** handle) {
  *handle = &something;
  return kSuccess;
}
int cublasLtDestroy(void*) { return kSuccess; }

int cublasLtMatmulDescCreate(void** operation, int, int) {
  *operation = &something;
  return kSuccess;
}
int cublasLtMatmulDescDestroy(void*) { return kSuccess; }

int cublasLtMatrixLayoutCreate(void** layout, int type, std::uint64_t rows, std::uint64_t columns,
                               std::int64_t leading) {
  *layout = new Layout{type, rows, columns, leading};
  return kSuccess;
}
int cublasLtMatrixLayoutDestroy(void* layout) {
  delete static_cast<Layout*>(layout);
  return kSuccess;
}

int cublasLtMatmulPreferenceCreate(void** preference) {
  *preference = &something;
  return kSuccess;
}
int cublasLtMatmulPreferenceDestroy(void*) { return kSuccess; }
int cublasLtMatmulPreferenceSetAttribute(void*, int, const void*, std::size_t) { return kSuccess; }

int cublasLtMatmulAlgoGetHeuristic(void*, void*, const Layout* a, const Layout* b, const Layout* c,
                                   const Layout*, void*, int, Heuristic* result, int* found) {
  const bool fits = a->columns == b->rows && a->rows == c->rows && b->columns == c->columns;
  if (!fits || a->type != kFloat32) return kNotSupported;
  *result = {};
  result->algorithm[0] = kAlgorithm;
  *found = 1;
  return kSuccess;
}

int cublasLtMatmul(void*, void*, const float* alpha, const float* a, const Layout* a_layout,
                   const float* b, const Layout* b_layout, const float* beta, const float* c,
                   const Layout* c_layout, float* d, const Layout* d_layout,
                   const std::uint64_t* algorithm, void* workspace, std::size_t workspace_bytes,
                   void*) {
  if (algorithm[0] != kAlgorithm || workspace == nullptr || workspace_bytes == 0) {
    return kNotSupported;
  }
  for (std::uint64_t row = 0; row < d_layout->rows; ++row) {
    for (std::uint64_t column = 0; column < d_layout->columns; ++column) {
      float sum = 0;
      for (std::uint64_t k = 0; k < a_layout->columns; ++k) {
        sum += a[a_layout->at(row, k)] * b[b_layout->at(k, column)];
      }
      const float before = *beta == 0 ? 0 : *beta * c[c_layout->at(row, column)];
      d[d_layout->at(row, column)] = *alpha * sum + before;
    }
  }
  return kSuccess;
}

}  // extern "C"
#endif
// NOLINTEND(readability-identifier-naming)
