// What is used of UCX's API (libucp), with prototypes of our own: no header of UCX's is needed to
// build, and 1.13 to 1.23 can be loaded. A test compares this with the installed header.
//
// Structures are those of 1.13. Newer versions have members behind them, and read only what the
// field mask names.
#pragma once

#include <cstddef>
#include <cstdint>

namespace tutti {

using UcxContext = struct UcxContextOpaque*;    // ucp_context_h
using UcxWorker = struct UcxWorkerOpaque*;      // ucp_worker_h
using UcxEndpoint = struct UcxEndpointOpaque*;  // ucp_ep_h
using UcxConfig = struct UcxConfigOpaque*;      // ucp_config_t*
using UcxAddress = struct UcxAddressOpaque*;    // ucp_address_t*

// ucs_status_t, one byte. Negative: failures.
enum class UcxStatus : std::int8_t {
  kOk = 0,
  kInProgress = 1,
  kIoError = -3,
  kNoMemory = -4,
  kInvalidParameter = -5,
  kUnreachable = -6,
  kNoDevice = -14,
  kBusy = -15,
  kCanceled = -16,
  kConnectionReset = -25,
  kEndpointTimeout = -80,
};

// ucs_status_ptr_t: null where all is done, a failure, or a request.
inline constexpr std::uintptr_t kUcxLastFailure = static_cast<std::uintptr_t>(-100);
inline bool ucx_is_failure(const void* answer) {
  return reinterpret_cast<std::uintptr_t>(answer) >= kUcxLastFailure;
}
inline UcxStatus ucx_failure_of(const void* answer) {
  return static_cast<UcxStatus>(reinterpret_cast<std::intptr_t>(answer));
}

inline constexpr unsigned kUcxApiMajor = 1, kUcxApiMinor = 13;

struct UcxParams {  // ucp_params_t
  static constexpr std::uint64_t kFeatures = 1;
  static constexpr std::uint64_t kFeatureWakeup = 1 << 4, kFeatureAm = 1 << 6;
  std::uint64_t field_mask = 0;
  std::uint64_t features = 0;
  std::size_t request_size = 0;
  void (*request_init)(void*) = nullptr;
  void (*request_cleanup)(void*) = nullptr;
  std::uint64_t tag_sender_mask = 0;
  int mt_workers_shared = 0;
  std::size_t estimated_num_eps = 0;
  std::size_t estimated_num_ppn = 0;
  const char* name = nullptr;
};

struct UcxContextAttributes {  // ucp_context_attr_t
  static constexpr std::uint64_t kMemoryTypes = 1 << 2;
  std::uint64_t field_mask = 0;
  std::size_t request_size = 0;
  int thread_mode = 0;
  std::uint64_t memory_types = 0;  // bits, by ucs_memory_type_t
  char name[32] = {};
};

struct UcxWorkerParams {  // ucp_worker_params_t
  static constexpr std::uint64_t kThreadMode = 1;
  static constexpr int kSerialized = 1;
  std::uint64_t field_mask = 0;
  int thread_mode = 0;
  std::uint64_t cpu_mask[16] = {};
  unsigned events = 0;
  void* user_data = nullptr;
  int event_fd = -1;
  std::uint64_t flags = 0;
  const char* name = nullptr;
  std::size_t am_alignment = 0;
  std::uint64_t client_id = 0;
};

struct UcxSocketAddress {  // ucs_sock_addr_t
  const void* address = nullptr;
  unsigned length = 0;
};

struct UcxErrorHandler {  // ucp_err_handler_t
  void (*handle)(void* arg, UcxEndpoint, UcxStatus) = nullptr;
  void* arg = nullptr;
};

struct UcxEndpointParams {  // ucp_ep_params_t
  static constexpr std::uint64_t kRemoteAddress = 1, kErrorMode = 1 << 1, kErrorHandler = 1 << 2;
  static constexpr int kReportPeers = 1;  // UCP_ERR_HANDLING_MODE_PEER
  std::uint64_t field_mask = 0;
  UcxAddress address = nullptr;
  int error_mode = 0;
  UcxErrorHandler error_handler;
  void* user_data = nullptr;
  unsigned flags = 0;
  UcxSocketAddress socket_address;
  void* connection_request = nullptr;
  const char* name = nullptr;
  UcxSocketAddress local_socket_address;
};

struct UcxArrival {  // ucp_am_recv_param_t
  static constexpr std::uint64_t kRendezvous = 1 << 17;
  std::uint64_t attributes = 0;
  UcxEndpoint reply_to = nullptr;
};
using UcxArrived = UcxStatus (*)(void* arg, const void* header, std::size_t header_bytes,
                                 void* data, std::size_t bytes, const UcxArrival*);

struct UcxHandlerParams {  // ucp_am_handler_param_t
  static constexpr std::uint64_t kAll = 1 | 1 << 1 | 1 << 2 | 1 << 3;
  static constexpr std::uint32_t kWholeMessages = 1;
  std::uint64_t field_mask = 0;
  unsigned id = 0;
  std::uint32_t flags = 0;
  UcxArrived arrived = nullptr;
  void* arg = nullptr;
};

struct UcxRequestParams {  // ucp_request_param_t
  static constexpr std::uint32_t kCallback = 1 << 1, kUserData = 1 << 2, kFlags = 1 << 4;
  static constexpr std::uint32_t kMemoryType = 1 << 6;
  static constexpr std::uint32_t kCloseByForce = 1;  // of ep_close: UCP_EP_CLOSE_FLAG_FORCE
  static constexpr std::uint32_t kEager = 1 << 1, kByRendezvous = 1 << 2;  // of send
  static constexpr int kHostMemory = 0, kCudaMemory = 1;
  using Sent = void (*)(void* request, UcxStatus, void* user_data);
  using Received = void (*)(void* request, UcxStatus, std::size_t bytes, void* user_data);

