// What element types and operations rows that reduce take, of several collectives.
#pragma once

#include "tutti/types.hpp"

namespace tutti {

inline bool takes_everything(DataType, OpKind) { return true; }

// The multipliers of the peers do not travel.
inline bool takes_no_multipliers(DataType, OpKind op) { return op != OpKind::kPreMulSum; }

inline bool is_fp8(DataType dtype) {
  return dtype == DataType::kFloat8E4M3 || dtype == DataType::kFloat8E5M2;
}

// Of those whose kernels push beside what reduces: 16 elements a vector leave no registers for it.
inline bool takes_no_bytes(DataType dtype, OpKind) { return size_of(dtype) > 1; }

// Of those that round on the way. Multipliers would be applied before the first rounding of many,
// elsewhere before the only one; and 8-bit floats have no bits to spare for many.
inline bool rings_take(DataType dtype, OpKind op) {
  const bool rounds = op != OpKind::kMin && op != OpKind::kMax;
  return op != OpKind::kPreMulSum && !(rounds && is_fp8(dtype));
}

// NCCL scales in the element's own type, which 8-bit floats cannot do.
inline bool nccl_takes(DataType dtype, OpKind op) {
  return !is_fp8(dtype) || (op != OpKind::kAvg && op != OpKind::kPreMulSum);
}

// What its symmetric kernels reduce: for anything else it falls back to others.
inline bool nccl_windows_take(DataType dtype, OpKind op) {
  return op == OpKind::kSum && is_floating(dtype) && dtype != DataType::kFloat64;
}

}  // namespace tutti
