#include "doctor/findings.hpp"

#include <fmt/core.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "base/units.hpp"

namespace tutti::cli {
namespace {

std::string amount(std::uint64_t bytes) {
  if (bytes == kUnlimited) return "unlimited";
  return bytes >= GiB ? fmt::format("{:.1f} GiB", static_cast<double>(bytes) / GiB)
                      : fmt::format("{:.1f} MiB", static_cast<double>(bytes) / MiB);
}

std::string number(std::uint64_t value) {
  return value == kUnlimited ? "unlimited" : fmt::format("{}", value);
}

Finding good(std::string subject, std::string text) {
  return {Severity::kOk, std::move(subject), std::move(text), ""};
}

Finding warning(std::string subject, std::string text, std::string fix) {
  return {Severity::kWarning, std::move(subject), std::move(text), std::move(fix)};
}

Finding failure(std::string subject, std::string text, std::string fix) {
  return {Severity::kFailure, std::move(subject), std::move(text), std::move(fix)};
}

void judge_host(const Facts& facts, std::vector<Finding>& findings) {
  const Host& host = facts.machine.host;
  findings.push_back(good(
      "host",
      fmt::format("{}, {} cores, {} NUMA node{}, {} memory", host.name, host.cores, host.numa_nodes,
                  host.numa_nodes == 1 ? "" : "s", amount(host.memory_bytes))));
}

Finding judge_driver(const Facts& facts) {
  if (!facts.machine.gpus.empty()) {
    return good("driver", fmt::format("{}, CUDA {}", facts.machine.driver_version,
                                      facts.machine.cuda_version));
  }
  if (!facts.device_nodes) {
    return good("driver",
                fmt::format("no GPU ({}); commands run on the host backend", facts.why_no_cuda));
  }
  if (!facts.built_with_cuda) {
    return failure("driver", "there is a GPU, but this build of tutti has no CUDA backend",
                   "build where nvcc is found: ./dev build cuda-release");
  }
  return failure("driver",
                 fmt::format("there is a GPU, but it cannot be used: {}", facts.why_no_cuda),
                 "install libcuda.so.1 of the running driver (in a container: start it with "
                 "--gpus all); nvidia-smi must work");
}

std::string gpu_text(const Gpu& gpu) {
  std::string text =
      fmt::format("{}, {}, sm_{}, {} SMs, {}, {} NVLinks", gpu.name, gpu.pci_bus_id, gpu.compute,
                  gpu.multiprocessors, amount(gpu.memory_bytes), gpu.nvlinks);
  return gpu.numa_node >= 0 ? text + fmt::format(", NUMA node {}", gpu.numa_node) : text;
}

void judge_gpus(const Facts& facts, std::vector<Finding>& findings) {
  findings.push_back(judge_driver(facts));
  for (const Gpu& gpu : facts.machine.gpus) {
    const std::string subject = fmt::format("GPU {}", gpu.index);
    if (gpu.posix_fd_handles) {
      findings.push_back(good(subject, gpu_text(gpu)));
    } else {
      findings.push_back(failure(subject,
                                 gpu_text(gpu) + "; its memory cannot be shared by descriptor",
                                 "run ranks as threads of one process, or use a driver with "
                                 "virtual memory management (any since CUDA 11)"));
    }
  }
  const bool multicast = std::any_of(facts.machine.gpus.begin(), facts.machine.gpus.end(),
                                     [](const Gpu& gpu) { return gpu.multicast; });
  const std::string& why = facts.why_no_multicast;
  if (multicast) {
    findings.push_back(
        good("multicast", why.empty() ? "present, and may be used" : "present, not used: " + why));
  }
}

std::string end_text(int end) { return end == kHostEnd ? "host" : fmt::format("{}", end); }

Finding judge_failed(const Transfer& transfer) {
  const bool peers = transfer.between_gpus();
  const std::string subject = fmt::format("{} {} to {}", peers ? "peer" : "copy",
                                          end_text(transfer.from), end_text(transfer.to));
  if (!transfer.allowed) {
    return failure(subject, transfer.why,
                   "none on this machine (GPUs of different PCIe roots, or of a virtual machine); "
                   "operations run on NCCL");
  }
  return failure(subject, transfer.why,
                 peers
                     ? "turn PCIe ACS off in the BIOS (or the IOMMU: iommu=off), and look for Xid "
                       "errors in dmesg; until then operations run on NCCL"
                     : "look for Xid errors in dmesg, and whether another process holds the "
                       "GPU's memory (nvidia-smi)");
}

void judge_transfers(const Facts& facts, std::vector<Finding>& findings) {
  double least = 0, most = 0;
  std::size_t intact = 0, pairs = 0, skipped = 0;
  for (const Transfer& t : facts.transfers) {
    pairs += t.between_gpus() ? 1 : 0;
    skipped += t.skipped ? 1 : 0;
    if (!t.intact && !t.skipped) findings.push_back(judge_failed(t));
    if (!t.intact || !t.between_gpus()) continue;
    least = intact == 0 ? t.gbps : std::min(least, t.gbps);
    most = std::max(most, t.gbps);
    ++intact;
  }
  if (intact > 0) {
    findings.push_back(good("peer access", fmt::format("{} of {} directed pairs moved data intact, "
                                                       "{:.0f} to {:.0f} GB/s by copy engine",
                                                       intact, pairs, least, most)));
  }
  if (skipped > 0) {
    findings.push_back(warning("skipped",
                               fmt::format("{} of {} transfers: the time for them was up", skipped,
                                           facts.transfers.size()),
                               "try fewer GPUs at a time: CUDA_VISIBLE_DEVICES=0,1 tutti doctor"));
  }
}

std::string nccl_text(const Facts& facts) {
  if (facts.nccl_number < kFirstNcclWithWindows) {
    return facts.nccl_version + "; nccl_window needs 2.27 or newer";
  }
  if (facts.nccl_number < kFirstNcclThatAbortsThem) {
    return facts.nccl_version +
           "; nccl_window only if requested by name (automatic with 2.29.7 or newer)";
  }
  return facts.nccl_version;
}

void judge_libraries(const Facts& facts, std::vector<Finding>& findings) {
  const bool gpus = !facts.machine.gpus.empty();
  if (facts.why_no_nccl.empty()) {
    findings.push_back(good("NCCL", nccl_text(facts)));
  } else if (gpus) {
    findings.push_back(warning("NCCL", facts.why_no_nccl + "; no comparison, and no fall-back",
                               "install libnccl2, or name the file: TUTTI_NCCL_LIBRARY=/path/"
                               "libnccl.so.2"));
  } else {
    findings.push_back(good("NCCL", "not found; not needed without a GPU"));
  }
  if (!gpus) return;
  findings.push_back(facts.why_no_nvml.empty()
                         ? good("NVML", "found")
                         : warning("NVML", facts.why_no_nvml + "; the number of NVLinks is unknown",
                                   "install libnvidia-ml.so.1 of the running driver"));
}

// Whether it could move data of GPUs itself.
std::string cuda_of_ucx(const Result<FoundLibrary>& ucx) {
  if (!ucx.is_ok()) return {};
  const auto& modules = ucx->modules;
  return std::find(modules.begin(), modules.end(), "cuda") != modules.end()
             ? "; has CUDA (TUTTI_NETWORK_DIRECT=1)"
             : "; has no CUDA: data of GPUs goes through memory of the host";
}

// No collective needs these: without them nothing is wrong.
void judge_optional_libraries(const Facts& facts, std::vector<Finding>& findings) {
  const auto add = [&findings](std::string subject, const Result<FoundLibrary>& library,
                               const std::string& purpose) {
    std::string state = library.is_ok() ? fmt::format("{}, {}", library->version, library->path)
                                        : library.status().message();
    if (library.is_ok() && !library->modules.empty())
      state += fmt::format(" with {}", fmt::join(library->modules, ", "));
    findings.push_back(good(std::move(subject), fmt::format("{}; {}", state, purpose)));
  };
  add("cuBLASLt", facts.cublas_lt, "optional, for `tutti bench overlap`");
  add("UCX", facts.ucx, "optional, for networks between hosts" + cuda_of_ucx(facts.ucx));
  const std::string reason =
      facts.network.is_ok() ? *facts.network : facts.network.status().message();
  // Where nobody needs it, nothing is wrong.
  findings.push_back(good("network", reason));
}

void judge_memory(const Facts& facts, std::vector<Finding>& findings) {
  findings.push_back(
      facts.why_no_shared_memory.empty()
          ? good("shared memory", "anonymous shared memory can be made")
          : failure("shared memory", facts.why_no_shared_memory,
                    "allow memfd_create (a seccomp profile may forbid it) or mount /dev/shm"));
  const std::uint64_t total = facts.machine.host.shared_memory_bytes;
  const std::string text =
      fmt::format("{} of {} free", amount(facts.shared_memory_free), amount(total));
  constexpr std::uint64_t kEnough = 512 * MiB;
  if (total > 0 && !facts.why_shm_not_writable.empty()) {
    findings.push_back(warning("/dev/shm", facts.why_shm_not_writable + "; tutti uses memfd",
                               "NCCL needs it: mount -o remount,rw,mode=1777 /dev/shm"));
  } else if (total == 0) {
    findings.push_back(warning("/dev/shm", "missing; tutti uses memfd, but NCCL needs it",
                               "mount -t tmpfs tmpfs /dev/shm"));
  } else if (facts.shared_memory_free < kEnough) {
    findings.push_back(warning("/dev/shm", text,
                               "NCCL wants more: mount -o remount,size=1G /dev/shm, or for a "
                               "container --shm-size=1g"));
  } else {
    findings.push_back(good("/dev/shm", text));
  }
  findings.push_back(good("memory per communicator",
                          fmt::format("{} per rank: {}", amount(facts.communicator_bytes),
                                      facts.communicator_formula)));
}

void judge_folders(const Facts& facts, std::vector<Finding>& findings) {
  findings.push_back(
      facts.why_no_runtime_folder.empty()
          ? good("runtime folder", "ranks of several processes meet in " + facts.runtime_folder)
          : failure("runtime folder", facts.why_no_runtime_folder + "; ranks cannot meet there",
                    "let this user write there, or name a local folder where it can: "
                    "TUTTI_RUNTIME_DIR=FOLDER"));
  if (facts.trace_folder.empty()) return;
  findings.push_back(facts.why_no_trace_folder.empty()
                         ? good("trace folder", facts.trace_folder)
                         : failure("trace folder",
                                   facts.why_no_trace_folder + "; no record can be kept",
                                   "set TUTTI_TRACE_DIR to a folder that this user can write"));
}

void judge_limits(const Facts& facts, std::vector<Finding>& findings) {
  constexpr std::uint64_t kFilesNeeded = 256, kFilesComfortable = 1024;
  const std::string files =
      fmt::format("{} (at most {})", number(facts.open_files), number(facts.open_files_most));
  if (facts.open_files < kFilesNeeded) {
    findings.push_back(failure("open files", files, "raise it: ulimit -n 4096"));
  } else if (facts.open_files < kFilesComfortable) {
    findings.push_back(warning("open files", files, "for many communicators: ulimit -n 4096"));
  } else {
    findings.push_back(good("open files", files));
  }
  findings.push_back(good("locked memory", amount(facts.locked_memory) +
                                               "; only networks that register memory need more"));
  findings.push_back(good("processes", number(facts.processes)));
}

}  // namespace

std::string_view to_string(Severity severity) {
  if (severity == Severity::kOk) return "ok";
  return severity == Severity::kWarning ? "warn" : "fail";
}

std::vector<Finding> judge(const Facts& facts) {
  std::vector<Finding> findings;
  const auto group = [&](std::string_view name, const auto&... judges) {
    const std::size_t first = findings.size();
    (judges(facts, findings), ...);
    for (std::size_t k = first; k < findings.size(); ++k) findings[k].group = name;
  };
  group("machine", judge_host, judge_memory, judge_folders);
  group(kGpuGroup, judge_gpus, judge_transfers);
  group("libraries", judge_libraries, judge_optional_libraries);
  group("limits", judge_limits);
  return findings;
}

}  // namespace tutti::cli
