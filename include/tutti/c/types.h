/// \file
/// Element types, reductions, backends and streams of the C API.
#pragma once

#include <stdint.h>

#include "tutti/c/status.h"

#ifdef __cplusplus
extern "C" {
#endif

struct CUstream_st;
/// A CUDA stream: cudaStream_t and CUstream are this type. The host backend ignores it.
typedef struct CUstream_st* tutti_stream_t;

/// The type of elements. The numbers are those of tutti::DataType.
typedef int tutti_data_type_t;
enum {
  TUTTI_FLOAT64 = 0,
  TUTTI_FLOAT32 = 1,
  TUTTI_FLOAT16 = 2,
  TUTTI_BFLOAT16 = 3,
  TUTTI_FLOAT8_E4M3 = 4,  ///< OCP: no infinity; the largest finite value is 448
  TUTTI_FLOAT8_E5M2 = 5,
  TUTTI_INT8 = 6,
  TUTTI_UINT8 = 7,
  TUTTI_INT32 = 8,
  TUTTI_UINT32 = 9,
  TUTTI_INT64 = 10,
  TUTTI_UINT64 = 11
};

/// Bytes of one element; 0 for another number.
TUTTI_API size_t tutti_data_type_size(tutti_data_type_t dtype);
/// 1 for floating point, else 0.
TUTTI_API int tutti_data_type_is_floating(tutti_data_type_t dtype);
/// "bf16", "fp8_e4m3", "int32", ...; "?" for another number.
TUTTI_API const char* tutti_data_type_name(tutti_data_type_t dtype);
/// The inverse; also knows "bfloat16", "half", "float", "double".
TUTTI_API tutti_status_t tutti_parse_data_type(const char* name, tutti_data_type_t* dtype);

/// How the elements of all ranks are reduced to one. See tutti::OpKind, which has the same numbers.
typedef int tutti_op_kind_t;
enum {
  TUTTI_SUM = 0,
  TUTTI_PROD = 1,
  TUTTI_MIN = 2,  ///< -0 is less than +0
  TUTTI_MAX = 3,
  TUTTI_AVG = 4,         ///< the sum divided by the number of ranks; integers truncate
  TUTTI_PRE_MUL_SUM = 5  ///< the sum of each rank's input times that rank's scalar
};

/// "sum", "prod", "min", "max", "avg", "premulsum"; "?" for another number.
TUTTI_API const char* tutti_op_name(tutti_op_kind_t kind);
/// The inverse.
TUTTI_API tutti_status_t tutti_parse_op(const char* name, tutti_op_kind_t* kind);

/// One number.
typedef struct tutti_scalar_t {
  tutti_data_type_t dtype;  ///< TUTTI_FLOAT64: f64; TUTTI_INT64: i64; TUTTI_UINT64: u64
  union {
    double f64;
    int64_t i64;
    uint64_t u64;
  } value;
} tutti_scalar_t;

/// A reduction, with its parameter. All zero is a sum.
typedef struct tutti_reduce_op_t {
  tutti_op_kind_t kind;
  /// TUTTI_PRE_MUL_SUM: this rank's multiplier, converted to the accumulator's type: exactly if
  /// that has the number. Otherwise floating types round; integers truncate, and clamp to their
  /// range. Not used if there is a `device_scalar`.
  tutti_scalar_t scalar;
  /// TUTTI_PRE_MUL_SUM: if not null, where this rank's multiplier is: one element of the call's
  /// dtype, in memory of the rank's device (host backend: any memory), outside the output. It is
  /// read when the stream reaches the operation, and must not change before the operation has
  /// ended. Other ranks may give a `scalar`. With another kind, misaligned or overlapping the
  /// output: TUTTI_INVALID_ARGUMENT.
  const void* device_scalar;
} tutti_reduce_op_t;

/// A reduction without a parameter.
static inline tutti_reduce_op_t tutti_op(tutti_op_kind_t kind) {
  tutti_reduce_op_t op;
  memset(&op, 0, sizeof op);
  op.kind = kind;
  return op;
}
/// TUTTI_PRE_MUL_SUM by a floating point number.
static inline tutti_reduce_op_t tutti_pre_mul_sum(double scalar) {
  tutti_reduce_op_t op = tutti_op(TUTTI_PRE_MUL_SUM);
  op.scalar.dtype = TUTTI_FLOAT64;
  op.scalar.value.f64 = scalar;
  return op;
}
/// TUTTI_PRE_MUL_SUM by a number in memory of the rank's device.
static inline tutti_reduce_op_t tutti_pre_mul_sum_at(const void* device_scalar) {
  tutti_reduce_op_t op = tutti_op(TUTTI_PRE_MUL_SUM);
  op.device_scalar = device_scalar;
  return op;
}

/// Where a communicator runs. The numbers are those of tutti::Backend.
typedef int tutti_backend_t;
enum { TUTTI_BACKEND_AUTO = 0, TUTTI_BACKEND_HOST = 1, TUTTI_BACKEND_CUDA = 2 };
/// "auto", "host", "cuda"; "?" for another number.
TUTTI_API const char* tutti_backend_name(tutti_backend_t backend);
/// The inverse.
TUTTI_API tutti_status_t tutti_parse_backend(const char* name, tutti_backend_t* backend);

#ifdef __cplusplus
}
#endif
