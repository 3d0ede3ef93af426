#include "tune/all_gather_matmul/worker.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <memory>
#include <utility>

#include "base/try.hpp"
#include "base/units.hpp"
#include "bench/matmul/device.hpp"
#include "bench/matmul/sets.hpp"
#include "bench/statistics.hpp"
#include "group/communicator_impl.hpp"
#include "pipelines/description.hpp"
#include "tune/agree.hpp"
#include "tune/all_gather_matmul/candidates.hpp"
#include "tune/all_gather_matmul/timer.hpp"

namespace tutti::cli {
namespace {

constexpr int kFirstRounds = 4;
constexpr std::size_t kFinalists = 4;   // besides unfused
constexpr std::size_t kMostCalls = 64;  // of a sample

// The matrices of one size. The shard and the gathered A are symmetric.
struct TunedMatrices {
  MatmulSets sets;
  SymmetricMemory shard, gathered;
};

class SizeTuner {
 public:
  SizeTuner(Communicator& communicator, const TuneAllGatherMatmulOptions& options,
            const Reporter& report, RankTimer& timer, std::size_t which)
      : communicator_(communicator),
        options_(options),
        report_(report),
        timer_(timer),
        which_(which),
        extents_(options.shapes[which]) {}

  Status run(MatmulDevice& device) {
    TUTTI_TRY(make_matrices(device));
    const auto ways = ways_to_measure(options_.algorithms, communicator_.backend(), options_.mover);
    for (const AllGatherMatmulWay& way : ways) TUTTI_TRY(add_candidate(way));
    TUTTI_TRY(check_unfused());
    TUTTI_TRY(choose_operations());
    TUTTI_TRY(measure(kFirstRounds));
    keep(finalists(measured(), kFinalists));
    TUTTI_TRY(measure(options_.bench.iterations));
    for (const auto& contender : contenders_) {  // again, after all that ran meanwhile
      TUTTI_ASSIGN(const bool right, is_right(*contender));
      if (!right) contender->call.samples_us.clear();
    }
    std::erase_if(contenders_, [](const auto& each) { return each->call.samples_us.empty(); });
    TUTTI_TRY(check_unfused());
    return report_(TunedAllGatherMatmul{which_, decide(measured())});
  }

 private:
  // All others are measured against it.
  Status check_unfused() const {
    if (!contenders_.empty() && contenders_.front()->way == AllGatherMatmulWay{}) {
      return Status::ok();
    }
    return {StatusCode::kInternal, "unfused gave no right result"};
  }

  struct Contender {
    AllGatherMatmulWay way;
    TimedCall call;
  };

  Status make_matrices(MatmulDevice& device) {
    const MatmulSetting setting{.extents = extents_,
                                .dtype = options_.bench.dtype,
                                .layout = options_.layout,
                                .check = options_.bench.check};
    TUTTI_ASSIGN(MatmulSets sets, MatmulSets::make(device, setting));
    const std::size_t row = extents_.k * size_of(options_.bench.dtype);
    const pipelines::Rows own =
        pipelines::shard_rows(extents_.m, communicator_.size(), communicator_.rank());
    const std::size_t most =
        pipelines::shard_rows(extents_.m, communicator_.size(), 0).count() * row;
    TUTTI_ASSIGN(SymmetricMemory shard, communicator_.allocate(most));
    TUTTI_ASSIGN(SymmetricMemory gathered, communicator_.allocate(extents_.m * row));
    TUTTI_TRY(device.copy(shard.data(), sets.a(0) + own.begin * row, own.count() * row));
    matrices_ = std::make_unique<TunedMatrices>(
        TunedMatrices{std::move(sets), std::move(shard), std::move(gathered)});
    return Status::ok();
  }

  AllGatherMatmul call_of(const AllGatherMatmulWay& way, std::size_t set, Stream stream) const {
    const MatmulSets& sets = matrices_->sets;
    AllGatherMatmul call{.a = matrices_->shard.data(),
                         .b = sets.b(set, 0),
                         .c = sets.c(set, 0),
                         .m = extents_.m,
                         .n = extents_.n,
                         .k = extents_.k,
                         .dtype = options_.bench.dtype,
                         .b_layout = options_.layout,
                         .workspace = matrices_->gathered.data(),
                         .workspace_bytes = matrices_->gathered.size(),
                         .stream = stream,
                         .algorithm = to_string(way.algorithm)};
    if (way.transport) call.fused.transport = to_string(*way.transport);
    if (!is_pipelined(way.algorithm)) return call;
    call.pipeline.protocol = to_string(way.protocol);
    call.pipeline.streams = way.streams;
    if (way.tiles > 0) call.pipeline.tiles = way.tiles;
    call.pipeline.mover = to_string(way.mover);
    call.pipeline.inter_stream_order = way.inter_stream_order;
    return call;
  }

  // One that can run on every rank, and is right.
  Status add_candidate(const AllGatherMatmulWay& way) {
    const std::string name = to_text(way);
    TUTTI_TRY(report_(Trying{which_, name}));
    const auto plan = tutti::plan(communicator_, call_of(way, 0, timer_.stream()));
    const StatusCode code = plan.status().code();
    if (!plan.is_ok() && code != StatusCode::kUnsupported) return plan.status();
    TUTTI_ASSIGN(const bool nowhere, anywhere(!plan.is_ok()));
    if (nowhere) {
      const std::string why = plan.is_ok() ? "another rank cannot run it" : plan.status().message();
      return report_(Skipped{name, why});
    }
    auto contender = std::make_unique<Contender>(Contender{.way = way, .call = {}});
    contender->call.run = [this, way](std::size_t number, Stream stream) {
      return all_gather_matmul(communicator_,
                               call_of(way, number % matrices_->sets.size(), stream));
    };
    TUTTI_ASSIGN(const bool right, is_right(*contender));
    if (right) contenders_.push_back(std::move(contender));
    return Status::ok();
  }

