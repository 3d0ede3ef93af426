// The structs of the C API that begin with their size, and how those of other versions are read and
// written.
#pragma once

#include <cstddef>
#include <cstring>

#include "tutti/tutti.h"

namespace tutti::c {

struct StructInfo {
  const char* name;
  std::size_t first;  // bytes of the first version that had it; never changes
  std::size_t known;  // bytes of this version
};

// No struct is ever as large, so that a size that was not set is not taken for one.
inline constexpr std::size_t kLargestStruct = 4096;

template <class T>
struct Versioned;

#define TUTTI_C_STRUCT(name, bytes)                                                          \
  template <>                                                                                \
  struct Versioned<tutti_##name##_t> {                                                       \
    static constexpr StructInfo kInfo{"tutti_" #name "_t", bytes, sizeof(tutti_##name##_t)}; \
    static_assert(bytes <= sizeof(tutti_##name##_t) &&                                       \
                  sizeof(tutti_##name##_t) <= kLargestStruct);                               \
    static tutti_##name##_t defaults() { return tutti_##name##_init(); }                     \
  };

TUTTI_C_STRUCT(all_gather, 56)
TUTTI_C_STRUCT(all_gather_matmul, 176)
TUTTI_C_STRUCT(all_gather_v, 80)
TUTTI_C_STRUCT(all_reduce, 88)
TUTTI_C_STRUCT(all_reduce_residual_rms_norm, 96)
TUTTI_C_STRUCT(all_to_all, 56)
TUTTI_C_STRUCT(all_to_all_v, 96)
TUTTI_C_STRUCT(barrier, 24)
TUTTI_C_STRUCT(block_info, 24)
TUTTI_C_STRUCT(broadcast, 56)
TUTTI_C_STRUCT(call_options, 48)
TUTTI_C_STRUCT(communicator_info, 24)
TUTTI_C_STRUCT(communicator_options, 32)
TUTTI_C_STRUCT(counters, 32)
TUTTI_C_STRUCT(failure, 64)
TUTTI_C_STRUCT(gather, 56)
TUTTI_C_STRUCT(get, 56)
TUTTI_C_STRUCT(local_memory_info, 24)
TUTTI_C_STRUCT(matmul, 136)
TUTTI_C_STRUCT(matmul_plan, 32)
TUTTI_C_STRUCT(memory_info, 32)
TUTTI_C_STRUCT(pipeline_options, 40)
TUTTI_C_STRUCT(plan, 56)
TUTTI_C_STRUCT(pool_use, 32)
TUTTI_C_STRUCT(put, 56)
TUTTI_C_STRUCT(query, 88)
TUTTI_C_STRUCT(recv, 48)
TUTTI_C_STRUCT(reduce, 88)
TUTTI_C_STRUCT(reduce_scatter, 96)
TUTTI_C_STRUCT(reduce_scatter_v, 112)
TUTTI_C_STRUCT(scatter, 56)
TUTTI_C_STRUCT(send, 48)
TUTTI_C_STRUCT(sharded_options, 32)
TUTTI_C_STRUCT(signal, 24)
TUTTI_C_STRUCT(wait_signal, 40)
#undef TUTTI_C_STRUCT

}  // namespace tutti::c
