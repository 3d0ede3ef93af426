// NCCL's entry points, with prototypes of our own: no header of NCCL's is needed to build, and any
// version since 2.11 can be loaded.
#pragma once

#include <cstddef>
#include <limits>
#include <string>

#include "drivers/dynamic_library.hpp"
#include "drivers/nccl.hpp"

namespace tutti {

// The values of ncclResult_t that mean something here.
inline constexpr int kNcclSuccess = 0;
inline constexpr int kNcclRemoteError = 6;
inline constexpr int kNcclInProgress = 7;

inline constexpr int kNcclRevokeDefault = 0;
inline constexpr int kNcclScalarDevice = 0;  // ncclScalarResidence_t
inline constexpr int kNcclScalarHostImmediate = 1;
inline constexpr int kNcclFirstFp8Version = 22400;     // 2.24.0
inline constexpr int kNcclFirstWindowVersion = 22700;  // 2.27.0
inline constexpr int kNcclFirstCopyVersion = 22800;    // 2.28.0
// NCCL_WIN_COLL_SYMMETRIC: for kernels that read and write peers' buffers. Whether they use
// multicast as well is for NCCL_NVLS_ENABLE to say; nothing here asks for it.
inline constexpr int kNcclWindowSymmetric = 1;
inline constexpr int kNcclCtaPolicyZero = 2;  // NCCL_CTA_POLICY_ZERO: copy engines where they can

// ncclConfig_t as it is in 2.28; newer versions take it, and know it by its size and version.
struct NcclConfig {
  static constexpr int kUndefined = std::numeric_limits<int>::min();

  std::size_t size = sizeof(NcclConfig);
  unsigned magic = 0xcafebeef;
  unsigned version = 22800;
  int blocking = kUndefined;
  int cga_cluster_size = kUndefined;
  int min_ctas = kUndefined;
  int max_ctas = kUndefined;
  const char* net_name = nullptr;
  int split_share = kUndefined;
  int traffic_class = kUndefined;
  const char* comm_name = nullptr;
  int collnet_enable = kUndefined;
  int cta_policy = kUndefined;
  int shrink_share = kUndefined;
  int nvls_ctas = kUndefined;
  int channels_per_net_peer = kUndefined;
  int nvlink_centric_sched = kUndefined;
};

// ncclAllReduce and ncclReduceScatter.
using NcclReducing = int (*)(const void*, void*, std::size_t, int dtype, int op, NcclComm, Stream);
// ncclReduce.
using NcclReducingTo = int (*)(const void*, void*, std::size_t, int dtype, int op, int root,
                               NcclComm, Stream);

struct NcclLibrary {
  std::string path;
  int version = 0;  // 22809 is 2.28.9

  int (*get_version)(int*) = nullptr;
  const char* (*get_error_string)(int) = nullptr;
  int (*get_unique_id)(NcclId*) = nullptr;
  int (*comm_init_rank)(NcclComm*, int size, NcclId, int rank) = nullptr;
  int (*comm_destroy)(NcclComm) = nullptr;
  int (*comm_abort)(NcclComm) = nullptr;
  int (*comm_get_async_error)(NcclComm, int*) = nullptr;
  NcclReducing all_reduce = nullptr;
  int (*all_gather)(const void*, void*, std::size_t, int dtype, NcclComm, Stream) = nullptr;
  NcclReducing reduce_scatter = nullptr;
  NcclReducingTo reduce = nullptr;
  int (*broadcast)(const void*, void*, std::size_t, int dtype, int root, NcclComm,
                   Stream) = nullptr;
  int (*send)(const void*, std::size_t, int dtype, int peer, NcclComm, Stream) = nullptr;
  int (*receive)(void*, std::size_t, int dtype, int peer, NcclComm, Stream) = nullptr;
  int (*group_start)() = nullptr;
  int (*group_end)() = nullptr;
  // Null in old versions.
  int (*comm_revoke)(NcclComm, int flags) = nullptr;
  const char* (*get_last_error)(NcclComm) = nullptr;
  int (*create_pre_mul_sum)(int* op, void* scalar, int dtype, int residence, NcclComm) = nullptr;
  int (*destroy_op)(int op, NcclComm) = nullptr;
  int (*comm_init_rank_config)(NcclComm*, int size, NcclId, int rank, NcclConfig*) = nullptr;
  int (*all_to_all)(const void*, void*, std::size_t, int dtype, NcclComm, Stream) = nullptr;
  int (*gather)(const void*, void*, std::size_t, int dtype, int root, NcclComm, Stream) = nullptr;
  int (*scatter)(const void*, void*, std::size_t, int dtype, int root, NcclComm, Stream) = nullptr;
  int (*window_register)(NcclComm, void*, std::size_t, NcclWindow*, int flags) = nullptr;
  int (*window_deregister)(NcclComm, NcclWindow) = nullptr;
};

// The entry points of an opened library; kUnavailable where one that is needed is missing.
Result<NcclLibrary> load_nccl_calls(const DynamicLibrary& library);

// The one that this process has loaded already, else `configured` (TUTTI_NCCL_LIBRARY) where it is
// not empty, else what the loader finds as libnccl.so.2.
Result<DynamicLibrary> find_nccl(const std::string& configured);

std::string nccl_version_text(int version);  // 22809 -> "2.28.9"
int nccl_data_type(DataType dtype);          // ncclDataType_t
int nccl_op(OpKind op);                      // ncclRedOp_t; not for kPreMulSum

}  // namespace tutti
