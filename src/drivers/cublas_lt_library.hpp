// cuBLASLt's entry points, with prototypes of our own: no header of its own is needed to build, and
// any version since 12.0 can be loaded. Where the toolkit has the header, a test compares the two.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "drivers/cuda.hpp"
#include "tutti/status.hpp"

namespace tutti {

inline constexpr int kCublasSuccess = 0;              // CUBLAS_STATUS_SUCCESS
inline constexpr int kCublasCompute32F = 68;          // CUBLAS_COMPUTE_32F
inline constexpr int kCublasCompute32FFastTf32 = 77;  // CUBLAS_COMPUTE_32F_FAST_TF32
inline constexpr int kCublasNotSupported = 15;        // CUBLAS_STATUS_NOT_SUPPORTED
inline constexpr int kCublasTranspose = 1;            // CUBLAS_OP_T

// Attributes of an operation: CUBLASLT_MATMUL_DESC_...
inline constexpr int kCublasLtTransposeA = 3, kCublasLtEpilogue = 7, kCublasLtBiasPointer = 8;
inline constexpr int kCublasLtEpilogueBias = 4;  // CUBLASLT_EPILOGUE_BIAS

// CUBLASLT_REDUCTION_SCHEME_NONE: K is not split. ..._COMPUTE_TYPE: it is, with sums in fp32.
inline constexpr int kCublasLtNoReduction = 0, kCublasLtReductionInFp32 = 2;

// Attributes of a preference: CUBLASLT_MATMUL_PREF_...
inline constexpr int kCublasLtMaxWorkspace = 1;      // ..._MAX_WORKSPACE_BYTES
inline constexpr int kCublasLtReductionSchemes = 3;  // ..._REDUCTION_SCHEME_MASK
inline constexpr int kCublasLtAlignmentA = 5, kCublasLtAlignmentB = 6, kCublasLtAlignmentC = 7,
                     kCublasLtAlignmentD = 8;  // ..._MIN_ALIGNMENT_A_BYTES

using CublasLtHandle = void*;      // cublasLtHandle_t
using CublasLtOperation = void*;   // cublasLtMatmulDesc_t
using CublasLtLayout = void*;      // cublasLtMatrixLayout_t
using CublasLtPreference = void*;  // cublasLtMatmulPreference_t

struct CublasLtAlgorithm {  // cublasLtMatmulAlgo_t
  std::uint64_t data[8];
};

struct CublasLtHeuristic {  // cublasLtMatmulHeuristicResult_t
  CublasLtAlgorithm algorithm;
  std::size_t workspace_bytes;
  int state;
  float waves;
  int reserved[4];
};

struct CublasLtLibrary {
  std::string version;  // "13.0.2"

  const char* (*get_status_string)(int) = nullptr;
  int (*create)(CublasLtHandle*) = nullptr;
  int (*destroy)(CublasLtHandle) = nullptr;
  int (*operation_create)(CublasLtOperation*, int compute_type, int scale_type) = nullptr;
  int (*operation_destroy)(CublasLtOperation) = nullptr;
  int (*operation_set)(CublasLtOperation, int attribute, const void*, std::size_t) = nullptr;
  int (*layout_create)(CublasLtLayout*, int type, std::uint64_t rows, std::uint64_t columns,
                       std::int64_t leading) = nullptr;
  int (*layout_destroy)(CublasLtLayout) = nullptr;
  int (*preference_create)(CublasLtPreference*) = nullptr;
  int (*preference_destroy)(CublasLtPreference) = nullptr;
  int (*preference_set)(CublasLtPreference, int attribute, const void*, std::size_t) = nullptr;
  int (*heuristic)(CublasLtHandle, CublasLtOperation, CublasLtLayout a, CublasLtLayout b,
                   CublasLtLayout c, CublasLtLayout d, CublasLtPreference, int asked,
                   CublasLtHeuristic*, int* got) = nullptr;
  int (*matmul)(CublasLtHandle, CublasLtOperation, const void* alpha, const void* a, CublasLtLayout,
                const void* b, CublasLtLayout, const void* beta, const void* c, CublasLtLayout,
                void* d, CublasLtLayout, const CublasLtAlgorithm*, void* workspace, std::size_t,
                Stream) = nullptr;
};

// kUnavailable where it is not found, too old, or lacks an entry point. `library` as for
// make_cublas_lt_matmul().
Result<CublasLtLibrary> load_cublas_lt(const std::string& library);

int cuda_data_type(DataType dtype);  // cudaDataType; -1 for what cuBLASLt does not multiply here

}  // namespace tutti
