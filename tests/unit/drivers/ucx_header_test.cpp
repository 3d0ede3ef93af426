// What ucx_api.hpp says of UCX, against its own header, where it is installed (libucx-dev).
#include <gtest/gtest.h>

#include <cstddef>

#include "drivers/ucx_api.hpp"

#if __has_include(<ucp/api/ucp.h>)
#define TUTTI_HAS_UCX_HEADER 1
#include <ucp/api/ucp.h>
#endif

namespace tutti {
namespace {

#ifdef TUTTI_HAS_UCX_HEADER
static_assert(sizeof(ucs_status_t) == sizeof(UcxStatus));
static_assert(static_cast<int>(UcxStatus::kInProgress) == UCS_INPROGRESS);
static_assert(static_cast<int>(UcxStatus::kIoError) == UCS_ERR_IO_ERROR);
static_assert(static_cast<int>(UcxStatus::kNoMemory) == UCS_ERR_NO_MEMORY);
static_assert(static_cast<int>(UcxStatus::kInvalidParameter) == UCS_ERR_INVALID_PARAM);
static_assert(static_cast<int>(UcxStatus::kUnreachable) == UCS_ERR_UNREACHABLE);
static_assert(static_cast<int>(UcxStatus::kNoDevice) == UCS_ERR_NO_DEVICE);
static_assert(static_cast<int>(UcxStatus::kCanceled) == UCS_ERR_CANCELED);
static_assert(static_cast<int>(UcxStatus::kConnectionReset) == UCS_ERR_CONNECTION_RESET);
static_assert(static_cast<int>(UcxStatus::kEndpointTimeout) == UCS_ERR_ENDPOINT_TIMEOUT);
static_assert(static_cast<std::intptr_t>(kUcxLastFailure) == UCS_ERR_LAST);

static_assert(UcxParams::kFeatures == UCP_PARAM_FIELD_FEATURES);
static_assert(UcxParams::kFeatureWakeup == UCP_FEATURE_WAKEUP);
static_assert(UcxParams::kFeatureAm == UCP_FEATURE_AM);
static_assert(offsetof(UcxParams, features) == offsetof(ucp_params_t, features));
static_assert(offsetof(UcxParams, name) == offsetof(ucp_params_t, name));
static_assert(sizeof(UcxParams) <= sizeof(ucp_params_t));

using TheirContext = ucp_context_attr_t;
static_assert(UcxContextAttributes::kMemoryTypes == UCP_ATTR_FIELD_MEMORY_TYPES);
static_assert(offsetof(UcxContextAttributes, memory_types) == offsetof(TheirContext, memory_types));
static_assert(sizeof(UcxContextAttributes) <= sizeof(TheirContext));

using TheirWorker = ucp_worker_params_t;
static_assert(UcxWorkerParams::kThreadMode == UCP_WORKER_PARAM_FIELD_THREAD_MODE);
static_assert(UcxWorkerParams::kSerialized == UCS_THREAD_MODE_SERIALIZED);
static_assert(offsetof(UcxWorkerParams, thread_mode) == offsetof(TheirWorker, thread_mode));
static_assert(offsetof(UcxWorkerParams, events) == offsetof(TheirWorker, events));
static_assert(offsetof(UcxWorkerParams, client_id) == offsetof(TheirWorker, client_id));

using TheirEndpoint = ucp_ep_params_t;
static_assert(UcxEndpointParams::kRemoteAddress == UCP_EP_PARAM_FIELD_REMOTE_ADDRESS);
static_assert(UcxEndpointParams::kErrorMode == UCP_EP_PARAM_FIELD_ERR_HANDLING_MODE);
static_assert(UcxEndpointParams::kErrorHandler == UCP_EP_PARAM_FIELD_ERR_HANDLER);
static_assert(UcxEndpointParams::kReportPeers == UCP_ERR_HANDLING_MODE_PEER);
static_assert(offsetof(UcxEndpointParams, address) == offsetof(TheirEndpoint, address));
static_assert(offsetof(UcxEndpointParams, error_mode) == offsetof(TheirEndpoint, err_mode));
static_assert(offsetof(UcxEndpointParams, error_handler) == offsetof(TheirEndpoint, err_handler));
static_assert(offsetof(UcxEndpointParams, name) == offsetof(TheirEndpoint, name));
static_assert(sizeof(UcxErrorHandler) == sizeof(ucp_err_handler_t));
static_assert(offsetof(UcxErrorHandler, arg) == offsetof(ucp_err_handler_t, arg));

static_assert(UcxArrival::kRendezvous == UCP_AM_RECV_ATTR_FLAG_RNDV);
static_assert(offsetof(UcxArrival, attributes) == offsetof(ucp_am_recv_param_t, recv_attr));

using TheirHandler = ucp_am_handler_param_t;
static_assert(UcxHandlerParams::kAll ==
              (UCP_AM_HANDLER_PARAM_FIELD_ID | UCP_AM_HANDLER_PARAM_FIELD_FLAGS |
               UCP_AM_HANDLER_PARAM_FIELD_CB | UCP_AM_HANDLER_PARAM_FIELD_ARG));
static_assert(UcxHandlerParams::kWholeMessages == UCP_AM_FLAG_WHOLE_MSG);
static_assert(offsetof(UcxHandlerParams, id) == offsetof(TheirHandler, id));
static_assert(offsetof(UcxHandlerParams, flags) == offsetof(TheirHandler, flags));
static_assert(offsetof(UcxHandlerParams, arrived) == offsetof(TheirHandler, cb));
static_assert(offsetof(UcxHandlerParams, arg) == offsetof(TheirHandler, arg));

using TheirRequest = ucp_request_param_t;
static_assert(UcxRequestParams::kCallback == UCP_OP_ATTR_FIELD_CALLBACK);
static_assert(UcxRequestParams::kUserData == UCP_OP_ATTR_FIELD_USER_DATA);
static_assert(UcxRequestParams::kFlags == UCP_OP_ATTR_FIELD_FLAGS);
static_assert(UcxRequestParams::kMemoryType == UCP_OP_ATTR_FIELD_MEMORY_TYPE);
static_assert(UcxRequestParams::kCloseByForce == UCP_EP_CLOSE_FLAG_FORCE);
static_assert(UcxRequestParams::kEager == UCP_AM_SEND_FLAG_EAGER);
static_assert(UcxRequestParams::kByRendezvous == UCP_AM_SEND_FLAG_RNDV);
static_assert(UcxRequestParams::kHostMemory == UCS_MEMORY_TYPE_HOST);
static_assert(UcxRequestParams::kCudaMemory == UCS_MEMORY_TYPE_CUDA);
static_assert(offsetof(UcxRequestParams, mask) == offsetof(TheirRequest, op_attr_mask));
static_assert(offsetof(UcxRequestParams, flags) == offsetof(TheirRequest, flags));
static_assert(offsetof(UcxRequestParams, sent) == offsetof(TheirRequest, cb));
static_assert(offsetof(UcxRequestParams, datatype) == offsetof(TheirRequest, datatype));
static_assert(offsetof(UcxRequestParams, user_data) == offsetof(TheirRequest, user_data));
static_assert(offsetof(UcxRequestParams, memory_type) == offsetof(TheirRequest, memory_type));
static_assert(sizeof(UcxRequestParams) <= sizeof(TheirRequest));

TEST(UcxHeader, TellsRequestsFromFailures) {
  int request = 0;
  EXPECT_FALSE(ucx_is_failure(nullptr));
  EXPECT_FALSE(ucx_is_failure(&request));
  void* const failure = UCS_STATUS_PTR(UCS_ERR_NO_MEMORY);
  EXPECT_TRUE(UCS_PTR_IS_ERR(failure) && ucx_is_failure(failure));
  EXPECT_EQ(ucx_failure_of(failure), UcxStatus::kNoMemory);
}
#else
TEST(UcxHeader, TellsRequestsFromFailures) { GTEST_SKIP() << "there is no ucp.h here"; }
#endif

}  // namespace
}  // namespace tutti
