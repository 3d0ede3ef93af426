#include "doctor/findings.hpp"

#include <fmt/core.h>

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
  return {Severity::kGood, std::move(subject), std::move(text), ""};
}

Finding note(std::string subject, std::string text, std::string fix = "") {
  return {Severity::kNote, std::move(subject), std::move(text), std::move(fix)};
}

Finding broken(std::string subject, std::string text, std::string fix) {
  return {Severity::kBroken, std::move(subject), std::move(text), std::move(fix)};
}

Finding judge_driver(const Facts& facts) {
  if (!facts.machine.gpus.empty()) {
    return good("driver", fmt::format("{}, CUDA {}", facts.machine.driver_version,
                                      facts.machine.cuda_version));
  }
  if (!facts.device_nodes) {
    return note("driver",
                fmt::format("no GPU ({}); commands run on the host backend", facts.why_no_cuda));
  }
  if (!facts.built_with_cuda) {
    return broken("driver", "there is a GPU, but this build of tutti has no CUDA backend",
                  "build where nvcc is found: ./dev build cuda-release");
  }
  return broken("driver",
                fmt::format("there is a GPU, but it cannot be used: {}", facts.why_no_cuda),
                "see that libcuda.so.1 of the running driver is installed (in a container: start "
                "it with --gpus all), and that nvidia-smi works");
}

void judge_gpus(const Facts& facts, std::vector<Finding>& findings) {
  for (const Gpu& gpu : facts.machine.gpus) {
    const std::string subject = fmt::format("GPU {}", gpu.index);
    std::string text = fmt::format("{}, {}, sm_{}, {}, {} NVLinks", gpu.name, gpu.pci_bus_id,
                                   gpu.compute, amount(gpu.memory_bytes), gpu.nvlinks);
    if (gpu.posix_fd_handles) {
      findings.push_back(good(subject, std::move(text)));
    } else {
      findings.push_back(broken(subject, text + "; its memory cannot be shared by descriptor",
                                "ranks as threads of one process work; for processes use a driver "
                                "with virtual memory management (any since CUDA 11)"));
    }
  }
  const bool multicast = std::any_of(facts.machine.gpus.begin(), facts.machine.gpus.end(),
                                     [](const Gpu& gpu) { return gpu.multicast; });
  const std::string& why = facts.why_no_multicast;
  if (multicast) {
    findings.push_back(
        note("multicast", why.empty() ? "present, and may be used" : "present, not used: " + why));
  }
}

void judge_transfers(const Facts& facts, std::vector<Finding>& findings) {
  if (facts.transfers.empty()) return;
  double least = 0, most = 0;
  std::size_t intact = 0;
  for (const PeerTransfer& t : facts.transfers) {
    if (!t.intact) {
      findings.push_back(broken(
          fmt::format("peer {} to {}", t.from, t.to), t.why,
          t.allowed ? "turn PCIe ACS off in the BIOS (or the IOMMU: iommu=off), and see dmesg for "
                      "Xid errors; until then operations go through NCCL"
                    : "GPUs under different hosts bridges or in a virtual machine may not reach "
                      "each other; operations go through NCCL then"));
      continue;
    }
    least = intact == 0 ? t.gbps : std::min(least, t.gbps);
    most = std::max(most, t.gbps);
    ++intact;
  }
  if (intact == 0) return;
  findings.push_back(
      good("peer access", fmt::format("{} of {} directed pairs moved data intact, {:.0f} to {:.0f} "
                                      "GB/s by copy engine",
                                      intact, facts.transfers.size(), least, most)));
}

std::string nccl_text(const Facts& facts) {
  if (facts.nccl_number < kFirstNcclWithWindows) {
    return facts.nccl_version + "; nccl_window takes 2.27 or newer";
  }
  if (facts.nccl_number < kFirstNcclThatAbortsThem) {
    return facts.nccl_version +
           "; nccl_window by its name alone (auto takes it with 2.29.7 or newer)";
  }
  return facts.nccl_version;
}

void judge_libraries(const Facts& facts, std::vector<Finding>& findings) {
  const bool gpus = !facts.machine.gpus.empty();
  if (facts.why_no_nccl.empty()) {
    findings.push_back(good("NCCL", nccl_text(facts)));
  } else if (gpus) {
    findings.push_back(note("NCCL", facts.why_no_nccl,
                            "install libnccl2, or name the file: TUTTI_NCCL_LIBRARY=/path/"
                            "libnccl.so.2; without it there is no comparison and no fall-back"));
  } else {
    findings.push_back(note("NCCL", "not found, and of no use without a GPU"));
  }
  if (!gpus) return;
  findings.push_back(facts.why_no_nvml.empty()
                         ? good("NVML", "found")
                         : note("NVML", facts.why_no_nvml, "links are not known without it"));
}

