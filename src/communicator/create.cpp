// How a communicator comes to be: the ranks compare what must agree, choose the backend, open their
// memory and prove that peers really reach it.
#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "base/hash.hpp"
#include "base/knobs.hpp"
#include "base/log.hpp"
#include "base/try.hpp"
#include "bootstrap/counted_bootstrap.hpp"
#include "bootstrap/identity.hpp"
#include "communicator/communicator_impl.hpp"
#include "communicator/watchdog.hpp"
#include "drivers/cuda.hpp"
#include "drivers/nvml.hpp"
#include "drivers/shared_memory.hpp"
#include "tutti/version.hpp"

namespace tutti {
namespace {

// What each rank tells the others first. Fixed size, no pointers.
struct RankInfo {
  std::uint64_t version = TUTTI_VERSION;
  std::uint64_t knobs = 0, tables = 0;
  std::uint64_t options = 0;
  std::uint64_t host = 0, process = 0;
  std::uint64_t group = 0;   // random: rank 0's names the group
  std::int32_t backend = 0;  // what was asked for
  std::int32_t has_gpu = 0, has_nccl = 0, nccl_version = 0;
  std::int32_t compute = 0, multiprocessors = 0, nvlinks = 0, multicast = 0;
  std::uint8_t uuid[16] = {};
  char name[64] = {};
};

struct Compared {
  const char* what;
  std::uint64_t RankInfo::*value;
};
constexpr Compared kMustAgree[] = {{"library version", &RankInfo::version},
                                   {"settings (TUTTI_* variables or tutti.conf)", &RankInfo::knobs},
                                   {"tuning tables", &RankInfo::tables},
                                   {"communicator options", &RankInfo::options}};

Status compare(const std::vector<RankInfo>& infos) {
  for (const Compared& compared : kMustAgree) {
    for (std::size_t r = 1; r < infos.size(); ++r) {
      const auto first = infos[0].*compared.value, other = infos[r].*compared.value;
      if (first == other) continue;
      return {StatusCode::kMismatch, fmt::format("ranks 0 and {} differ in their {}: {:x} and {:x}",
                                                 r, compared.what, first, other)};
    }
  }
  return Status::ok();
}

int nvlinks_of(NvmlDriver* nvml, const std::string& pci_bus_id) {
  if (nvml == nullptr) return 0;
  const auto gpus = nvml->gpus();
  if (!gpus.is_ok()) return 0;
  const auto found = std::find_if(gpus->begin(), gpus->end(),
                                  [&](const NvmlGpu& gpu) { return gpu.pci_bus_id == pci_bus_id; });
  return found == gpus->end() ? 0 : found->nvlinks;
}

RankInfo describe(const CommunicatorOptions& options, const Machinery& machinery, int device,
                  const PeerIdentity& identity, const TuningTable& table) {
  RankInfo info;
  info.knobs = Knobs::process().hash();
  info.tables = table.hash();
  info.options = Hash()
                     .add(static_cast<std::uint64_t>(options.backend))
                     .add(static_cast<std::uint64_t>(options.deterministic))
                     .add(static_cast<std::uint64_t>(options.timeout.count()))
                     .value();
  const auto random = random_digest();
  info.group = random.is_ok() ? first_word(*random) : identity.process_token;
  info.host = identity.host_id;
  info.process = identity.process_token;
  info.backend = static_cast<std::int32_t>(options.backend);
  info.has_nccl = machinery.nccl != nullptr;
  if (machinery.nccl != nullptr) info.nccl_version = machinery.nccl->version_number();
  if (machinery.cuda == nullptr || options.backend == Backend::kHost || device < 0) return info;
  const auto gpu = machinery.cuda->properties(device);
  if (!gpu.is_ok()) return info;
  info.has_gpu = 1;
  info.compute = gpu->compute_major * 10 + gpu->compute_minor;
  info.multiprocessors = gpu->multiprocessors;
  info.multicast = gpu->multicast && machinery.multicast != nullptr;
  info.nvlinks = nvlinks_of(machinery.nvml, gpu->pci_bus_id);
  std::memcpy(info.uuid, gpu->uuid.data(), sizeof info.uuid);
  gpu->name.copy(info.name, sizeof info.name - 1);
  return info;
}

bool on_one_gpu(const RankInfo& a, const RankInfo& b) {
  return a.host == b.host && std::memcmp(a.uuid, b.uuid, sizeof a.uuid) == 0;
}

// Why the ranks cannot run on GPUs; empty if they can.
std::string why_not_cuda(const std::vector<RankInfo>& infos) {
  const bool may_share = Knobs::process().flag("TUTTI_SHARE_GPUS");
  for (std::size_t r = 0; r < infos.size(); ++r) {
    if (infos[r].has_gpu == 0) {
      std::string why;
      if (real_cuda(&why) != nullptr) why = "no usable GPU";
      return fmt::format("rank {} has no GPU ({})", r, why);
    }
    for (std::size_t other = 0; other < r && !may_share; ++other) {
      if (on_one_gpu(infos[r], infos[other])) {
        return fmt::format("ranks {} and {} share one GPU (TUTTI_SHARE_GPUS=1 allows it)", other,
                           r);
      }
    }
  }
  return {};
}

template <class Key>
int distinct(const std::vector<RankInfo>& infos, Key key) {
  std::vector<std::uint64_t> values;
  values.reserve(infos.size());
  for (const RankInfo& info : infos) values.push_back(key(info));
  std::sort(values.begin(), values.end());
  return static_cast<int>(std::unique(values.begin(), values.end()) - values.begin());
}

Topology topology_of(const std::vector<RankInfo>& infos, Backend backend) {
  Topology topology;
  topology.backend = backend;
  topology.ranks = static_cast<int>(infos.size());
  topology.hosts = distinct(infos, [](const RankInfo& info) { return info.host; });
  topology.processes = distinct(infos, [](const RankInfo& info) { return info.process; });
  topology.one_process = topology.processes == 1;
  topology.peer_access = topology.hosts == 1;  // CUDA: until verified
  if (backend == Backend::kHost) return topology;
  topology.gpu = infos.front().name;
  topology.compute = infos.front().compute;
  topology.multiprocessors = infos.front().multiprocessors;
  topology.nvlinks = infos.front().nvlinks;
  topology.nccl = true;
  topology.nccl_version = infos.front().nccl_version;
  topology.multicast = topology.ranks > 1 && topology.hosts == 1;  // until objects are bound
  for (const RankInfo& info : infos) {
    if (topology.gpu != info.name) topology.gpu = "mixed";
    topology.compute = std::min(topology.compute, info.compute);
    topology.multiprocessors = std::min(topology.multiprocessors, info.multiprocessors);
    topology.nvlinks = std::min(topology.nvlinks, info.nvlinks);
    topology.nccl = topology.nccl && info.has_nccl != 0;
    topology.nccl_version = std::min<int>(topology.nccl_version, info.nccl_version);
    topology.multicast = topology.multicast && info.multicast != 0;
    const auto sharing = std::count_if(
        infos.begin(), infos.end(), [&](const RankInfo& other) { return on_one_gpu(info, other); });
    topology.ranks_per_gpu = std::max(topology.ranks_per_gpu, static_cast<int>(sharing));
  }
  // No table knows what such ranks take, NCCL refuses them, and no switch is between them.
  if (topology.ranks_per_gpu > 1) {
    topology.gpu += fmt::format(", {} ranks on one", topology.ranks_per_gpu);
    topology.nccl = topology.multicast = false;
  }
  return topology;
}

int device_for(const CommunicatorOptions& options, CudaDriver* cuda, int local_rank) {
  if (cuda == nullptr || options.backend == Backend::kHost) return -1;
  const auto count = cuda->device_count();
  if (!count.is_ok() || *count == 0) return -1;
  if (options.device >= 0) return options.device < *count ? options.device : -1;
  return local_rank % *count;
}

}  // namespace

std::chrono::milliseconds timeout_of(const CommunicatorOptions& options) {
  return options.timeout.count() > 0 ? limited(options.timeout)
                                     : Knobs::process().milliseconds("TUTTI_TIMEOUT_MS");
}

int most_ranks_in_process(Backend backend) {
  CudaDriver* const cuda = backend == Backend::kHost ? nullptr : real_cuda();
  if (cuda == nullptr) return kMaxRanks;
  const auto devices = cuda->device_count();
  return devices.is_ok() ? std::max(kMaxRanks, *devices) : kMaxRanks;
}

CommunicatorImpl::CommunicatorImpl(std::unique_ptr<Bootstrap> bootstrap,
                                   const CommunicatorOptions& options, const Machinery& machinery)
    : bootstrap_(std::make_unique<CountedBootstrap>(std::move(bootstrap), exchanges_)),
      options_(options),
      machinery_(machinery),
      timeout_(timeout_of(options)),
      device_(device_for(options, machinery.cuda, machinery.local_rank)),
      nccl_(machinery.nccl, machinery.cuda),
      windows_(NcclMover::kKernels, machinery.nccl, machinery.cuda),
      copies_(NcclMover::kCopyEngines, machinery.nccl, machinery.cuda) {
  windows_.session().keep_windows_for(nccl_graphs_);
  copies_.session().keep_windows_for(nccl_graphs_);
}

Result<std::unique_ptr<CommunicatorImpl>> CommunicatorImpl::create(
    std::unique_ptr<Bootstrap> bootstrap, const CommunicatorOptions& options,
    const Machinery& machinery) {
  set_log_rank(bootstrap->rank());
  std::unique_ptr<CommunicatorImpl> made(
      new CommunicatorImpl(std::move(bootstrap), options, machinery));
  TUTTI_TRY(made->agree());
  TUTTI_TRY(made->open_memory());
  made->named_windows_ = made->windows_that_are_named();
  TUTTI_TRY(made->bootstrap_->barrier(made->deadline()));
  log(LogLevel::kInfo, "communicator of {} ranks: {}", made->size(), to_text(made->topology_));
  return made;
}

Status CommunicatorImpl::agree() {
  const Knobs& knobs = Knobs::process();
  TUTTI_ASSIGN(TuningTable table, TuningTable::load(knobs.text("TUTTI_TUNING_FILE"),
                                                    knobs.text("TUTTI_TUNING_CACHE")));
  table_ = std::make_shared<const TuningTable>(std::move(table));

  const RankInfo mine =
      describe(options_, machinery_, device_,
               bootstrap_->identities()[static_cast<std::size_t>(rank())], *table_);
  TUTTI_ASSIGN(const auto answers, bootstrap_->all_gather(view_of(mine), deadline()));
  std::vector<RankInfo> infos;
  for (std::size_t r = 0; r < answers.size(); ++r) {
    if (answers[r].size() != sizeof(RankInfo)) {
      return {StatusCode::kMismatch, fmt::format("rank {} runs another version of tutti", r)};
    }
    infos.push_back(from_bytes<RankInfo>(answers[r]));
    infos.back().name[sizeof RankInfo::name - 1] = '\0';  // whatever has come, it is read as text
  }
  TUTTI_TRY(compare(infos));
  group_ = infos.front().group;

  const std::string why_not = why_not_cuda(infos);
  if (options_.backend == Backend::kCuda && !why_not.empty()) {
    return {StatusCode::kUnavailable, "backend cuda: " + why_not};
  }
  const bool cuda = options_.backend != Backend::kHost && why_not.empty();
  topology_ = topology_of(infos, cuda ? Backend::kCuda : Backend::kHost);
  if (!cuda) device_ = -1;
  return Status::ok();
}

// A group works without its recorder.
void CommunicatorImpl::open_recorder() {
  const Knobs& knobs = Knobs::process();
  if (!knobs.flag("TUTTI_RECORDER")) return;
  const std::string folder = knobs.path("TUTTI_TRACE_DIR");
  const RecordedRank mine{
      .group = group_,
      .rank = rank(),
      .ranks = size(),
      .host_id = bootstrap_->identities()[static_cast<std::size_t>(rank())].host_id,
      .backend = backend(),
      .device = device_};
  auto opened = FlightRecorder::open(mine, folder);
  if (!opened.is_ok() && !folder.empty()) {
    log_once(LogLevel::kWarn, fmt::format("TUTTI_TRACE_DIR: {}; nothing will be left there",
                                          opened.status().message()));
    opened = FlightRecorder::open(mine, {});
  }
  if (opened.is_ok()) {
    recorder_ = std::move(opened).value();
  } else {
    log_once(LogLevel::kWarn, fmt::format("`tutti status` will see nothing of this process: {}",
                                          opened.status().message()));
  }
}

Status CommunicatorImpl::open_memory() {
  open_recorder();
  const bool cuda = backend() == Backend::kCuda;
  layout_ = layout_from(Knobs::process(), cuda);
  constexpr int kLateBuffers = 4096;
  const EngineSizes sizes{
      .ranks = size(),
      .channels = layout_.channels(),
      .late_buffers = cuda ? kLateBuffers : 0,
      .timeout_ns = static_cast<std::uint64_t>(std::chrono::nanoseconds(timeout_.load()).count())};
  if (cuda) {
    TUTTI_ASSIGN(engine_, make_cuda_engine(*machinery_.cuda, device_, sizes));
  } else {
    engine_ = make_host_engine(sizes, machinery_.weakening, recorder_->waits_for());
  }
  failure_ = std::make_unique<FailureState>(*engine_->memory().failure, *engine_->memory().notices,
                                            recorder_.get());
  captures_ = std::make_unique<Captures>(layout_.capture_channels, kLateBuffers);
  bootstrap_->set_leave_handler(
      [this](int rank, const std::string& last) { failure_->hear_of_leaving(rank, last); });
  bootstrap_->set_failure_handler([this](const GroupFailure& failure) {
    failure_->hear(failure.rank, {failure.code, failure.text});
    engine_->poison();
  });
  if (cuda) watch(*this);
  return verify_peers();
}

// Symmetric memory, unless peers cannot reach it: then NCCL carries everything, or nothing does.
Status CommunicatorImpl::verify_peers() {
  const bool cuda = backend() == Backend::kCuda;
  Status reach;
  if (cuda && size() > kMaxCudaRanks) {
    reach =
        Status(StatusCode::kUnavailable, fmt::format("more than {} ranks on GPUs", kMaxCudaRanks));
  } else if (!cuda && size() > kMaxRanks) {
    return {StatusCode::kUnsupported,
            fmt::format("the host backend takes up to {} ranks", kMaxRanks)};
  } else {
    auto heap = cuda ? make_cuda_heap(*bootstrap_, *machinery_.cuda, device_)
                     : make_host_heap(*bootstrap_, real_shared_memory());
    reach = heap.status();
    if (heap.is_ok()) {
      heap_ = std::move(heap).value();
      heap_->on_unmap([this](const std::byte* local) {
        windows_.let_go(local);
        copies_.let_go(local);
      });
      auto own = allocate_counted(layout_.bytes());
      reach = own.status();
      if (own.is_ok()) own_ = std::move(own).value();
    }
    if (reach.is_ok() && cuda && size() > 1 && Knobs::process().flag("TUTTI_P2P_VERIFY")) {
      TUTTI_ASSIGN(const auto scratch, allocate_counted(64 * KiB));
      reach = verify_peer_access(*bootstrap_, *machinery_.cuda, *scratch, deadline());
    }
  }
  topology_.peer_access = reach.is_ok();
  topology_.multicast = topology_.multicast && reach.is_ok() && bootstrap_->passes_descriptors();
  if (topology_.multicast) {
    TUTTI_TRY(bind_to_one_address(*own_));
    topology_.multicast = own_->multicast != nullptr;
  }
  if (reach.is_ok()) return Status::ok();
  own_.reset();
  heap_.reset();
  if (!cuda || !topology_.nccl) {
    return reach.with_context(
        cuda ? "peers cannot reach each other's memory, and NCCL is not loadable" : "host backend");
  }
  log_once(LogLevel::kWarn, fmt::format("every operation goes to NCCL: {}", reach.message()));
  return prepare_nccl_locked();
}

}  // namespace tutti
