#include "doctor/facts.hpp"

#include <sys/resource.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <fmt/core.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstdlib>
#include <system_error>

#include "base/knobs.hpp"
#include "base/units.hpp"
#include "bootstrap/private_directory.hpp"
#include "device/multicast/support.hpp"
#include "drivers/nccl.hpp"
#include "drivers/nvml.hpp"
#include "drivers/shared_memory.hpp"
#include "drivers/ucx_wire.hpp"
#include "executors/peer/layout.hpp"

namespace tutti::cli {
namespace {

constexpr std::chrono::seconds kTransferBudget{10};  // of all pairs together

struct Limit {
  std::uint64_t soft = 0, hard = 0;
};

Limit limit_of(__rlimit_resource resource) {
  rlimit limit = {};
  ::getrlimit(resource, &limit);
  const auto value = [](rlim_t of) { return of == RLIM_INFINITY ? kUnlimited : of; };
  return {value(limit.rlim_cur), value(limit.rlim_max)};
}

std::uint64_t free_shared_memory() {
  struct statvfs file_system = {};
  if (::statvfs("/dev/shm", &file_system) != 0) return 0;
  return static_cast<std::uint64_t>(file_system.f_bavail) * file_system.f_frsize;
}

Result<std::string> network_of(const Result<FoundLibrary>& ucx) {
  if (!ucx.is_ok()) return Status(StatusCode::kUnavailable, "nothing: there is no UCX");
  const auto& modules = ucx->modules;
  const bool rdma = std::find(modules.begin(), modules.end(), "ib") != modules.end();
  const auto network = choose_network(wire_options(Knobs::process()), rdma);
  return network.is_ok() ? Result<std::string>(network->text()) : network.status();
}

void add_communicator_memory(Facts& facts) {
  const Layout layout = layout_from(Knobs::process(), !facts.machine.gpus.empty());
  facts.communicator_bytes = layout.bytes();
  facts.communicator_formula = fmt::format(
      "{} x {} of flags, {} of staging, {} for graph captures, {:.1f} MiB of packets",
      layout.channels(), format_bytes(Layout::kChannelBytes), format_bytes(layout.staging_bytes),
      format_bytes(layout.staging_offset(layout.channels()) - layout.staging_offset(1)),
      static_cast<double>(layout.late_bytes() - layout.packet_offset(0)) / MiB);
}

void look_at_folders(Facts& facts) {
  const Knobs& knobs = Knobs::process();
  const auto runtime = runtime_directory(knobs.text("TUTTI_RUNTIME_DIR"));
  facts.runtime_folder = runtime.is_ok() ? *runtime : knobs.text("TUTTI_RUNTIME_DIR");
  facts.why_no_runtime_folder =
      runtime.is_ok() ? why_not_writable(*runtime) : runtime.status().message();
  facts.trace_folder = knobs.path("TUTTI_TRACE_DIR");
  if (!facts.trace_folder.empty()) facts.why_no_trace_folder = why_not_writable(facts.trace_folder);
  facts.shared_memory_free = free_shared_memory();
  facts.why_shm_not_writable = why_not_writable("/dev/shm");
}

}  // namespace

std::string why_not_writable(const std::string& folder) {
  std::string probe = folder + "/tutti-doctor-XXXXXX";
  if (::mkdtemp(probe.data()) == nullptr) {
    return fmt::format("nothing can be made in {}: {}", folder,
                       std::generic_category().message(errno));
  }
  ::rmdir(probe.c_str());
  return {};
}

void look_for_libraries(OptionalLibraries& libraries, Facts& facts) {
  facts.cublas_lt = libraries.cublas_lt();
  facts.ucx = libraries.ucx();
}

Facts gather_facts() {
  Facts facts;
  facts.built_with_cuda = TUTTI_WITH_CUDA != 0;
  facts.why_no_multicast = why_no_multicast();
  facts.device_nodes = ::access("/dev/nvidia0", F_OK) == 0 || ::access("/dev/nvidiactl", F_OK) == 0;
  CudaDriver* cuda = real_cuda(&facts.why_no_cuda);
  facts.machine = discover_machine(cuda, real_nvml(&facts.why_no_nvml));
  if (cuda != nullptr && facts.machine.gpus.empty()) facts.why_no_cuda = facts.machine.why_no_gpu;
  if (NcclDriver* nccl = real_nccl(&facts.why_no_nccl); nccl != nullptr) {
    const auto version = nccl->version();
    facts.nccl_number = nccl->version_number();
    facts.nccl_version = version.is_ok() ? *version : version.status().message();
  }
  look_for_libraries(real_optional_libraries(), facts);
  facts.network = network_of(facts.ucx);
  if (cuda != nullptr) {
    const int gpus = static_cast<int>(facts.machine.gpus.size());
    facts.transfers = try_transfers(*cuda, gpus, kTransferBudget);
  }
  const auto memory = real_shared_memory().create(1 * MiB);
  if (!memory.is_ok()) facts.why_no_shared_memory = memory.status().message();
  look_at_folders(facts);
  facts.open_files = limit_of(RLIMIT_NOFILE).soft;
  facts.open_files_most = limit_of(RLIMIT_NOFILE).hard;
  facts.locked_memory = limit_of(RLIMIT_MEMLOCK).soft;
  facts.processes = limit_of(RLIMIT_NPROC).soft;
  add_communicator_memory(facts);
  return facts;
}

}  // namespace tutti::cli