  // Runs it with each set into poisoned memory. What has no memory here is wrong, too.
  Result<bool> is_right(Contender& contender) {
    MatmulSets& sets = matrices_->sets;
    const std::size_t c_bytes = extents_.m * extents_.n * size_of(options_.bench.dtype);
    for (std::size_t set = 0; set < sets.size(); ++set) {
      TUTTI_TRY(timer_.fill(sets.c(set, 0), kPoison, c_bytes));
    }
    TimedCall once{.run = contender.call.run, .operations = sets.size()};
    TimedCall* const calls[] = {&once};
    const Status ran = timer_.sample(calls, 1);
    if (ran.code() == StatusCode::kResourceExhausted && communicator_.status().is_ok()) {
      TUTTI_TRY(report_(Skipped{to_text(contender.way), ran.message()}));
      return false;
    }
    TUTTI_TRY(ran);
    if (!options_.bench.check) return true;
    const Injection& inject = options_.bench.inject;
    const bool flip = inject.kind == Injection::Kind::kFlip &&
                      inject.hits(communicator_.rank(), to_string(contender.way.algorithm));
    TUTTI_ASSIGN(const Mismatches wrong, sets.check(sets.size() - 1, flip));
    if (wrong.count > 0) {
      TUTTI_TRY(
          report_(Dropped{which_, to_text(contender.way),
                          fmt::format("elements wrong: {}, first row {}, column {}", wrong.count,
                                      wrong.first / extents_.n, wrong.first % extents_.n)}));
    }
    TUTTI_ASSIGN(const bool wrong_anywhere, anywhere(wrong.count > 0));
    return !wrong_anywhere;
  }

  // So many calls that a sample is long against what begins and ends it; alike on all ranks.
  Status choose_operations() {
    if (communicator_.backend() == Backend::kHost) return Status::ok();
    TimedCall& unfused = contenders_.front()->call;
    TimedCall* const calls[] = {&unfused};
    TUTTI_TRY(timer_.sample(calls, 2));
    TUTTI_ASSIGN(const auto most,
                 most_of_ranks(communicator_, {unfused.samples_us.back()}, options_.bench.timeout));
    const auto wanted = static_cast<std::size_t>(operations_for(most.front(), 1));
    for (const auto& contender : contenders_) {
      contender->call.operations = std::clamp<std::size_t>(wanted, 2, kMostCalls);
    }
    return Status::ok();
  }

  Status measure(int rounds) {
    std::vector<TimedCall*> calls;
    for (const auto& contender : contenders_) calls.push_back(&contender->call);
    TUTTI_TRY(report_(Alive{}));
    TUTTI_TRY(timer_.sample(calls, 1));  // not counted
    for (TimedCall* call : calls) call->samples_us.clear();
    TUTTI_TRY(timer_.sample(calls, rounds));
    for (TimedCall* call : calls) {  // an operation has ended when its last rank has
      TUTTI_ASSIGN(call->samples_us,
                   most_of_ranks(communicator_, call->samples_us, options_.bench.timeout));
    }
    return Status::ok();
  }

  std::vector<MeasuredWay> measured() const {
    std::vector<MeasuredWay> all;
    for (const auto& contender : contenders_) {
      const Statistics times = summarize(contender->call.samples_us);
      all.push_back({contender->way, times.p50, static_cast<int>(times.n)});
    }
    return all;
  }

  void keep(const std::vector<std::size_t>& which) {
    std::vector<std::unique_ptr<Contender>> kept;
    kept.reserve(which.size());
    for (const std::size_t each : which) kept.push_back(std::move(contenders_[each]));
    contenders_ = std::move(kept);
  }

  // Whether it holds on any rank.
  Result<bool> anywhere(bool here) {
    TUTTI_ASSIGN(const auto most,
                 most_of_ranks(communicator_, {here ? 1.0 : 0.0}, options_.bench.timeout));
    return most.front() > 0;
  }

  Communicator& communicator_;
  const TuneAllGatherMatmulOptions& options_;
  const Reporter& report_;
  RankTimer& timer_;
  const std::size_t which_;
  const MatmulExtents extents_;
  std::unique_ptr<TunedMatrices> matrices_;
  std::vector<std::unique_ptr<Contender>> contenders_;
};

Status tune_sizes(Communicator& communicator, const TuneAllGatherMatmulOptions& options,
                  const Reporter& report) {
  if (communicator.impl().topology().gpu == "mixed") {
    return {StatusCode::kUnsupported, "a table is of one kind of GPU, and these differ"};
  }
  CudaDriver* cuda = nullptr;
  std::unique_ptr<MatmulDevice> device = make_host_matmul_device();
  if (communicator.backend() == Backend::kCuda) {
    cuda = communicator.impl().cuda();
    TUTTI_TRY(cuda->set_device(communicator.device()));
    TUTTI_ASSIGN(device, make_cuda_matmul_device(*cuda, nullptr));
  }
  TUTTI_ASSIGN(const std::unique_ptr<RankTimer> timer,
               RankTimer::make(communicator, cuda, options.bench.timeout));
  for (std::size_t which = 0; which < options.shapes.size(); ++which) {
    TUTTI_TRY(SizeTuner(communicator, options, report, *timer, which).run(*device));
  }
  return Status::ok();
}

}  // namespace

RankWork tune_all_gather_matmul_work(const TuneAllGatherMatmulOptions& options) {
  return [&options](Communicator& communicator, const Reporter& reporter) {
    const Status status = tune_sizes(communicator, options, reporter);
    if (!status.is_ok()) give_up(communicator, status);
    return status;
  };
}

}  // namespace tutti::cli