  std::uint32_t mask = 0;
  std::uint32_t flags = 0;
  void* request = nullptr;
  union {
    Sent sent = nullptr;
    Received received;
  };
  std::uint64_t datatype = 0;
  void* user_data = nullptr;
  void* reply_buffer = nullptr;
  int memory_type = kHostMemory;
  void* receive_info = nullptr;
  void* memory_handle = nullptr;
};

// The entry points.
struct UcxCalls {
  void (*get_version)(unsigned* major, unsigned* minor, unsigned* release) = nullptr;
  const char* (*get_version_string)() = nullptr;
  UcxStatus (*config_read)(const char* prefix, const char* file, UcxConfig*) = nullptr;
  UcxStatus (*config_modify)(UcxConfig, const char* name, const char* value) = nullptr;
  void (*config_release)(UcxConfig) = nullptr;
  UcxStatus (*init_version)(unsigned major, unsigned minor, const UcxParams*, UcxConfig,
                            UcxContext*) = nullptr;
  void (*cleanup)(UcxContext) = nullptr;
  UcxStatus (*context_query)(UcxContext, UcxContextAttributes*) = nullptr;
  UcxStatus (*worker_create)(UcxContext, const UcxWorkerParams*, UcxWorker*) = nullptr;
  void (*worker_destroy)(UcxWorker) = nullptr;
  UcxStatus (*worker_get_address)(UcxWorker, UcxAddress*, std::size_t* bytes) = nullptr;
  void (*worker_release_address)(UcxWorker, UcxAddress) = nullptr;
  unsigned (*worker_progress)(UcxWorker) = nullptr;
  UcxStatus (*worker_get_efd)(UcxWorker, int* fd) = nullptr;
  UcxStatus (*worker_arm)(UcxWorker) = nullptr;
  UcxStatus (*set_handler)(UcxWorker, const UcxHandlerParams*) = nullptr;
  UcxStatus (*ep_create)(UcxWorker, const UcxEndpointParams*, UcxEndpoint*) = nullptr;
  void* (*ep_close)(UcxEndpoint, const UcxRequestParams*) = nullptr;
  void* (*send)(UcxEndpoint, unsigned id, const void* header, std::size_t header_bytes,
                const void* data, std::size_t bytes, const UcxRequestParams*) = nullptr;
  void* (*receive)(UcxWorker, void* descriptor, void* into, std::size_t bytes,
                   const UcxRequestParams*) = nullptr;
  UcxStatus (*request_status)(void* request) = nullptr;
  void (*request_free)(void* request) = nullptr;
};

}  // namespace tutti
