#include "drivers/nccl_library.hpp"

#include <fmt/format.h>

namespace tutti {
namespace {

constexpr const char* kSoname = "libnccl.so.2";

}  // namespace

Result<DynamicLibrary> find_nccl(const std::string& configured) {
  // Two copies in one process would each keep their own channels and proxies.
  if (Result<DynamicLibrary> loaded = DynamicLibrary::open_loaded(kSoname)) return loaded;
  if (!configured.empty()) {
    Result<DynamicLibrary> named = DynamicLibrary::open(configured);
    if (named.is_ok()) return named;
    return Status(StatusCode::kUnavailable,
                  fmt::format("TUTTI_NCCL_LIBRARY={} cannot be loaded ({}): name the file "
                              "libnccl.so.2, or unset it to use the loader's search",
                              configured, named.status().message()));
  }
  Result<DynamicLibrary> found = DynamicLibrary::open(kSoname);
  if (found.is_ok()) return found;
  return Status(StatusCode::kUnavailable,
                fmt::format("no NCCL ({}): install libnccl2, or set TUTTI_NCCL_LIBRARY to the file "
                            "(pip's package has it in nvidia/nccl/lib/libnccl.so.2)",
                            found.status().message()));
}

Result<NcclLibrary> load_nccl_calls(const DynamicLibrary& library) {
  NcclLibrary calls;
  calls.path = library.path();
  std::string missing;
  library.require("ncclGetVersion", calls.get_version, missing);
  library.require("ncclGetErrorString", calls.get_error_string, missing);
  library.require("ncclGetUniqueId", calls.get_unique_id, missing);
  library.require("ncclCommInitRank", calls.comm_init_rank, missing);
  library.require("ncclCommDestroy", calls.comm_destroy, missing);
  library.require("ncclCommAbort", calls.comm_abort, missing);
  library.require("ncclCommGetAsyncError", calls.comm_get_async_error, missing);
  library.require("ncclAllReduce", calls.all_reduce, missing);
  library.require("ncclAllGather", calls.all_gather, missing);
  library.require("ncclReduceScatter", calls.reduce_scatter, missing);
  library.require("ncclReduce", calls.reduce, missing);
  library.require("ncclBroadcast", calls.broadcast, missing);
  library.require("ncclSend", calls.send, missing);
  library.require("ncclRecv", calls.receive, missing);
  library.require("ncclGroupStart", calls.group_start, missing);
  library.require("ncclGroupEnd", calls.group_end, missing);
  library.find("ncclCommRevoke", calls.comm_revoke);
  library.find("ncclGetLastError", calls.get_last_error);
  library.find("ncclRedOpCreatePreMulSum", calls.create_pre_mul_sum);
  library.find("ncclRedOpDestroy", calls.destroy_op);
  library.find("ncclCommInitRankConfig", calls.comm_init_rank_config);
  library.find("ncclAlltoAll", calls.all_to_all);
  library.find("ncclGather", calls.gather);
  library.find("ncclScatter", calls.scatter);
  library.find("ncclCommWindowRegister", calls.window_register);
  library.find("ncclCommWindowDeregister", calls.window_deregister);
  if (!missing.empty()) {
    return Status(
        StatusCode::kUnavailable,
        fmt::format("{} has no {}: it is no NCCL, or a very old one", calls.path, missing));
  }
  if (calls.get_version(&calls.version) != kNcclSuccess) {
    return Status(StatusCode::kUnavailable,
                  fmt::format("{} does not tell its version", calls.path));
  }
  return calls;
}

std::string nccl_version_text(int version) {
  // Since 2.9 the minor version has two digits.
  const int major_unit = version < 10000 ? 1000 : 10000;
  return fmt::format("{}.{}.{}", version / major_unit, version % major_unit / 100, version % 100);
}

int nccl_data_type(DataType dtype) {
  switch (dtype) {
    case DataType::kInt8:
      return 0;
    case DataType::kUint8:
      return 1;
    case DataType::kInt32:
      return 2;
    case DataType::kUint32:
      return 3;
    case DataType::kInt64:
      return 4;
    case DataType::kUint64:
      return 5;
    case DataType::kFloat16:
      return 6;
    case DataType::kFloat32:
      return 7;
    case DataType::kFloat64:
      return 8;
    case DataType::kBfloat16:
      return 9;
    case DataType::kFloat8E4M3:
      return 10;
    case DataType::kFloat8E5M2:
      return 11;
  }
  return -1;
}

int nccl_op(OpKind op) {
  switch (op) {
    case OpKind::kSum:
      return 0;
    case OpKind::kProd:
      return 1;
    case OpKind::kMax:
      return 2;
    case OpKind::kMin:
      return 3;
    case OpKind::kAvg:
      return 4;
    case OpKind::kPreMulSum:
      break;  // made per call
  }
  return -1;
}

}  // namespace tutti
