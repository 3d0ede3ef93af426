// Stands in for libcublasLt.so.13, and where STUB_IS_OLD for one that only bears its name.
//
// It multiplies fp32 and bf16 on the host, in the library's own terms: columns are contiguous. It
// proposes as many algorithms as it is asked for; the first one splits K, and needs addresses that
// are multiples of 16 bytes and a workspace; the third one never works.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <iterator>

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

constexpr int kSuccess = 0, kInvalidValue = 7, kNotSupported = 15;
constexpr int kFloat32 = 0, kBfloat16 = 14;
constexpr int kTranspose = 1, kBias = 4;                         // values of attributes
constexpr int kTransposeA = 3, kEpilogue = 7, kBiasPointer = 8;  // of an operation
constexpr int kMaxWorkspace = 1, kSchemes = 3;                   // of a preference
constexpr int kAlignmentA = 5, kAlignmentD = 8;
constexpr std::uint64_t kAlgorithm = 42, kBroken = kAlgorithm + 2;         // the first, the third
constexpr std::size_t kAlignment = 16, kWorkspace = std::size_t{1} << 20;  // of the first one

struct Layout {
  int type;
  std::uint64_t rows, columns;
  std::int64_t leading;
  std::size_t at(std::uint64_t row, std::uint64_t column) const {
    return row + column * static_cast<std::uint64_t>(leading);
  }
  float get(const void* matrix, std::size_t index) const {
    if (type == kFloat32) return static_cast<const float*>(matrix)[index];
    const std::uint32_t bits =
        static_cast<std::uint32_t>(static_cast<const std::uint16_t*>(matrix)[index]) << 16;
    float value = 0;
    std::memcpy(&value, &bits, sizeof value);
    return value;
  }
  void set(void* matrix, std::size_t index, float value) const {
    if (type == kFloat32) {
      static_cast<float*>(matrix)[index] = value;
      return;
    }
    std::uint32_t bits = 0;
    std::memcpy(&bits, &value, sizeof bits);
    bits += 0x7fff + ((bits >> 16) & 1);
    static_cast<std::uint16_t*>(matrix)[index] = static_cast<std::uint16_t>(bits >> 16);
  }
};

struct Operation {
  int transpose_a = 0, epilogue = 1;
  const void* bias = nullptr;
};

struct Preference {
  std::size_t workspace = 0;
  std::uint32_t schemes = 7;
  std::uint32_t alignment[4] = {256, 256, 256, 256};  // of A, B, C and D
};

struct Heuristic {
  std::uint64_t algorithm[8];
  std::size_t workspace;
  int state;
  float waves;
  int reserved[4];
};

bool is_aligned(const void* address) {
  return reinterpret_cast<std::uintptr_t>(address) % kAlignment == 0;
}

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
  *operation = new Operation;
  return kSuccess;
}
int cublasLtMatmulDescDestroy(void* operation) {
  delete static_cast<Operation*>(operation);
  return kSuccess;
}
int cublasLtMatmulDescSetAttribute(Operation* operation, int attribute, const void* value,
                                   std::size_t bytes) {
  const auto take = [&](auto& into) {
    if (bytes != sizeof into) return kInvalidValue;
    std::memcpy(&into, value, sizeof into);
    return kSuccess;
  };
  if (attribute == kTransposeA) return take(operation->transpose_a);
  if (attribute == kEpilogue) return take(operation->epilogue);
  if (attribute == kBiasPointer) return take(operation->bias);
  return kInvalidValue;
}

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
  *preference = new Preference;
  return kSuccess;
}
int cublasLtMatmulPreferenceDestroy(void* preference) {
  delete static_cast<Preference*>(preference);
  return kSuccess;
}
int cublasLtMatmulPreferenceSetAttribute(Preference* preference, int attribute, const void* value,
                                         std::size_t bytes) {
  if (attribute == kMaxWorkspace && bytes == sizeof preference->workspace) {
    std::memcpy(&preference->workspace, value, bytes);
    return kSuccess;
  }
  if (attribute == kSchemes && bytes == sizeof preference->schemes) {
    std::memcpy(&preference->schemes, value, bytes);
    return kSuccess;
  }
  if (attribute < kAlignmentA || attribute > kAlignmentD) return kInvalidValue;
  if (bytes != sizeof preference->alignment[0]) return kInvalidValue;
  std::memcpy(&preference->alignment[attribute - kAlignmentA], value, bytes);
  return kSuccess;
}

int cublasLtMatmulAlgoGetHeuristic(void*, const Operation* operation, const Layout* a,
                                   const Layout* b, const Layout* c, const Layout*,
                                   const Preference* preference, int asked, Heuristic* results,
                                   int* found) {
  const bool transposed = operation->transpose_a == kTranspose;
  const std::uint64_t rows = transposed ? a->columns : a->rows;
  const std::uint64_t depth = transposed ? a->rows : a->columns;
  const bool fits = depth == b->rows && rows == c->rows && b->columns == c->columns;
  if (!fits || (a->type != kFloat32 && a->type != kBfloat16)) return kNotSupported;
  const bool aligned =
      std::all_of(std::begin(preference->alignment), std::end(preference->alignment),
                  [](std::uint32_t each) { return each >= kAlignment; });
  std::uint64_t next = kAlgorithm;
  constexpr std::uint32_t kInFp32 = 2, kInOtherWays = 5;
  const bool splits = preference->schemes == kInFp32;
  if ((preference->schemes & kInOtherWays) != 0) return kNotSupported;
  if (!aligned || !splits || preference->workspace < kWorkspace) ++next;
  for (*found = 0; *found < asked; ++*found, ++next) {
    Heuristic& result = results[*found];
    result = {};
    result.algorithm[0] = next;
    result.workspace = next == kAlgorithm ? kWorkspace : 0;
    result.state = next == kBroken ? kNotSupported : kSuccess;
  }
  return kSuccess;
}

int cublasLtMatmul(void*, const Operation* operation, const float* alpha, const void* a,
                   const Layout* a_layout, const void* b, const Layout* b_layout, const float* beta,
                   const void*, const Layout*, void* d, const Layout* d_layout,
                   const std::uint64_t* algorithm, void* workspace, std::size_t workspace_bytes,
                   void*) {
  const bool first = algorithm[0] == kAlgorithm;
  const bool biased = operation->epilogue == kBias;
  if (algorithm[0] < kAlgorithm || algorithm[0] == kBroken || *beta != 0) return kNotSupported;
  if (first && (workspace == nullptr || workspace_bytes < kWorkspace)) return kInvalidValue;
  if (first && !(is_aligned(a) && is_aligned(b) && is_aligned(d))) return kInvalidValue;
  if (first && biased && !is_aligned(operation->bias)) return kInvalidValue;
  const bool transposed = operation->transpose_a == kTranspose;
  for (std::uint64_t row = 0; row < d_layout->rows; ++row) {
    for (std::uint64_t column = 0; column < d_layout->columns; ++column) {
      float sum = 0;
      for (std::uint64_t k = 0; k < b_layout->rows; ++k) {
        const std::size_t at = transposed ? a_layout->at(k, row) : a_layout->at(row, k);
        sum += a_layout->get(a, at) * b_layout->get(b, b_layout->at(k, column));
      }
      const float bias = biased ? d_layout->get(operation->bias, row) : 0.0F;
      d_layout->set(d, d_layout->at(row, column), *alpha * sum + bias);
    }
  }
  return kSuccess;
}

}  // extern "C"
#endif
// NOLINTEND(readability-identifier-naming)
