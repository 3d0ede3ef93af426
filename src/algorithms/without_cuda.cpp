// Builds without CUDA: no row has a kernel.
#include "algorithms/all_gather/rows.hpp"
#include "algorithms/all_reduce/rows.hpp"
#include "algorithms/all_reduce_residual_rms_norm/rows.hpp"
#include "algorithms/all_to_all/rows.hpp"
#include "algorithms/all_to_all_v/rows.hpp"
#include "algorithms/barrier/rows.hpp"
#include "algorithms/broadcast/rows.hpp"
#include "algorithms/gather/rows.hpp"
#include "algorithms/meeting.hpp"
#include "algorithms/reduce/rows.hpp"
#include "algorithms/reduce_scatter/rows.hpp"
#include "algorithms/reduce_scatter_v/rows.hpp"
#include "algorithms/scatter/rows.hpp"
#include "algorithms/send_recv/rows.hpp"

namespace tutti {

CudaKernel cuda_all_reduce_one_shot(DataType, OpKind, int) { return nullptr; }
CudaKernel cuda_all_reduce_two_shot(DataType, OpKind, int) { return nullptr; }
CudaKernel cuda_all_reduce_one_shot_push(DataType, OpKind, int) { return nullptr; }
CudaKernel cuda_all_reduce_two_shot_push(DataType, OpKind, int) { return nullptr; }
CudaKernel cuda_all_reduce_two_shot_staged(DataType, OpKind, int) { return nullptr; }
CudaKernel cuda_all_reduce_two_shot_tma(DataType, OpKind, int) { return nullptr; }
CudaKernel cuda_all_reduce_ring(DataType, OpKind, int) { return nullptr; }
CudaKernel cuda_all_reduce_copy_engine(DataType, OpKind, int) { return nullptr; }
CudaKernel cuda_all_reduce_multicast_one_shot(DataType, OpKind, int) { return nullptr; }
CudaKernel cuda_all_reduce_multicast_two_shot(DataType, OpKind, int) { return nullptr; }

CudaKernel cuda_all_reduce_residual_rms_norm_one_shot_push(DataType, OpKind, int) {
  return nullptr;
}
CudaKernel cuda_all_reduce_residual_rms_norm_one_shot_push_split(DataType, OpKind, int) {
  return nullptr;
}
CudaKernel cuda_all_reduce_residual_rms_norm_two_shot(DataType, OpKind, int) { return nullptr; }
CudaKernel cuda_all_reduce_residual_rms_norm_two_shot_push(DataType, OpKind, int) {
  return nullptr;
}

CudaKernel cuda_normalise_tokens(DataType, int) { return nullptr; }

CudaKernel cuda_all_gather_push(DataType, OpKind, int) { return nullptr; }
CudaKernel cuda_all_gather_push_per_peer(DataType, OpKind, int) { return nullptr; }
CudaKernel cuda_all_gather_pull_tma(DataType, OpKind, int) { return nullptr; }
CudaKernel cuda_all_gather_ring(DataType, OpKind, int) { return nullptr; }
CudaKernel cuda_all_gather_one_shot_push(DataType, OpKind, int) { return nullptr; }
CudaKernel cuda_all_gather_multicast(DataType, OpKind, int) { return nullptr; }

CudaKernel cuda_reduce_scatter_pull(DataType, OpKind, int) { return nullptr; }
CudaKernel cuda_reduce_scatter_pull_rows(DataType, OpKind, int) { return nullptr; }
CudaKernel cuda_reduce_scatter_multicast(DataType, OpKind, int) { return nullptr; }
CudaKernel cuda_reduce_scatter_push(DataType, OpKind, int) { return nullptr; }
CudaKernel cuda_reduce_scatter_push_per_peer(DataType, OpKind, int) { return nullptr; }
CudaKernel cuda_reduce_scatter_pull_tma(DataType, OpKind, int) { return nullptr; }
CudaKernel cuda_reduce_scatter_ring(DataType, OpKind, int) { return nullptr; }
CudaKernel cuda_reduce_scatter_one_shot_push(DataType, OpKind, int) { return nullptr; }

CudaKernel cuda_all_to_all_push(DataType, OpKind, int) { return nullptr; }
CudaKernel cuda_all_to_all_push_per_peer(DataType, OpKind, int) { return nullptr; }
CudaKernel cuda_all_to_all_one_shot_push(DataType, OpKind, int) { return nullptr; }

CudaKernel cuda_reduce_scatter_v_pull(DataType, OpKind, int) { return nullptr; }
CudaKernel cuda_reduce_scatter_v_one_shot_push(DataType, OpKind, int) { return nullptr; }

CudaKernel cuda_all_to_all_v_push(DataType, OpKind, int) { return nullptr; }
CudaKernel cuda_all_to_all_v_one_shot_push(DataType, OpKind, int) { return nullptr; }

CudaKernel cuda_broadcast_one_shot_push(DataType, OpKind, int) { return nullptr; }
CudaKernel cuda_broadcast_two_shot(DataType, OpKind, int) { return nullptr; }

CudaKernel cuda_reduce_one_shot_push(DataType, OpKind, int) { return nullptr; }
CudaKernel cuda_reduce_multicast(DataType, OpKind, int) { return nullptr; }
CudaKernel cuda_reduce_two_shot_staged(DataType, OpKind, int) { return nullptr; }

CudaKernel cuda_gather_pull(DataType, OpKind, int) { return nullptr; }
CudaKernel cuda_gather_one_shot_push(DataType, OpKind, int) { return nullptr; }

CudaKernel cuda_scatter_push(DataType, OpKind, int) { return nullptr; }
CudaKernel cuda_scatter_one_shot_push(DataType, OpKind, int) { return nullptr; }

CudaKernel cuda_send_recv_push(DataType, OpKind, int) { return nullptr; }

CudaKernel cuda_barrier_multicast(DataType, OpKind, int) { return nullptr; }

CudaKernel cuda_meeting(DataType, OpKind, int) { return nullptr; }

}  // namespace tutti
