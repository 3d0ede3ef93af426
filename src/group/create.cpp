// How a communicator comes to be: the ranks compare what must agree, choose the backend, open their
// memory and prove that peers really reach it.
#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "base/guard.hpp"
#include "base/hash.hpp"
#include "base/knobs.hpp"
#include "base/log.hpp"
#include "base/try.hpp"
#include "bootstrap/agree.hpp"
#include "bootstrap/counted_bootstrap.hpp"
#include "bootstrap/identity.hpp"
#include "drivers/cuda.hpp"
#include "drivers/nccl.hpp"
#include "drivers/network.hpp"
#include "drivers/nvml.hpp"
#include "drivers/shared_memory.hpp"
#include "executors/make.hpp"
#include "group/agreement.hpp"
#include "group/communicator_impl.hpp"
#include "group/watchdog.hpp"
#include "topology/host.hpp"
#include "topology/nodes.hpp"
#include "tutti/version.hpp"

namespace tutti {
namespace {

// What each rank tells the others first. Fixed size, no pointers.
struct RankInfo {
  std::uint64_t version = TUTTI_VERSION;
  std::uint64_t knobs = 0, tables = 0;
  std::uint64_t options = 0;
  std::uint64_t host = 0, process = 0, node = 0;
  std::uint64_t cores = 0;
  std::uint64_t group = 0;   // random: rank 0's names the group
  std::int32_t backend = 0;  // what was asked for
  std::int32_t has_gpu = 0, has_nccl = 0, nccl_version = 0;
  std::int32_t compute = 0, multiprocessors = 0, nvlinks = 0, multicast = 0;
  std::uint8_t uuid[16] = {};
  char name[64] = {};
};

bool agree_on_settings(const RankInfo& a, const RankInfo& b) {
  return a.knobs == b.knobs && a.tables == b.tables && a.options == b.options;
}

// The rest of what a rank of another version sends is not believed, but it begins like this.
std::string version_of(ByteView info) {
  if (info.size() < sizeof(std::uint64_t)) return "of unknown version";
  return version_text(from_bytes<std::uint64_t>(info.first(sizeof(std::uint64_t))));
}

Status compare_versions(const std::vector<Bytes>& answers, const RankNames& names) {
  const std::string first = version_of(answers[0]);
  for (std::size_t r = 1; r < answers.size(); ++r) {
    const std::string other = version_of(answers[r]);
    if (other == first && answers[r].size() == answers[0].size()) continue;
    const char* const build = other == first ? "another build of " : "";
    return {StatusCode::kMismatch,
            fmt::format("{} runs {}tutti {}, {} runs tutti {}: install the same for all ranks",
                        names.of(r), build, other, names.of(0), first)};
  }
  return Status::ok();
}

Result<std::vector<RankInfo>> read_infos(const std::vector<Bytes>& answers,
                                         const RankNames& names) {
  TUTTI_TRY(compare_versions(answers, names));
  std::vector<RankInfo> infos;
  for (std::size_t r = 0; r < answers.size(); ++r) {
    if (answers[r].size() != sizeof(RankInfo)) {
      return Status(StatusCode::kMismatch,
                    fmt::format("{} runs another build of tutti", names.of(r)));
    }
    infos.push_back(from_bytes<RankInfo>(answers[r]));
    infos.back().name[sizeof RankInfo::name - 1] = '\0';  // whatever has come, it is read as text
  }
  return infos;
}

int nvlinks_of(NvmlDriver* nvml, const std::string& pci_bus_id) {
  if (nvml == nullptr) return 0;
  const auto gpus = nvml->gpus();
  if (!gpus.is_ok()) return 0;
  const auto found = std::find_if(gpus->begin(), gpus->end(),
                                  [&](const NvmlGpu& gpu) { return gpu.pci_bus_id == pci_bus_id; });
  return found == gpus->end() ? 0 : found->nvlinks;
}

RankInfo describe(const CommunicatorOptions& options, const Drivers& drivers, int device,
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
  info.cores = static_cast<std::uint64_t>(cores_of_host());
  info.has_nccl = drivers.nccl != nullptr;
  if (drivers.nccl != nullptr) info.nccl_version = drivers.nccl->version_number();
  if (drivers.cuda == nullptr || options.backend == Backend::kHost || device < 0) return info;
  const auto gpu = drivers.cuda->properties(device);
  if (!gpu.is_ok()) return info;
  info.has_gpu = 1;
  info.compute = gpu->compute_major * 10 + gpu->compute_minor;
  info.multiprocessors = gpu->multiprocessors;
  info.multicast = gpu->multicast && drivers.multicast != nullptr;
  info.nvlinks = nvlinks_of(drivers.nvml, gpu->pci_bus_id);
  std::memcpy(info.uuid, gpu->uuid.data(), sizeof info.uuid);
  gpu->name.copy(info.name, sizeof info.name - 1);
  return info;
}

bool on_one_gpu(const RankInfo& a, const RankInfo& b) {
  return a.host == b.host && std::memcmp(a.uuid, b.uuid, sizeof a.uuid) == 0;
}

// Why the ranks cannot run on GPUs; empty if they can. Why a rank has no GPU, that one alone knows.
std::string why_not_cuda(const std::vector<RankInfo>& infos, const RankNames& names,
                         std::size_t own) {
  const bool may_share = Knobs::process().flag("TUTTI_SHARE_GPUS");
  for (std::size_t r = 0; r < infos.size(); ++r) {
    if (infos[r].has_gpu == 0) {
      const std::string text = fmt::format("{} has no GPU", names.of(r));
      std::string why;
      if (r != own) return text;
      if (real_cuda(&why) != nullptr) why = "no usable GPU";
      return fmt::format("{} ({})", text, why);
    }
    for (std::size_t other = 0; other < r && !may_share; ++other) {
      if (on_one_gpu(infos[r], infos[other])) {
        return fmt::format("{} share one GPU (TUTTI_SHARE_GPUS=1 allows it)",
                           names.of({static_cast<int>(other), static_cast<int>(r)}));
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
  std::vector<std::uint64_t> nodes;
  nodes.reserve(infos.size());
  for (const RankInfo& info : infos) nodes.push_back(info.node);
  topology.node_of = number_nodes(nodes);
  topology.within_nodes = peer_ways(backend);  // CUDA: until verified
  if (backend == Backend::kHost) {
    topology.cores = static_cast<int>(std::ranges::min(infos, {}, &RankInfo::cores).cores);
    return topology;
  }
  topology.gpu = infos.front().name;
  topology.compute = infos.front().compute;
  topology.multiprocessors = infos.front().multiprocessors;
  topology.nvlinks = infos.front().nvlinks;
  topology.nccl = true;
  topology.nccl_version = infos.front().nccl_version;
  topology.multicast = topology.ranks > 1 && topology.nodes() == 1;  // until objects are bound
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

Result<std::uint64_t> node_of_rank(std::uint64_t host, int rank, int ranks) {
  TUTTI_ASSIGN(const NodeLayout layout, parse_node_layout(Knobs::process().text("TUTTI_TOPOLOGY")));
  return node_key(layout, host, rank, ranks);
}

// Why the ranks cannot have symmetric memory, as all of them know before they try; empty if they
// may have it. GPUs of several hosts may share an NVLink fabric.
std::string why_no_memory(const Topology& topology) {
  const bool cuda = topology.backend == Backend::kCuda;
  const int nodes = topology.nodes(), most = cuda ? kMaxCudaRanks : kMaxRanks;
  if (nodes > 1 && (!cuda || nodes > topology.hosts)) {
    return fmt::format("ranks are on {} nodes", nodes);
  }
  if (topology.ranks <= most) return {};
  return fmt::format("{} ranks, and at most {} share memory", topology.ranks, most);
}

// What has been found out about GPUs; memory of the host needs no proof.
void record_reach(Topology& topology, bool is_verified, const RankPairs& lost) {
  if (topology.backend == Backend::kHost) return;
  if (!is_verified && lost.empty()) topology.within_nodes = Reach::kNone;
  if (is_verified && topology.nodes() > 1) topology.between_nodes = topology.within_nodes;
  for (const auto& [from, to] : lost) topology.limited.push_back({from, to, Reach::kNone});
}

int device_for(const CommunicatorOptions& options, CudaDriver* cuda, int local_rank) {
  if (cuda == nullptr || options.backend == Backend::kHost) return -1;
  const auto count = cuda->device_count();
  if (!count.is_ok() || *count == 0) return -1;
  if (options.device >= 0) return options.device < *count ? options.device : -1;
  return local_rank % *count;
}

}  // namespace

Timeout timeout_of(const CommunicatorOptions& options) {
  if (options.timeout.count() > 0) return {limited(options.timeout), TimeoutSource::kCreation};
  constexpr const char* kSetting = "TUTTI_TIMEOUT_MS";
  const Knobs& knobs = Knobs::process();
  return {knobs.milliseconds(kSetting), knobs.source(kSetting) == KnobSource::kDefault
                                            ? TimeoutSource::kDefault
                                            : TimeoutSource::kSetting};
}

CommunicatorImpl::CommunicatorImpl(std::unique_ptr<Bootstrap> bootstrap,
                                   const CommunicatorOptions& options, const Drivers& drivers)
    : bootstrap_(std::make_unique<CountedBootstrap>(std::move(bootstrap), exchanges_)),
      options_(options),
      drivers_(drivers),
      timeout_(tutti::timeout_of(options).value),
      device_(device_for(options, drivers.cuda, drivers.local_rank)) {}

Result<std::unique_ptr<CommunicatorImpl>> CommunicatorImpl::create(
    std::unique_ptr<Bootstrap> bootstrap, const CommunicatorOptions& options,
    const Drivers& drivers, std::optional<std::uint64_t> node,
    std::shared_ptr<const TuningTable> table) {
  set_log_rank(bootstrap->names().world(bootstrap->rank()));
  std::unique_ptr<CommunicatorImpl> made(
      new CommunicatorImpl(std::move(bootstrap), options, drivers));
  made->node_ = node;
  made->table_ = std::move(table);
  const Status opened = guarded_by([&] { return made->open(); },
                                   [&](const Status& cause) { return made->of_this_rank(cause); });
  if (!opened.is_ok()) {
    // Others may wait for a step that this rank does not come to: so they end, with the same text.
    made->bootstrap_->announce_failure({made->rank(), opened.code(), opened.message()});
    return opened;
  }
  log(LogLevel::kInfo, "communicator of {} ranks: {}", made->size(), to_text(made->topology_));
  return made;
}

Status CommunicatorImpl::open() {
  TUTTI_TRY(agree());
  TUTTI_TRY(open_memory());
  TUTTI_TRY(bootstrap_->barrier(deadline()));
  bootstrap_->found();
  return Status::ok();
}

Status CommunicatorImpl::of_this_rank(const Status& status) const {
  return status.with_context(bootstrap_->names().of(rank()));
}

Status CommunicatorImpl::agree() {
  if (table_ == nullptr) {
    const Knobs& knobs = Knobs::process();
    auto table =
        TuningTable::load(knobs.text("TUTTI_TUNING_FILE"), knobs.text("TUTTI_TUNING_CACHE"));
    TUTTI_TRY(of_this_rank(table.status()));
    table_ = std::make_shared<const TuningTable>(std::move(table).value());
  }

  const PeerIdentity& identity = bootstrap_->identities()[static_cast<std::size_t>(rank())];
  RankInfo mine = describe(options_, drivers_, device_, identity, *table_);
  if (!node_) {
    const auto node = node_of_rank(identity.host_id, rank(), size());
    TUTTI_TRY(of_this_rank(node.status()));
    node_ = *node;
  }
  mine.node = *node_;
  TUTTI_ASSIGN(const auto answers, bootstrap_->all_gather(view_of(mine), deadline()));
  const RankNames names = bootstrap_->names();
  TUTTI_ASSIGN(const std::vector<RankInfo> infos, read_infos(answers, names));
  const bool alike = std::all_of(infos.begin(), infos.end(), [&](const RankInfo& info) {
    return agree_on_settings(info, infos.front());
  });
  if (!alike) return name_differences();
  group_ = infos.front().group;

  const std::string why_not = why_not_cuda(infos, names, static_cast<std::size_t>(rank()));
  if (options_.backend == Backend::kCuda && !why_not.empty()) {
    return {StatusCode::kUnavailable, "backend cuda: " + why_not};
  }
  const bool cuda = options_.backend != Backend::kHost && why_not.empty();
  topology_ = topology_of(infos, cuda ? Backend::kCuda : Backend::kHost);
  if (!cuda) device_ = -1;
  return topology_.nodes() > 1 ? agree_on_network() : Status::ok();
}

// Whether every rank can send messages. Only asked for between nodes: a library is loaded for it.
Status CommunicatorImpl::agree_on_network() {
  const Status usable = drivers_.network == nullptr
                            ? Status(StatusCode::kUnavailable, "this process may use none")
                            : drivers_.network->usable(topology_.hosts == 1);
  const Status answer = tutti::agree(*bootstrap_, usable, deadline());
  topology_.network = answer.is_ok();
  if (answer.code() != StatusCode::kUnavailable) return answer;
  topology_.why_no_network = answer.message();
  return Status::ok();
}

// All ranks have seen that hashes differ, so all take part in the exchange of what they are of.
Status CommunicatorImpl::name_differences() {
  const RankNames names = bootstrap_->names();
  const Bytes mine = encode(agreed_values(Knobs::process(), *table_, options_));
  TUTTI_ASSIGN(const auto answers, bootstrap_->all_gather(mine, deadline()));
  std::vector<std::vector<AgreedValue>> values;
  for (std::size_t r = 0; r < answers.size(); ++r) {
    auto decoded = decode_agreed_values(answers[r]);
    TUTTI_TRY(decoded.status().with_context(names.of(r)));
    values.push_back(std::move(decoded).value());
  }
  const std::string found = differences(values, names);
  return {StatusCode::kMismatch,
          fmt::format("ranks have different settings: {}; give all the same TUTTI_* variables, "
                      "tutti.conf, tuning tables and communicator options",
                      found.empty() ? "only their hashes tell" : found)};
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
      .ranks_here = ranks_of_host(bootstrap_->identities(), rank()),
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
  if (cuda) {
    auto streams = make_cuda_streams(*drivers_.cuda, device_);
    TUTTI_TRY(of_this_rank(streams.status()));
    streams_ = std::move(streams).value();
  } else {
    streams_ = make_host_streams();
  }
  auto executors = make_executors(*this, {.nccl = drivers_.nccl,
                                          .network = drivers_.network,
                                          .table = *table_,
                                          .tune = settings_.tune,
                                          .deterministic = options_.deterministic,
                                          .mutation = drivers_.weakening,
                                          .waits_for = recorder_->waits_for()});
  TUTTI_TRY(of_this_rank(executors.status()));
  executors_ = std::move(executors->all);
  peers_ = executors->peers;
  RankNames names = bootstrap_->names();
  names.found();  // operations come once it is
  const PeerServices::Words words = peers_->words();
  failure_ = std::make_unique<FailureState>(*words.record, *words.notices, recorder_.get(),
                                            std::move(names));
  failure_->set_timeout(tutti::timeout_of(options_));
  bootstrap_->set_leave_handler(
      [this](int rank, const std::string& last) { failure_->hear_of_leaving(rank, last); });
  bootstrap_->set_failure_handler([this](const GroupFailure& failure) { hear(failure); });
  TUTTI_TRY(open_peer_pages());
  if (cuda || peer_pages_ != nullptr) TUTTI_TRY(of_this_rank(watch(*this)));
  return verify_peers();
}

// Ranks of several hosts have no operations that are compared by pages.
Status CommunicatorImpl::open_peer_pages() {
  if (size() == 1 || !bootstrap_->passes_descriptors()) return Status::ok();
  // A rank without a recorder takes part: others may have one.
  TUTTI_ASSIGN(auto pages, PeerPages::open(*bootstrap_, *recorder_, deadline()));
  if (recorder_->page() != nullptr) peer_pages_ = std::move(pages);
  return Status::ok();
}

Status CommunicatorImpl::give_memory_to_peers() {
  ++allocations_;
  TUTTI_ASSIGN(auto own, heap_->allocate_small(peers_->memory_bytes(), deadline()));
  peers_->take_memory(own);
  own_.push_back(std::move(own));
  return Status::ok();
}

// Symmetric memory, unless peers cannot reach it: then NCCL carries everything, or nothing does.
Status CommunicatorImpl::verify_peers() {
  const bool cuda = backend() == Backend::kCuda;
  why_no_heap_ = why_no_memory(topology_);
  const bool tried = why_no_heap_.empty();
  RankPairs lost;
  const Status reach = tried ? open_heap(lost) : Status(StatusCode::kUnavailable, why_no_heap_);
  record_reach(topology_, reach.is_ok(), lost);
  topology_.multicast = topology_.multicast && reach.is_ok() && bootstrap_->passes_descriptors();
  if (reach.is_ok()) return prepare_early();
  own_.clear();
  peers_->take_memory(nullptr);
  heap_.reset();
  if (reach.code() == StatusCode::kResourceExhausted) return reach;
  why_no_heap_ = reach.message();
  if (cuda && topology_.nccl) {
    warn(fmt::format("every operation goes to NCCL: {}", reach.message()));
    return executor_named(kNcclExecutor)->prepare_all(kNeedsNothing);
  }
  // Such a group may be split: its first operation says what it lacks.
  const bool is_apart = reach.code() == StatusCode::kUnavailable && topology_.nodes() > 1;
  if (!tried || is_apart) {
    log(LogLevel::kInfo, "no symmetric memory: {}", why_no_heap_);
    return Status::ok();
  }
  return reach.with_context(
      cuda ? "peers cannot reach each other's memory, and NCCL is not loadable" : "host backend");
}

// What the first operation would make otherwise. Whether ranks can have the switch's addresses is
// seen by that memory.
Status CommunicatorImpl::prepare_early() {
  if (!topology_.multicast && !Knobs::process().flag("TUTTI_PREPARE")) return Status::ok();
  TUTTI_ASSIGN(const OwnMemory own, own_memory());
  topology_.multicast = own.segment != nullptr && own.segment->multicast != nullptr;
  return Status::ok();
}

Status CommunicatorImpl::open_heap(RankPairs& lost) {
  const bool cuda = backend() == Backend::kCuda;
  TUTTI_ASSIGN(heap_, cuda ? make_cuda_heap(*bootstrap_, *drivers_.cuda, device_)
                           : make_host_heap(*bootstrap_, real_shared_memory()));
  heap_->on_unmap([this](const std::byte* local) {
    for (const auto& executor : executors_) executor->remove_segment(local);
  });
  TUTTI_TRY(give_memory_to_peers());
  if (!cuda || size() == 1 || !Knobs::process().flag("TUTTI_P2P_VERIFY")) return Status::ok();
  // By words that nobody uses yet.
  return verify_peer_access(*bootstrap_, *drivers_.cuda, *own_.front(), deadline(), &lost);
}

}  // namespace tutti
