#include "bench/all_gather_matmul/arms.hpp"

#include <fmt/core.h>

#include "base/try.hpp"
#include "base/units.hpp"
#include "bench/all_gather_matmul/bits.hpp"
#include "matmul/select.hpp"

namespace tutti::cli {
namespace {

// A wait may take so much longer than the trace.
constexpr std::uint64_t kPatienceNs = 2'000'000'000;
// A flag of four such bytes is open for every epoch of a sample.
constexpr int kOpenByte = 0x3f;

Result<CheckedMatmul> checked_call(const MatmulSets& sets, std::size_t set) {
  const MatmulSetting& setting = sets.setting();
  const auto& [m, n, k] = setting.extents;
  return check({.a = sets.a(set),
                .b = sets.b(set, 0),
                .c = sets.c(set, 0),
                .m = m,
                .n = n,
                .k = k,
                .dtype = setting.dtype,
                .b_layout = setting.layout,
                .backend = Backend::kCuda});
}

Result<MatmulTiling> tiling_of(const MatmulProblem& problem, const std::string& tile,
                               int multiprocessors) {
  if (tile.empty()) return fastest_tile(problem, multiprocessors).tiling;
  TUTTI_ASSIGN(const ForcedMatmul forced, parse({.algorithm = {}, .tile = tile}));
  return forecast(*forced.tile, problem, multiprocessors).tiling;
}

std::string pieces_text(const ArrivalPlan& plan) {
  if (plan.k_groups == 1) return fmt::format("{} x {} chunks", plan.shards, plan.chunks);
  return fmt::format("{} x {} chunks of {} k-groups, {} groups of shards", plan.shards, plan.chunks,
                     plan.k_groups, groups_of(plan).groups);
}

std::string gated_config(const GatedSetting& setting, ArrivalOrder order) {
  const ArrivalPlan& plan = setting.call.plan;
  return fmt::format("{}, {} order, {}, {}",
                     config_text(setting.call.tiling, setting.call.problem.m), to_string(order),
                     pieces_text(plan),
                     setting.from_host     ? "copied"
                     : setting.trace       ? "replayed"
                     : setting.pullers > 0 ? "pulled"
                                           : "open");
}

// The flags of one arm on the device, and what its waits leave there.
class ArmFlags {
 public:
  static Result<std::shared_ptr<ArmFlags>> make(MatmulDevice& device, const GatedSetting& setting) {
    auto flags = std::make_shared<ArmFlags>();
    const ArrivalPlan& plan = setting.call.plan;
    flags->bytes_ = static_cast<std::size_t>(plan.flags()) * sizeof(std::uint32_t);
    TUTTI_ASSIGN(flags->flags_, device.allocate(flags->bytes_ + sizeof(std::uint32_t)));
    TUTTI_ASSIGN(flags->counters_, device.allocate(flags->bytes_));
    TUTTI_TRY(device.fill(flags->counters_.get(), 0, flags->bytes_));
    TUTTI_ASSIGN(flags->failure_, device.allocate(sizeof(GateFailure)));
    const GateFailure none;
    TUTTI_TRY(device.copy(flags->failure_.get(), &none, sizeof none));
    flags->closed_ = setting.from_host || setting.pullers > 0;
    if (!setting.trace) return flags;
    const std::vector<ReplayedArrival> replay = replay_of(*setting.trace);
    flags->timeout_ns_ += replay.empty() ? 0 : replay.back().ns;
    flags->closed_ = true;
    flags->replayed_ = static_cast<int>(replay.size());
    if (replay.empty()) return flags;
    const std::size_t bytes = replay.size() * sizeof(ReplayedArrival);
    TUTTI_ASSIGN(flags->replay_, device.allocate(bytes));
    TUTTI_TRY(device.copy(flags->replay_.get(), replay.data(), bytes));
    return flags;
  }

  // Before the first of a row of operations.
  Status begin(CudaDriver& cuda, Stream stream) {
    epoch_ = 0;
    TUTTI_TRY(cuda.set_async(flags_.get() + bytes_, kOpenByte, sizeof(std::uint32_t), stream));
    return cuda.set_async(flags_.get(), closed_ ? 0 : kOpenByte, bytes_, stream);
  }

