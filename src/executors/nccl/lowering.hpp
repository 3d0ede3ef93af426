// Calls as NCCL has them.
#pragma once

#include "executors/nccl/session.hpp"
#include "operation/call.hpp"

namespace tutti {

struct NcclPlace {
  int rank = 0, ranks = 1;
};

// Within a NcclSession::Call.
Status give_to_nccl(NcclSession& session, const Call& call, NcclPlace place);

// Every entry of NCCL's that calls are given to, once, within `bytes` of scratch memory.
Status warm_up_nccl_with(NcclSession& session, std::byte* scratch, std::size_t bytes,
                         NcclPlace place, Stream stream);

}  // namespace tutti
