// The rows of send_recv. Entries are defined beside the body they instantiate: one each, for bytes.
#pragma once

#include "algorithms/bodies.hpp"

namespace tutti {

template <class Team>
BodyOf<Team> host_send_recv_push(DataType dtype, OpKind op);

// Null in builds without CUDA. __global__ void(KernelArgs, Messages).
CudaKernel cuda_send_recv_push(DataType dtype, OpKind op, int ranks);

std::span<const Algorithm> send_recv_rows();

}  // namespace tutti