  // Of the next operation. What the last one opened is closed for it.
  Arrival next() {
    return {.flags = reinterpret_cast<std::uint32_t*>(flags_.get()),
            .epoch = ++epoch_,
            .timeout_ns = timeout_ns_,
            .failure = reinterpret_cast<GateFailure*>(failure_.get()),
            .replay = reinterpret_cast<const ReplayedArrival*>(replay_.get()),
            .replayed = replayed_,
            .pull = {.counters = reinterpret_cast<std::uint32_t*>(counters_.get())}};
  }

  Status told(MatmulDevice& device, const ArrivalPlan& plan) const {
    GateFailure failure;
    TUTTI_TRY(device.copy(&failure, failure_.get(), sizeof failure));
    if (failure.failed == 0) return Status::ok();
    return {
        StatusCode::kTimeout,
        fmt::format("a tile waited in vain for {} {} of shard {}: its flag is {}, not {}",
                    plan.k_groups == 1 ? "chunk" : "k-group", failure.chunk % plan.flags_of_shard(),
                    failure.chunk / plan.flags_of_shard(), failure.seen, failure.epoch)};
  }

 private:
  std::shared_ptr<std::byte> flags_, failure_, replay_, counters_;
  std::size_t bytes_ = 0;
  std::uint64_t timeout_ns_ = kPatienceNs;
  std::uint32_t epoch_ = 0;
  int replayed_ = 0;
  bool closed_ = false;
};

// A of each set once more, from where pullers bring it.
class PulledFrom {
 public:
  static Result<std::shared_ptr<PulledFrom>> make(MatmulDevice& device, const MatmulSets& sets) {
    auto from = std::make_shared<PulledFrom>();
    const auto& [m, n, k] = sets.setting().extents;
    from->row_bytes_ = k * size_of(sets.setting().dtype);
    from->set_bytes_ = round_up(m * from->row_bytes_, 256);
    TUTTI_ASSIGN(from->memory_, device.allocate(sets.size() * from->set_bytes_));
    for (std::size_t set = 0; set < sets.size(); ++set) {
      TUTTI_TRY(device.copy(from->memory_.get() + set * from->set_bytes_, sets.a(set),
                            m * from->row_bytes_));
    }
    return from;
  }

  void fill(const GatedCall& call, const MatmulSets& sets, std::size_t set,
            PulledArrival& pull) const {
    pull.lda = call.problem.k;
    pull.to = const_cast<std::byte*>(sets.a(set));
    const int flags = call.plan.flags_of_shard();
    for (int shard = 0; shard < call.plan.shards; ++shard) {
      const std::size_t first = rows_of_chunk(call.plan, call.problem.m, shard * flags).first;
      pull.shard[shard] = memory_.get() + set * set_bytes_ + first * row_bytes_;
    }
  }

 private:
  std::shared_ptr<std::byte> memory_;
  std::size_t row_bytes_ = 0, set_bytes_ = 0;
};

class GatedArmMaker {
 public:
  // `host`: null where nothing is copied.
  GatedArmMaker(const GatedPlace& place, const GatedSetting& setting, const MatmulSets& sets,
                std::shared_ptr<HostArrival> host)
      : place_(place), setting_(setting), sets_(sets), host_(std::move(host)) {}

  // The copies alone.
  Result<MatmulArm> arrival() const {
    TUTTI_ASSIGN(const auto flags, ArmFlags::make(place_.device, setting_));
    const ArrivalPlan& plan = setting_.call.plan;
    MatmulArm arm{.algorithm = std::string(kArrivalAloneRow),
                  .config = fmt::format("{} x {} chunks", plan.shards, plan.chunks),
                  .multiplies = false};
    arm.begin = [flags, &cuda = place_.cuda](Stream stream) { return flags->begin(cuda, stream); };
    arm.run = [flags, host = host_](std::size_t, Stream stream) -> Status {
      const Arrival arrival = flags->next();
      TUTTI_TRY(host->begin(arrival.flags, arrival.epoch, stream));
      return host->end(stream);
    };
    return arm;
  }

