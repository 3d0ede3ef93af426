#include "bench/worker.hpp"

#include <signal.h>

#include <fmt/core.h>

#include <algorithm>
#include <chrono>
#include <thread>

#include "algorithms/catalogue.hpp"
#include "base/try.hpp"
#include "base/units.hpp"
#include "bench/arena.hpp"
#include "bench/binding.hpp"
#include "bench/engine.hpp"
#include "bench/frame.hpp"
#include "bench/inputs.hpp"
#include "bench/trace.hpp"

namespace tutti::cli {
namespace {

// What is measured at one size: an algorithm, and where its operations copy through staging the
// same on symmetric buffers, which shows what the copies cost.
struct Entry {
  Measurement measurement;
  Contender contender;
  std::unique_ptr<Contender> unstaged;
};

// The arrangement of operations and slots that one sample runs.
struct Pattern {
  int operations = 1;
  int inputs = 1, outputs = 1;
  bool chained = false, in_place = false;

  int input(int k) const { return k % inputs; }
  int output(int k) const { return k % outputs; }
  // How often the reduction has been applied to what the last operation leaves.
  int applications() const { return chained || in_place ? operations : 1; }
};

class RankBench {
 public:
  RankBench(Communicator& communicator, const BenchOptions& options, const Reporter& reporter)
      : communicator_(communicator), options_(options), report_(reporter) {}

  Status run() {
    TUTTI_TRY(open());
    for (std::size_t size = 0; size < options_.bytes.size(); ++size) {
      if (size == 0) TUTTI_TRY(inject_end());
      TUTTI_TRY(measure(size, false));
      if (options_.in_place) TUTTI_TRY(measure(size, true));
    }
    return Status::ok();
  }

 private:
  Status open();
  Status inject_end() const;
  Pattern pattern_for(bool in_place) const;
  Status measure(std::size_t size, bool in_place);
  Result<std::vector<std::unique_ptr<Entry>>> choose_entries(std::size_t size, bool in_place);
  Status skip(std::string_view algorithm, const Status& why);
  void arrange(Contender& contender, const Arena& arena, std::size_t bytes) const;
  Status take_samples(std::vector<std::unique_ptr<Entry>>& entries, const ExactInputs& inputs,
                      std::size_t bytes);
  Status fill_inputs(const ExactInputs& inputs, std::uint32_t iteration, std::size_t bytes);
  Status sample_checked(Entry& entry, ByteView input, ByteView expected);
  Status check(Entry& entry, ByteView expected);
  Status sample(std::span<Contender* const> contenders, int rounds);

