#include "drivers/ucx_context.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <cstdint>
#include <cstdlib>
#include <vector>

#include "base/log.hpp"
#include "base/try.hpp"
#include "drivers/ucx_settings.hpp"

namespace tutti {
namespace {

// Devices and transports; what `text` says of them.
Status choose_ucx_transports(const UcxLibrary& library, const WireOptions& options,
                             UcxSettings& settings, std::string& text) {
  if (UcxSettings::is_set("NET_DEVICES")) {
    text += fmt::format(", UCX_NET_DEVICES={}", std::getenv("UCX_NET_DEVICES"));
  } else {
    TUTTI_ASSIGN(const WireNetwork network, choose_network(options, library.has_module("ib")));
    std::vector<std::string> devices = network.tcp;
    devices.insert(devices.end(), network.rdma.begin(), network.rdma.end());
    TUTTI_TRY(settings.set("NET_DEVICES", fmt::format("{}", fmt::join(devices, ","))));
    text += ", " + network.text();
  }
  if (UcxSettings::is_set("TLS")) text += fmt::format(", UCX_TLS={}", std::getenv("UCX_TLS"));
  if (!options.transports.empty()) return settings.set("TLS", options.transports);
  if (!library.has_module("cuda")) return {};
  // Of a peer on this host it would map the GPU's memory during an operation, which may wait for
  // kernels, and the operation's own kernel waits for the message.
  const bool gpus = options.gpus == GpuMemory::kCuda;
  return settings.set("TLS", gpus ? "^cuda_ipc" : "^cuda");
}

bool ucx_knows_cuda(const UcxCalls& ucx, UcxContext context) {
  UcxContextAttributes attributes;
  attributes.field_mask = UcxContextAttributes::kMemoryTypes;
  constexpr std::uint64_t kCuda = std::uint64_t{1} << UcxRequestParams::kCudaMemory;
  return ucx.context_query(context, &attributes) == UcxStatus::kOk &&
         (attributes.memory_types & kCuda) != 0;
}

}  // namespace

Result<OpenedUcx> open_ucx_context(const UcxLibrary& library, const WireOptions& options) {
  OpenedUcx opened{.text = fmt::format("UCX {}", library.version)};
  UcxSettings settings(library.calls);
  TUTTI_TRY(settings.read());
  TUTTI_TRY(choose_ucx_transports(library, options, settings, opened.text));
  // A rendezvous costs 3 to 30 % on TCP, and whoever uses the wire bounds what is under way. If the
  // wire reaches GPUs, each message says how it is sent.
  if (options.gpus == GpuMemory::kNone) TUTTI_TRY(settings.set("RNDV_THRESH", "inf"));
  // A peer that ended is noticed over shared memory only by these looks.
  TUTTI_TRY(settings.set("KEEPALIVE_INTERVAL", "500ms"));
  UcxParams params;
  params.field_mask = UcxParams::kFeatures;
  params.features = UcxParams::kFeatureAm | UcxParams::kFeatureWakeup;
  const UcxStatus status = library.calls.init_version(kUcxApiMajor, kUcxApiMinor, &params,
                                                      settings.get(), &opened.context);
  if (status != UcxStatus::kOk) return ucx_failure("it cannot use " + opened.text, status);
  opened.reaches_gpus = options.gpus == GpuMemory::kHostInstead;
  if (options.gpus != GpuMemory::kCuda) return opened;
  opened.gpu_memory = UcxRequestParams::kCudaMemory;
  opened.reaches_gpus = ucx_knows_cuda(library.calls, opened.context);
  if (opened.reaches_gpus) {
    opened.text += ", from and to memory of GPUs";
  } else {
    log(LogLevel::kWarn,
        "TUTTI_NETWORK_DIRECT=1: {} ({}) does not reach memory of GPUs, so buffers on GPUs are "
        "staged: a UCX with CUDA is needed (pip's libucx-cu12 or libucx-cu13), and UCX_TLS, if "
        "set, has to allow cuda_copy",
        opened.text, library.path);
  }
  return opened;
}

}  // namespace tutti
