#include "base/knobs.hpp"

namespace tutti {
namespace {

using enum KnobType;
using enum KnobGroup;
constexpr KnobScope kProcess = KnobScope::kProcess;

constexpr Knob kKnobs[] = {
    {"TUTTI_RANK", kLaunch, kInt, "-1", "this process's rank; -1: from the launcher", kProcess},
    {"TUTTI_SIZE", kLaunch, kInt, "-1", "number of ranks; -1: from the launcher", kProcess},
    {"TUTTI_LOCAL_RANK", kLaunch, kInt, "-1",
     "rank among those of this host; -1: from the launcher", kProcess},
    {"TUTTI_LOCAL_SIZE", kLaunch, kInt, "-1", "number of ranks on this host; -1: from the launcher",
     kProcess},
    {"TUTTI_ROOT", kLaunch, kString, "", "host:port where rank 0 listens for ranks of other hosts",
     kProcess},
    {"TUTTI_SECRET", kLaunch, kString, "", "the group's secret, for ranks on several hosts",
     kProcess, true},
    {"TUTTI_SECRET_FILE", kLaunch, kString, "", "file (0600) that holds the group's secret",
     kProcess},
    {"TUTTI_RUNTIME_DIR", kLaunch, kString, "", "folder (0700) where ranks of one host meet",
     kProcess},
    {"TUTTI_GROUP_FD", kLaunch, kInt, "-1", "descriptor that tutti's commands pass to their ranks",
     kProcess},
    {"TUTTI_SSH", kLaunch, kString, "", "command by which `tutti run --hosts` reaches a host",
     kProcess},
    {"TUTTI_TOPOLOGY", kLaunch, kString, "system",
     "which ranks share memory: system, nolocal (each is a node) or vnode:K (K nodes)"},
    {"TUTTI_SOCKET_IFNAME", kLaunch, kString, "",
     "interfaces between hosts: prefixes, =whole names, ^all but these", kProcess},
    {"TUTTI_TRUST_NETWORK", kLaunch, kBool, "0",
     "1 allows UCX to listen at public addresses while a group forms", kProcess},
    {"TUTTI_LIBRARY", kLaunch, kString, "", "path of libtutti.so for the Python package", kProcess},
    {"TUTTI_UCX_LIBRARY", kLaunch, kString, "", "path of libucp.so.0, instead of a search",
     kProcess},
    {"TUTTI_SHARE_GPUS", kLaunch, kBool, "0", "1 lets ranks share a GPU: for tests, not for speed"},

    {"TUTTI_TUNE", kAlgorithms, kString, "",
     "forced algorithms: all_reduce:0-64K:@one_shot;all_reduce:@nccl"},
    {"TUTTI_TUNING_FILE", kAlgorithms, kString, "", "tuning table with precedence over all others",
     kProcess},
    {"TUTTI_TUNING_CACHE", kAlgorithms, kString, "~/.cache/tutti/tuning.json",
     "tuning table that `tutti tune` writes", kProcess},
    {"TUTTI_DISABLE", kAlgorithms, kBool, "0", "1: NCCL runs all collectives but barrier"},
    {"TUTTI_NCCL_LIBRARY", kAlgorithms, kString, "",
     "path of libnccl.so.2, instead of the loader's search", kProcess},
    {"TUTTI_MULTICAST", kAlgorithms, kBool, "0",
     "1 allows NVLink multicast in builds that have it"},
    {"TUTTI_RING_BIDIRECTIONAL_MAX_BYTES", kAlgorithms, kSizeLimit, "-2",
     "largest message of ring_bidirectional; 0: none, -1: all, -2: by machine"},
    {"TUTTI_STREAM_BARRIER_MAX_BYTES", kAlgorithms, kSizeLimit, "-2",
     "largest message whose copy-engine barriers use no SM; 0: none, -1: all, -2: if sm_budget is "
     "0"},

    {"TUTTI_STAGING_BYTES", kMemory, kBytes, "8M",
     "staging per rank: buffers that are not symmetric, rings, and pushed or fetched parts"},
    {"TUTTI_CAPTURE_CHANNELS", kMemory, kInt, "8",
     "captured streams whose graphs may run at the same time"},
    {"TUTTI_CAPTURE_STAGING_BYTES", kMemory, kBytes, "512K",
     "staging per captured stream; the first one has TUTTI_STAGING_BYTES"},
    {"TUTTI_MESSAGE_BYTES", kMemory, kBytes, "8M",
     "slots for messages between ranks; 0: only NCCL sends them"},
    {"TUTTI_PACKET_BYTES", kMemory, kBytes, "8M",
     "packet slots per rank and generation; 0: no packets"},
    {"TUTTI_NETWORK_STAGING_BYTES", kMemory, kBytes, "16M",
     "pinned memory of the host through which buffers on GPUs go over a network"},
    {"TUTTI_NETWORK_DIRECT", kMemory, kBool, "0",
     "1: UCX moves data of GPUs that nothing adds, if it reaches their memory"},
    {"TUTTI_PREPARE", kMemory, kBool, "0",
     "1: memory of a communicator is made with it, not by its first operation"},
    {"TUTTI_P2P_DIRECT_DISABLE", kMemory, kBool, "0",
     "1: threads of a process do not touch each other's plain buffers on the host"},
    {"TUTTI_P2P_VERIFY", kMemory, kBool, "1",
     "check peer access by real transfers before it is used"},

    {"TUTTI_TIMEOUT_MS", kDiagnostics, kMilliseconds, "600000",
     "timeout of every wait, except replays of captured NCCL operations"},
    {"TUTTI_DEBUG", kDiagnostics, kChoice, "WARN", "what is logged: OFF, WARN, INFO or TRACE",
     kProcess, false, "OFF WARN INFO TRACE"},
    {"TUTTI_DEBUG_FILE", kDiagnostics, kString, "",
     "log to this file, not stderr; %h is the host, %p the pid", kProcess},
    {"TUTTI_RECORDER", kDiagnostics, kBool, "1",
     "keep the last operations where `tutti status` finds them", kProcess},
    {"TUTTI_TRACE_DIR", kDiagnostics, kString, "",
     "folder where records stay after a failure or a kill", kProcess},
    {"TUTTI_NVTX", kDiagnostics, kBool, "1", "mark operations on the timeline of Nsight Systems",
     kProcess},
    {"TUTTI_CONF_FILE", kDiagnostics, kString, "",
     "file of settings, instead of ~/.config/tutti.conf", kProcess},
};

}  // namespace

std::span<const Knob> all_knobs() { return kKnobs; }

std::string_view to_string(KnobGroup group) {
  switch (group) {
    case kLaunch:
      return "launch";
    case kAlgorithms:
      return "algorithms";
    case kMemory:
      return "memory";
    case kDiagnostics:
      return "timeouts and diagnostics";
  }
  return "?";
}

}  // namespace tutti