  // Has flags, too, which it does not read: so what sets them takes the same time everywhere.
  Result<MatmulArm> own() const {
    const GatedCall& call = setting_.alone;
    TUTTI_TRY(place_.kernels.load_own(place_.cuda, call.problem, call.tiling));
    TUTTI_ASSIGN(const auto flags, ArmFlags::make(place_.device, setting_));
    MatmulArm arm = named(kOwnAloneRow, config_text(call.tiling, call.problem.m));
    arm.begin = [flags, &cuda = place_.cuda](Stream stream) { return flags->begin(cuda, stream); };
    arm.run = [this_sets = &sets_, call, &place = place_](std::size_t set,
                                                          Stream stream) -> Status {
      TUTTI_ASSIGN(const CheckedMatmul checked, checked_call(*this_sets, set));
      return place.kernels.run_own(place.cuda, checked, call.tiling, call.multiprocessors, stream);
    };
    return arm;
  }

  struct Gated {
    MatmulArm arm;
    std::function<Status()> told;  // of its waits
  };
  Result<Gated> gated(ArrivalOrder order) const {
    GatedCall call = setting_.call;
    call.plan.order = order;
    TUTTI_TRY(place_.kernels.load_gated(place_.cuda, call.problem, call.tiling));
    TUTTI_ASSIGN(const auto flags, ArmFlags::make(place_.device, setting_));
    std::shared_ptr<const PulledFrom> from;
    if (setting_.pullers > 0) {
      TUTTI_ASSIGN(from, PulledFrom::make(place_.device, sets_));
    }
    Gated made{.arm = named(row_of_order(order), gated_config(setting_, order)), .told = {}};
    made.arm.begin = [flags, &cuda = place_.cuda](Stream stream) {
      return flags->begin(cuda, stream);
    };
    made.arm.run = [this_sets = &sets_, call, flags, from, host = host_, pullers = setting_.pullers,
                    &place = place_](std::size_t set, Stream stream) -> Status {
      TUTTI_ASSIGN(CheckedMatmul checked, checked_call(*this_sets, set));
      Arrival arrival = flags->next();
      arrival.plan = call.plan;
      arrival.pull.pullers = pullers;
      if (from != nullptr) from->fill(call, *this_sets, set, arrival.pull);
      const ChunkRows own =
          rows_of_chunk(call.plan, call.problem.m, call.plan.own * call.plan.flags_of_shard());
      arrival.own_lda = call.problem.k;
      if (own.count() > 0) {
        arrival.own_a =
            this_sets->a(set) + own.first * call.problem.k * size_of(call.problem.dtype);
      }
      if (host != nullptr) {  // copies first: the kernel leaves no SM, and waits for them
        checked.a = host->a();
        TUTTI_TRY(host->begin(arrival.flags, arrival.epoch, stream));
      }
      TUTTI_TRY(place.kernels.run_gated(place.cuda, {checked, call.tiling, arrival},
                                        call.multiprocessors + pullers, stream));
      return host == nullptr ? Status::ok() : host->end(stream);
    };
    made.told = [flags, &device = place_.device, plan = call.plan, name = made.arm.algorithm] {
      const Status status = flags->told(device, plan);
      return status.is_ok() ? status : status.with_context(name);
    };
    return made;
  }

 private:
  MatmulArm named(std::string_view algorithm, std::string config) const {
    const GatedCall& call = algorithm == kOwnAloneRow ? setting_.alone : setting_.call;
    const MatmulForecast cast = forecast(*call.tiling.tile, call.problem, call.multiprocessors);
    return {.algorithm = std::string(algorithm),
            .tile = setting_.tile,
            .config = std::move(config),
            .fill = cast.fill};
  }

