#include "bench/overlap/worker.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <chrono>
#include <optional>

#include "base/try.hpp"
#include "bench/arena.hpp"
#include "bench/overlap/arithmetic.hpp"
#include "bench/overlap/lanes.hpp"
#include "bench/runnable.hpp"

namespace tutti::cli {
namespace {

struct Entry {
  OverlapMeasurement measurement;
  Act act;
};

class RankOverlap {
 public:
  RankOverlap(Communicator& communicator, const OverlapOptions& options, const Reporter& reporter)
      : communicator_(communicator),
        options_(options),
        report_(reporter),
        rows_(communicator, options.bench, reporter) {}

  Status run();

 private:
  Status open();
  Status open_operands();
  Result<std::unique_ptr<LibraryMatmul>> make_matmul(CudaDriver* driver);
  Status choose_entries();
  void add_entry(Phase phase, const Runnable& row);
  Status take_samples();
  Status sample(int rounds);
  Status sample_checked();
  Status check(Entry& entry);
  void note(Entry& entry, std::string_view what, const Mismatches& found) const;
  bool flips(std::string_view name) const;
  bool any(bool (*has)(Phase)) const {
    return std::any_of(options_.phases.begin(), options_.phases.end(), has);
  }

  Communicator& communicator_;
  const OverlapOptions& options_;
  const Reporter& report_;
  RunnableRows rows_;
  std::unique_ptr<Engine> memory_;
  Arena arena_;                                       // what is gathered
  std::vector<std::shared_ptr<std::byte>> matrices_;  // the others
  std::optional<Operands> operands_;
  std::string library_;      // that multiplies
  std::size_t threads_ = 0;  // of arithmetic
  std::unique_ptr<Lanes> lanes_;
  std::vector<Entry> entries_;
  std::vector<Act*> acts_;  // of the entries
  std::chrono::steady_clock::time_point last_sign_of_life_ = std::chrono::steady_clock::now();
};

// Collective.
Status RankOverlap::open() {
  const BenchOptions& bench = options_.bench;
  if (any(gathers)) TUTTI_TRY(rows_.open());
  const bool cuda = communicator_.backend() == Backend::kCuda;
  TUTTI_ASSIGN(memory_, cuda ? make_cuda_engine(communicator_, bench)
                             : make_host_engine(communicator_, bench));
  CudaDriver* const driver = cuda ? real_cuda() : nullptr;  // there, since the engine is
  TUTTI_ASSIGN(std::unique_ptr<LibraryMatmul> matmul, make_matmul(driver));
  library_ = matmul->library();
  TUTTI_TRY(open_operands());
  TUTTI_ASSIGN(
      lanes_, cuda
                  ? make_cuda_lanes(*driver, communicator_, options_, *operands_, std::move(matmul))
                  : make_host_lanes(communicator_, options_, *operands_, std::move(matmul)));
  return Status::ok();
}

// `driver`: null on the host.
Result<std::unique_ptr<LibraryMatmul>> RankOverlap::make_matmul(CudaDriver* driver) {
  if (options_.compute == Compute::kArithmetic) {
    threads_ = 1;
    if (driver != nullptr) {
      TUTTI_ASSIGN(const auto properties, driver->properties(communicator_.device()));
      threads_ = static_cast<std::size_t>(properties.multiprocessors) * kArithmeticThreads;
    }
    return make_arithmetic(driver, options_.matmul, threads_);
  }
  if (driver == nullptr) return make_blas_matmul(options_.matmul);
  return make_cublas_lt_matmul(*driver, communicator_.device(), options_.matmul);
}

Status RankOverlap::open_operands() {
  const MatmulShape& shape = options_.matmul;
  const std::size_t part = options_.part_bytes(communicator_.size());
  const std::size_t whole = part * static_cast<std::size_t>(communicator_.size());
  TUTTI_ASSIGN(arena_, Arena::make(communicator_, *memory_,
                                   {.kind = options_.bench.wanted_buffers(), .slot_bytes = whole}));
  Operands::Places places{.part = arena_.input(0, part).data(),
                          .gathered = arena_.output(0, whole).data()};
  const Operands::Setting setting{.matmul = options_.matmul,
                                  .dependent = options_.dependent,
                                  .rank = communicator_.rank(),
                                  .ranks = communicator_.size(),
                                  .part_bytes = part,
                                  .threads = threads_};
  const auto allocate = [&](std::size_t bytes) -> Result<std::byte*> {
    TUTTI_ASSIGN(auto memory, memory_->allocate(bytes));
    matrices_.push_back(std::move(memory));
    return matrices_.back().get();
  };
  if (options_.bench.in_place) {
    places.part = places.gathered + part * static_cast<std::size_t>(communicator_.rank());
  }
  places.a = places.gathered;
  if (!options_.dependent) {
    TUTTI_ASSIGN(places.a, allocate(shape.m * shape.k * size_of(shape.dtype)));
  }
  TUTTI_ASSIGN(places.b, allocate(shape.k * shape.n * size_of(shape.dtype)));
  TUTTI_ASSIGN(places.c, allocate(Operands::product_bytes_of(setting)));
  operands_.emplace(*memory_, setting, places);
  return Status::ok();
}

void RankOverlap::add_entry(Phase phase, const Runnable& row) {
  const Operands::Places& places = operands_->places();
  Entry entry{.measurement = {.phase = phase,
                              .algorithm = row.algorithm,
                              .chosen = row.chosen,
                              .plan = row.plan},
              .act = {.phase = phase}};
  if (multiplies(phase)) entry.measurement.library = library_;
  if (gathers(phase)) {
    const DataType dtype = options_.matmul.dtype;
    entry.act.gather = {.input = places.part,
                        .output = places.gathered,
                        .count = options_.part_bytes(communicator_.size()) / size_of(dtype),
                        .dtype = dtype,
                        .options = {.blocks = row.plan.blocks,
                                    .threads = row.plan.threads,
                                    .chunk_bytes = row.plan.chunk_bytes}};
  }
  entries_.push_back(std::move(entry));
}

// The matmul once, and what has an all_gather in it once for each row.
Status RankOverlap::choose_entries() {
  const auto& phases = options_.phases;
  if (phases.front() == Phase::kMatmul) {
    TUTTI_TRY(end_as_told(options_.bench.inject, communicator_.rank(), kMatmulName));
    add_entry(Phase::kMatmul, {});
  }
  if (!any(gathers)) return Status::ok();
  const DataType dtype = options_.matmul.dtype;
  TUTTI_ASSIGN(const std::vector<Runnable> rows,
               rows_.all({.count = operands_->gathered_bytes() / size_of(dtype),
                          .dtype = dtype,
                          .symmetric = arena_.zero_copy(),
                          .in_place = options_.bench.in_place}));
  for (const Runnable& row : rows) {
    TUTTI_TRY(end_as_told(options_.bench.inject, communicator_.rank(), row.algorithm));
    for (const Phase phase : phases) {
      if (gathers(phase)) add_entry(phase, row);
    }
  }
  return Status::ok();
}

Status RankOverlap::run() {
  TUTTI_TRY(open());
  TUTTI_TRY(choose_entries());
  if (entries_.empty()) return Status::ok();
  for (Entry& entry : entries_) {
    // Names are kept by the measurements, which no longer move.
    entry.act.gather.options.algorithm = entry.measurement.algorithm;
    acts_.push_back(&entry.act);
  }
  TUTTI_TRY(take_samples());
  for (auto& [measurement, act] : entries_) {
    for (const LaneTimes& times : act.samples) {
      measurement.samples_us.push_back(times.total);
      if (multiplies(act.phase)) measurement.matmul_us.push_back(times.matmul);
      if (gathers(act.phase)) measurement.gather_us.push_back(times.gather);
      if (times.megahertz > 0) measurement.megahertz.push_back(times.megahertz);
    }
    TUTTI_TRY(report_(measurement));
  }
  return Status::ok();
}

Status RankOverlap::take_samples() {
  const BenchOptions& bench = options_.bench;
  TUTTI_TRY(operands_->fill(0));
  TUTTI_TRY(sample(bench.warmup));
  for (Act* act : acts_) act->samples.clear();
  if (!bench.check) return sample(bench.iterations);
  TUTTI_TRY(sample_checked());
  if (bench.iterations == 1) return Status::ok();
  TUTTI_TRY(sample(bench.iterations - 2));
  TUTTI_TRY(operands_->fill(1));  // fresh: what is left over cannot pass
  return sample_checked();
}

Status RankOverlap::sample(int rounds) {
  while (rounds > 0) {
    const int now = std::min(rounds, lanes_->rounds_at_once());
    TUTTI_TRY(lanes_->sample(acts_, now, false));
    rounds -= now;
    const auto time = std::chrono::steady_clock::now();
    if (time - last_sign_of_life_ < std::chrono::seconds(1)) continue;
    last_sign_of_life_ = time;
    TUTTI_TRY(report_(Alive{}));
  }
  return Status::ok();
}

// One sample of each into poisoned memory, its result compared.
Status RankOverlap::sample_checked() {
  for (Entry& entry : entries_) {
    Act* const one[] = {&entry.act};
    TUTTI_TRY(lanes_->sample(one, 1, true));
    TUTTI_TRY(check(entry));
    TUTTI_TRY(report_(Alive{}));
  }
  return Status::ok();
}

bool RankOverlap::flips(std::string_view name) const {
  const Injection& inject = options_.bench.inject;
  return inject.kind == Injection::Kind::kFlip && inject.hits(communicator_.rank(), name);
}

Status RankOverlap::check(Entry& entry) {
  OverlapMeasurement& measurement = entry.measurement;
  measurement.wrong = measurement.wrong.value_or(0);
  if (multiplies(entry.act.phase)) {
    TUTTI_ASSIGN(const Mismatches found, operands_->check_product(flips(kMatmulName)));
    note(entry, "of the product", found);
  }
  if (gathers(entry.act.phase)) {
    TUTTI_ASSIGN(const Mismatches found, operands_->check_gathered(flips(measurement.algorithm)));
    note(entry, "of what was gathered", found);
  }
  return Status::ok();
}

void RankOverlap::note(Entry& entry, std::string_view what, const Mismatches& found) const {
  if (found.count == 0) return;
  if (*entry.measurement.wrong == 0) {
    entry.measurement.first_wrong =
        fmt::format("rank {}, element {} {}", communicator_.rank(), found.first, what);
  }
  *entry.measurement.wrong += found.count;
}

}  // namespace

RankWork overlap_work(const OverlapOptions& options) {
  return [&options](Communicator& communicator, const Reporter& reporter) {
    RankOverlap overlap(communicator, options, reporter);
    const Status status = overlap.run();
    if (!status.is_ok()) give_up(communicator, status);
    return status;
  };
}

}  // namespace tutti::cli