  Communicator& communicator_;
  const BenchOptions& options_;
  const Reporter& report_;
  std::unique_ptr<Engine> engine_;
  Arena arena_, symmetric_;  // the second only where the first is staged
  Status nccl_;              // why NCCL is not there
  std::vector<std::string> skipped_;
  std::vector<std::byte> host_;
  Pattern pattern_;
  std::chrono::steady_clock::time_point last_sign_of_life_ = std::chrono::steady_clock::now();
};

Status RankBench::open() {
  const bool named = std::count(options_.algorithms.begin(), options_.algorithms.end(), "nccl") > 0;
  if (communicator_.backend() == Backend::kCuda && (named || options_.choice == Choice::kAuto)) {
    nccl_ = communicator_.prepare_nccl();
    TUTTI_TRY(communicator_.status());
  }
  const bool cuda = communicator_.backend() == Backend::kCuda;
  TUTTI_ASSIGN(engine_, cuda ? make_cuda_engine(communicator_, options_)
                             : make_host_engine(communicator_, options_));
  const std::size_t largest = *std::max_element(options_.bytes.begin(), options_.bytes.end());
  int slots = 1;
  if (options_.cache == Cache::kCold) {  // more than the cache holds, if that many are used at all
    const std::size_t enough =
        ceil_div(2 * engine_->cache_bytes(), std::max<std::size_t>(largest, 1));
    slots = static_cast<int>(
        std::clamp<std::size_t>(enough, 1, static_cast<std::size_t>(options_.operations())));
  }
  Arena::Shape shape{.kind = options_.buffers,
                     .slot_bytes = largest,
                     .inputs = slots,
                     .outputs = options_.chained ? 2 : slots};
  TUTTI_ASSIGN(arena_, Arena::make(communicator_, *engine_, shape));
  if (!arena_.zero_copy()) {
    shape.kind = BufferKind::kSymmetric;
    TUTTI_ASSIGN(symmetric_, Arena::make(communicator_, *engine_, shape));
  }
  return Status::ok();
}

Status RankBench::inject_end() const {
  if (options_.inject.rank != communicator_.rank()) return Status::ok();
  if (options_.inject.kind == Injection::Kind::kCrash) ::raise(SIGKILL);
  if (options_.inject.kind != Injection::Kind::kHang) return Status::ok();
  std::this_thread::sleep_for(std::chrono::minutes(10));
  return {StatusCode::kTimeout, "this rank was told to hang"};
}

Pattern RankBench::pattern_for(bool in_place) const {
  return {.operations = options_.operations(),
          .inputs = arena_.shape().inputs,
          .outputs = in_place ? 1 : arena_.shape().outputs,
          .chained = options_.chained && !in_place,
          .in_place = in_place};
}

Status RankBench::skip(std::string_view algorithm, const Status& why) {
  if (std::count(skipped_.begin(), skipped_.end(), algorithm) > 0) return Status::ok();
  skipped_.emplace_back(algorithm);
  return report_(Skipped{std::string(algorithm), why.to_string()});
}

// The algorithms that can run, the same on every rank.
Result<std::vector<std::unique_ptr<Entry>>> RankBench::choose_entries(std::size_t size,
                                                                      bool in_place) {
  Communicator::Query query{.count = options_.bytes[size] / size_of(options_.dtype),
                            .dtype = options_.dtype,
                            .op = {options_.op},
                            .symmetric = arena_.zero_copy(),
                            .in_place = in_place,
                            .algorithm = {},
                            .captured = options_.mode == Mode::kGraph};
  const Result<Plan> chosen = communicator_.plan_all_reduce(query);
  std::vector<std::string> names = options_.algorithms;
  if (options_.choice == Choice::kAuto) {
    TUTTI_TRY(chosen.status());
    TUTTI_ASSIGN(const Algorithm* row, find_algorithm(Collective::kAllReduce, chosen->algorithm));
    names = {std::string(row->name())};
  }
  std::vector<std::unique_ptr<Entry>> entries;
  for (const std::string& name : names) {
    query.algorithm = name;
    Result<Plan> plan = communicator_.plan_all_reduce(query);
    if (plan.is_ok() && name == "nccl" && !nccl_.is_ok()) plan = nccl_;
    if (!plan.is_ok()) {
      TUTTI_TRY(skip(name, plan.status()));
      continue;
    }
    auto entry = std::make_unique<Entry>();
    entry->measurement = {.size = size,
                          .algorithm = name,
                          .in_place = in_place,
                          .chosen = chosen.is_ok() && chosen->algorithm == plan->algorithm,
                          .plan = *plan};
    entries.push_back(std::move(entry));
  }
  return entries;
}

// Lays the operations of one sample over the slots of `arena`.
void RankBench::arrange(Contender& contender, const Arena& arena, std::size_t bytes) const {
  for (int k = 0; k < pattern_.operations; ++k) {
    const auto output = arena.output(pattern_.output(k), bytes);
    auto input = arena.input(pattern_.input(k), bytes);
    if (pattern_.in_place) input = output;
    if (pattern_.chained && k > 0) input = arena.output(pattern_.output(k - 1), bytes);
    contender.operations.push_back({.input = input.data(),
                                    .output = output.data(),
                                    .count = bytes / size_of(options_.dtype),
                                    .dtype = options_.dtype,
                                    .options = {.algorithm = contender.algorithm}});
    if (k < pattern_.outputs) contender.outputs.push_back(output);
  }
  contender.repeatable = !pattern_.in_place;
}

Status RankBench::measure(std::size_t size, bool in_place) {
  const std::size_t bytes = options_.bytes[size];
  pattern_ = pattern_for(in_place);
  host_.resize(bytes);
  const ExactInputs inputs({.dtype = options_.dtype,
                            .op = options_.op,
                            .ranks = communicator_.size(),
                            .applications = pattern_.applications()});
  TUTTI_ASSIGN(auto entries, choose_entries(size, in_place));
  const auto prepare = [&](Contender& contender, const Arena& arena, const std::string& name) {
    contender.algorithm = name;
    arrange(contender, arena, bytes);
    for (AllReduce& call : contender.operations) call.op = inputs.op(communicator_.rank());
    return engine_->prepare(contender);
  };
  for (auto& entry : entries) {
    const std::string& name = entry->measurement.algorithm;
    TUTTI_TRY(prepare(entry->contender, arena_, name));
    TUTTI_ASSIGN(const Algorithm* row, find_algorithm(Collective::kAllReduce, name));
    if (arena_.zero_copy() || (row->needs & kNeedsNccl) != 0) continue;
    entry->unstaged = std::make_unique<Contender>();
    TUTTI_TRY(prepare(*entry->unstaged, symmetric_, name));
  }
  TUTTI_TRY(take_samples(entries, inputs, bytes));
  for (auto& entry : entries) {
    entry->measurement.samples_us = std::move(entry->contender.samples_us);
    if (entry->unstaged) entry->measurement.unstaged_us = std::move(entry->unstaged->samples_us);
    TUTTI_TRY(report_(entry->measurement));
  }
  return Status::ok();
}

Status RankBench::take_samples(std::vector<std::unique_ptr<Entry>>& entries,
                               const ExactInputs& inputs, std::size_t bytes) {
  std::vector<Contender*> all;
  for (auto& entry : entries) {
    all.push_back(&entry->contender);
    if (entry->unstaged) all.push_back(entry->unstaged.get());
  }
  if (all.empty()) return Status::ok();
  std::uint32_t iteration = 0;
  const auto checked_round = [&] {
    const Bytes input = inputs.input(communicator_.rank(), iteration);
    const Bytes expected = inputs.expected(iteration);
    for (auto& entry : entries) TUTTI_TRY(sample_checked(*entry, input, expected));
    return Status::ok();
  };
  TUTTI_TRY(fill_inputs(inputs, iteration, bytes));
  TUTTI_TRY(sample(all, options_.warmup));
  for (Contender* contender : all) contender->samples_us.clear();
  if (!options_.check) return sample(all, options_.iterations);
  TUTTI_TRY(checked_round());
  if (options_.iterations == 1) return Status::ok();
  TUTTI_TRY(sample(all, options_.iterations - 2));
  TUTTI_TRY(fill_inputs(inputs, ++iteration, bytes));  // fresh: what is left over cannot pass
  return checked_round();
}

Status RankBench::fill_inputs(const ExactInputs& inputs, std::uint32_t iteration,
                              std::size_t bytes) {
  tile(host_, inputs.input(communicator_.rank(), iteration));
  for (const Arena* arena : {&arena_, &symmetric_}) {
    if (!*arena) continue;
    for (int slot = 0; slot < pattern_.inputs; ++slot) {
      TUTTI_TRY(engine_->write(arena->input(slot, bytes).data(), host_));
    }
    if (pattern_.in_place) TUTTI_TRY(engine_->write(arena->output(0, bytes).data(), host_));
  }
  return Status::ok();
}

// One sample, its result compared, and one of its unstaged twin, so that both have as many.
Status RankBench::sample_checked(Entry& entry, ByteView input, ByteView expected) {
  if (pattern_.in_place) {
    tile(host_, input);
    TUTTI_TRY(engine_->write(entry.contender.outputs.front().data(), host_));
  }
  Contender* const one[] = {&entry.contender};
  TUTTI_TRY(engine_->sample(one, 1, !pattern_.in_place));
  TUTTI_TRY(check(entry, expected));
  if (!entry.unstaged) return Status::ok();
  Contender* const twin[] = {entry.unstaged.get()};
  return engine_->sample(twin, 1, false);
}

Status RankBench::check(Entry& entry, ByteView expected) {
  const std::size_t element = size_of(options_.dtype);
  Measurement& measurement = entry.measurement;
  measurement.wrong = measurement.wrong.value_or(0);
  const int last = pattern_.output(pattern_.operations - 1);
  for (int slot = 0; slot < static_cast<int>(entry.contender.outputs.size()); ++slot) {
    if (pattern_.chained && slot != last) continue;  // holds a result from the middle
    TUTTI_TRY(engine_->read(host_, entry.contender.outputs[static_cast<std::size_t>(slot)].data()));
    const bool flip = options_.inject == Injection{Injection::Kind::kFlip, communicator_.rank()};
    if (flip && !host_.empty()) host_.front() ^= std::byte{1};
    const Mismatches found = count_mismatches(host_, expected, element);
    if (found.count == 0) continue;
    if (*measurement.wrong == 0) {
      measurement.first_wrong = fmt::format("rank {}, element {} of {}", communicator_.rank(),
                                            found.first, host_.size() / element);
    }
    *measurement.wrong += found.count;
  }
  return Status::ok();
}

Status RankBench::sample(std::span<Contender* const> contenders, int rounds) {
  while (rounds > 0) {
    const int now = std::min(rounds, engine_->rounds_at_once());
    TUTTI_TRY(engine_->sample(contenders, now, false));
    rounds -= now;
    const auto time = std::chrono::steady_clock::now();
    if (time - last_sign_of_life_ < std::chrono::seconds(1)) continue;
    last_sign_of_life_ = time;
    TUTTI_TRY(report_(Alive{}));
  }
  return Status::ok();
}

Status join_and_run(const BenchOptions& options, const Reporter& reporter) {
  TUTTI_ASSIGN(Communicator communicator,
               Communicator::create_from_environment(
                   {.backend = options.backend, .timeout = options.timeout}));
  return run_rank(communicator, options, reporter);
}

}  // namespace

Status run_rank(Communicator& communicator, const BenchOptions& options, const Reporter& reporter) {
  if (options.backend == Backend::kHost) bind_to_core(communicator.rank(), communicator.size());
  RankBench bench(communicator, options, reporter);
  const Status status = bench.run();
  if (!options.trace.empty()) {
    auto operations = recorded_operations(communicator);
    if (operations.is_ok()) TUTTI_TRY(reporter(Operations{std::move(*operations)}));
  }
  // Peers must not wait for a rank that gave up. Before buffers are freed, which waits for what
  // may still run.
  if (!status.is_ok() && communicator.status().is_ok()) {
    communicator.abort(fmt::format("rank {}: {}", communicator.rank(), status.message()));
  }
  return status.is_ok() ? reporter(Done{}) : status;
}

int run_rank_process(const BenchOptions& options) {
  ::signal(SIGPIPE, SIG_IGN);  // a launcher that is gone is an error of write(2)
  const Reporter reporter = [&](const Report& report) {
    return write_frame(options.worker_fd, to_json_text(report));
  };
  const Status status = join_and_run(options, reporter);
  if (status.is_ok()) return 0;
  return reporter(Failure{status.code(), status.to_string()}).is_ok() ? 1 : 2;
}

}  // namespace tutti::cli