  const GatedPlace& place_;
  const GatedSetting& setting_;
  const MatmulSets& sets_;
  std::shared_ptr<HostArrival> host_;
};

ArrivalModel model_of(const AllGatherMatmulOptions& options) {
  return options.pullers == 0 ? ArrivalModel() : pulled_arrival_model(options.pullers);
}

Result<std::optional<ArrivalTrace>> trace_of(const AllGatherMatmulOptions& options,
                                             const GatedCall& call) {
  if (options.arrival != ArrivalKind::kModel) return options.trace;
  const MatmulProblem& problem = call.problem;
  TUTTI_ASSIGN(ArrivalTrace trace,
               modelled_arrival(
                   call.plan, {.m = problem.m, .bytes_per_row = problem.k * size_of(problem.dtype)},
                   model_of(options),
                   options.pullers == 0 ? "one copy engine over NVLink"
                                        : fmt::format("{} pullers over NVLink", options.pullers)));
  return std::optional(std::move(trace));
}

}  // namespace

Result<GatedSetting> gated_setting(const GatedPlace& place, const AllGatherMatmulOptions& options,
                                   const MatmulSets& sets, const std::string& tile) {
  TUTTI_ASSIGN(const int device, place.cuda.current_device());
  TUTTI_ASSIGN(const CudaDeviceProperties properties, place.cuda.properties(device));
  TUTTI_ASSIGN(const CheckedMatmul checked, checked_call(sets, 0));
  const std::string why =
      why_not(MatmulAlgorithm::kOwn, checked.problem,
              {.backend = Backend::kCuda,
               .compute = 10 * properties.compute_major + properties.compute_minor,
               .multiprocessors = properties.multiprocessors,
               .own_kernels = place.kernels.own});
  if (!why.empty()) return Status(StatusCode::kUnsupported, "own_matmul: " + why);
  GatedSetting setting{.alone = {.problem = checked.problem,
                                 .tiling = {},
                                 .plan = {.shards = options.ranks,
                                          .chunks = options.chunks,
                                          .own = options.own,
                                          .k_groups = options.k_groups},
                                 .multiprocessors = properties.multiprocessors},
                       .call = {},
                       .orders = options.orders,
                       .trace = {},
                       .from_host = options.arrival == ArrivalKind::kHost,
                       .pullers = options.arrival == ArrivalKind::kPull ? options.pullers : 0,
                       .tile = tile};
  GatedCall &alone = setting.alone, &call = setting.call;
  TUTTI_ASSIGN(alone.tiling, tiling_of(alone.problem, tile, alone.multiprocessors));
  call = alone;
  call.multiprocessors -= options.pullers;
  if (call.multiprocessors < kMatmulCluster) {
    return Status(
        StatusCode::kInvalidArgument,
        fmt::format("--pullers {}: the GPU has {} SMs", options.pullers, alone.multiprocessors));
  }
  TUTTI_ASSIGN(call.tiling, tiling_of(call.problem, tile, call.multiprocessors));
  if (options.k_groups > 1) {
    TUTTI_ASSIGN(call, fastest_by_k_groups(call, model_of(options)));
  }
  if (options.trace) call.plan.shard_groups = options.trace->shard_groups;
  TUTTI_ASSIGN(setting.trace, trace_of(options, setting.call));
  return setting;
}

Result<MatmulArms> make_gated_arms(const GatedPlace& place, const GatedSetting& setting,
                                   const MatmulSets& sets) {
  MatmulArms arms;
  std::shared_ptr<HostArrival> host;
  if (setting.from_host) {
    TUTTI_ASSIGN(host, HostArrival::make(place.cuda, place.device, setting.call, sets));
    arms.poison = [host] { return host->poison(); };
  }
  const GatedArmMaker maker(place, setting, sets, host);
  TUTTI_ASSIGN(MatmulArm own, maker.own());
  arms.calls.push_back(own);
  if (host != nullptr) {
    TUTTI_ASSIGN(MatmulArm arrival, maker.arrival());
    arms.calls.push_back(std::move(arrival));
  }
  std::vector<std::function<Status()>> told;
  for (const ArrivalOrder order : setting.orders) {
    auto gated = maker.gated(order);
    if (!gated.is_ok()) {
      arms.skipped.push_back(
          {.algorithm = std::string(row_of_order(order)), .why = gated.status().message()});
      continue;
    }
    arms.calls.push_back(std::move(gated->arm));
    told.push_back(std::move(gated->told));
  }
  arms.calls.push_back(std::move(own));
  place.kernels.add_library(place.cuda, sets, arms);
  auto compare = std::make_shared<BitComparison>(place.device, sets);
  arms.compare = [compare](const MatmulArm& arm, std::size_t set) -> Result<Mismatches> {
    if (!arm.library.empty()) return Mismatches{};  // has bits of its own
    return (*compare)(set);
  };
  arms.ended = [told = std::move(told)] {
    for (const auto& each : told) TUTTI_TRY(each());
    return Status::ok();
  };
  return arms;
}

}  // namespace tutti::cli