// No collective needs these, so none is missed: they are here for who wants to know beforehand.
void judge_optional_libraries(const Facts& facts, std::vector<Finding>& findings) {
  const auto add = [&findings](std::string subject, const Result<FoundLibrary>& library,
                               std::string_view purpose) {
    const std::string state = library.is_ok()
                                  ? fmt::format("{}, {}", library->version, library->path)
                                  : library.status().message();
    std::string text = fmt::format("{}; {}", state, purpose);
    findings.push_back(library.is_ok() ? good(std::move(subject), std::move(text))
                                       : note(std::move(subject), std::move(text)));
  };
  add("cuBLASLt", facts.cublas_lt,
      "for `tutti bench overlap`, a matrix product beside a collective");
  add("UCX", facts.ucx, "for networks between hosts, which this version leaves to NCCL");
}

void judge_memory(const Facts& facts, std::vector<Finding>& findings) {
  findings.push_back(
      facts.why_no_shared_memory.empty()
          ? good("shared memory", "anonymous shared memory can be made")
          : broken("shared memory", facts.why_no_shared_memory,
                   "allow memfd_create (a seccomp profile may forbid it) or mount /dev/shm"));
  const std::uint64_t total = facts.machine.host.shared_memory_bytes;
  const std::string text =
      fmt::format("{} of {} free", amount(facts.shared_memory_free), amount(total));
  constexpr std::uint64_t kEnough = 512 * MiB;
  if (total > 0 && !facts.why_shm_not_writable.empty()) {
    findings.push_back(note("/dev/shm", facts.why_shm_not_writable + "; tutti uses memfd",
                            "NCCL needs it: mount -o remount,rw,mode=1777 /dev/shm"));
  } else if (total == 0) {
    findings.push_back(note("/dev/shm", "not there; tutti uses memfd, but NCCL needs it"));
  } else if (facts.shared_memory_free < kEnough) {
    findings.push_back(note("/dev/shm", text,
                            "NCCL wants more: mount -o remount,size=1G /dev/shm, or for a "
                            "container --shm-size=1g"));
  } else {
    findings.push_back(good("/dev/shm", text));
  }
  findings.push_back(good("memory per communicator",
                          fmt::format("{} per rank = {}", amount(facts.communicator_bytes),
                                      facts.communicator_formula)));
}

void judge_folders(const Facts& facts, std::vector<Finding>& findings) {
  findings.push_back(
      facts.why_no_runtime_folder.empty()
          ? good("runtime folder", "ranks that are processes meet in " + facts.runtime_folder)
          : broken("runtime folder", facts.why_no_runtime_folder + "; ranks are to meet there",
                   "let this user write there, or name a local folder where it can: "
                   "TUTTI_RUNTIME_DIR=FOLDER"));
  if (facts.trace_folder.empty()) return;
  findings.push_back(facts.why_no_trace_folder.empty()
                         ? good("trace folder", facts.trace_folder)
                         : broken("trace folder", facts.why_no_trace_folder + "; no record stays",
                                  "set TUTTI_TRACE_DIR to a folder that this user can write"));
}

void judge_limits(const Facts& facts, std::vector<Finding>& findings) {
  constexpr std::uint64_t kFilesNeeded = 256, kFilesComfortable = 1024;
  const std::string files =
      fmt::format("{} (at most {})", number(facts.open_files), number(facts.open_files_most));
  if (facts.open_files < kFilesNeeded) {
    findings.push_back(broken("open files", files, "raise it: ulimit -n 4096"));
  } else if (facts.open_files < kFilesComfortable) {
    findings.push_back(note("open files", files, "many communicators need more: ulimit -n 4096"));
  } else {
    findings.push_back(good("open files", files));
  }
  constexpr std::uint64_t kLocked = 64 * MiB;
  findings.push_back(facts.locked_memory >= kLocked
                         ? good("locked memory", amount(facts.locked_memory))
                         : note("locked memory", amount(facts.locked_memory),
                                "only networks that register memory need more: ulimit -l "
                                "unlimited"));
  findings.push_back(good("processes", number(facts.processes)));
}

}  // namespace

std::string_view to_string(Severity severity) {
  if (severity == Severity::kGood) return "ok";
  return severity == Severity::kNote ? "note" : "BROKEN";
}

std::vector<Finding> judge(const Facts& facts) {
  std::vector<Finding> findings = {judge_driver(facts)};
  judge_gpus(facts, findings);
  judge_transfers(facts, findings);
  judge_libraries(facts, findings);
  judge_optional_libraries(facts, findings);
  judge_memory(facts, findings);
  judge_folders(facts, findings);
  judge_limits(facts, findings);
  return findings;
}

}  // namespace tutti::cli
