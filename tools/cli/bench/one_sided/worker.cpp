#include "bench/one_sided/worker.hpp"

#include <fmt/core.h>

#include <algorithm>

#include "base/try.hpp"
#include "bench/arena.hpp"
#include "bench/inputs.hpp"
#include "bench/runnable.hpp"
#include "executors/peer/one_sided.hpp"
#include "group/communicator_impl.hpp"

namespace tutti::cli {
namespace {

struct Entry {
  Measurement measurement;
  Contender contender;
};

class RankOneSided {
 public:
  RankOneSided(Communicator& communicator, const OneSidedOptions& options, const Reporter& reporter)
      : communicator_(communicator),
        options_(options),
        report_(reporter),
        inputs_({.dtype = options.bench.dtype}) {}

  Status run();

 private:
  int next() const { return (communicator_.rank() + 1) % communicator_.size(); }
  int before() const {
    return (communicator_.rank() + communicator_.size() - 1) % communicator_.size();
  }
  Status measure(std::size_t size);
  Result<Entry> prepare(std::size_t size, Mover mover);
  Operation operation(Mover mover) const;
  Status take_samples(std::vector<Entry>& entries);
  Status sample(std::vector<Entry>& entries, int rounds);
  Status sample_checked(std::vector<Entry>& entries, std::uint32_t iteration);
  Status fill_input(std::uint32_t iteration);
  Status check(Entry& entry, std::uint32_t iteration);

  Communicator& communicator_;
  const OneSidedOptions& options_;
  const Reporter& report_;
  ExactInputs inputs_;
  std::unique_ptr<Engine> engine_;
  Arena arena_;
  std::size_t bytes_ = 0;
  std::vector<std::byte> host_;
};

Status RankOneSided::run() {
  const BenchOptions& bench = options_.bench;
  TUTTI_ASSIGN(engine_, communicator_.backend() == Backend::kCuda
                            ? make_cuda_engine(communicator_, bench)
                            : make_host_engine(communicator_, bench));
  TUTTI_ASSIGN(
      arena_,
      Arena::make(communicator_, *engine_,
                  {.slot_bytes = *std::max_element(bench.bytes.begin(), bench.bytes.end())}));
  for (std::size_t size = 0; size < bench.bytes.size(); ++size) TUTTI_TRY(measure(size));
  return Status::ok();
}

Operation RankOneSided::operation(Mover mover) const {
  std::byte* const input = arena_.input(0, bytes_).data();
  std::byte* const output = arena_.output(0, bytes_).data();
  const DataType dtype = options_.bench.dtype;
  const std::size_t count = bytes_ / size_of(dtype);
  if (options_.kind == OneSided::kGet) {
    return Get{.from = input,
               .to = output,
               .count = count,
               .dtype = dtype,
               .peer = next(),
               .mover = mover};
  }
  return PutAndWait{.put = {.from = input,
                            .to = output,
                            .count = count,
                            .dtype = dtype,
                            .peer = next(),
                            .mover = mover},
                    .from = before()};
}

Result<Entry> RankOneSided::prepare(std::size_t size, Mover mover) {
  const std::string name(to_string(mover));
  TUTTI_TRY(end_as_told(options_.bench.inject, communicator_.rank(), name));
  Entry entry{.measurement = {.size = size,
                              .algorithm = name,
                              .chosen = mover == usual_mover(options_.kind, bytes_)},
              .contender = {}};
  entry.contender.configuration.algorithm = name;
  const auto operations = static_cast<std::size_t>(options_.bench.operations());
  entry.contender.operations.assign(operations, operation(mover));
  entry.contender.outputs = {arena_.output(0, bytes_)};
  TUTTI_TRY(engine_->prepare(entry.contender));
  return entry;
}

Status RankOneSided::measure(std::size_t size) {
  bytes_ = options_.bench.bytes[size];
  host_.resize(bytes_);
  std::vector<Entry> entries;
  for (const Mover mover : options_.movers) {
    TUTTI_ASSIGN(Entry entry, prepare(size, mover));
    entries.push_back(std::move(entry));
  }
  TUTTI_TRY(take_samples(entries));
  entries.back().measurement.last = true;
  for (Entry& entry : entries) {
    entry.measurement.samples_us = std::move(entry.contender.samples_us);
    TUTTI_TRY(report_(entry.measurement));
  }
  return Status::ok();
}

Status RankOneSided::take_samples(std::vector<Entry>& entries) {
  const BenchOptions& bench = options_.bench;
  TUTTI_TRY(fill_input(0));
  TUTTI_TRY(sample(entries, bench.warmup));
  for (Entry& entry : entries) entry.contender.samples_us.clear();
  if (!bench.check) return sample(entries, bench.iterations);
  TUTTI_TRY(sample_checked(entries, 0));
  if (bench.iterations == 1) return Status::ok();
  TUTTI_TRY(sample(entries, bench.iterations - 2));
  TUTTI_TRY(fill_input(1));  // fresh: what is left over cannot pass
  return sample_checked(entries, 1);
}

Status RankOneSided::sample(std::vector<Entry>& entries, int rounds) {
  std::vector<Contender*> all;
  all.reserve(entries.size());
  for (Entry& entry : entries) all.push_back(&entry.contender);
  while (rounds > 0) {
    const int now = std::min(rounds, engine_->rounds_at_once());
    TUTTI_TRY(engine_->sample(all, now, false));
    TUTTI_TRY(report_(Alive{}));
    rounds -= now;
  }
  return Status::ok();
}

// Nobody poisons what another rank still writes: its put was waited for.
Status RankOneSided::sample_checked(std::vector<Entry>& entries, std::uint32_t iteration) {
  for (Entry& entry : entries) {
    Contender* const one[] = {&entry.contender};
    TUTTI_TRY(engine_->sample(one, 1, true));
    TUTTI_TRY(check(entry, iteration));
  }
  return Status::ok();
}

// Between two meetings of the ranks: peers have read what was there, and read nothing before it is
// there.
Status RankOneSided::fill_input(std::uint32_t iteration) {
  const auto meet = [&] {
    return communicator_.impl().bootstrap().barrier(Deadline(options_.bench.timeout));
  };
  tile(host_, inputs_.input(communicator_.rank(), iteration));
  TUTTI_TRY(meet());
  TUTTI_TRY(engine_->write(arena_.input(0, bytes_).data(), host_));
  return meet();
}

Status RankOneSided::check(Entry& entry, std::uint32_t iteration) {
  const int source = options_.kind == OneSided::kGet ? next() : before();
  TUTTI_TRY(engine_->read(host_, arena_.output(0, bytes_).data()));
  const Injection& inject = options_.bench.inject;
  const bool flip = inject.kind == Injection::Kind::kFlip &&
                    inject.hits(communicator_.rank(), entry.measurement.algorithm);
  if (flip && !host_.empty()) host_.front() ^= std::byte{1};
  const std::size_t element = size_of(options_.bench.dtype);
  const Mismatches found = count_mismatches(host_, inputs_.input(source, iteration), element);
  std::optional<std::uint64_t>& wrong = entry.measurement.wrong;
  if (found.count > 0 && wrong.value_or(0) == 0) {
    entry.measurement.first_wrong = fmt::format("rank {}, element {} of {}", communicator_.rank(),
                                                found.first, host_.size() / element);
  }
  wrong = wrong.value_or(0) + found.count;
  return Status::ok();
}

}  // namespace

RankWork one_sided_work(const OneSidedOptions& options) {
  return [&options](Communicator& communicator, const Reporter& reporter) {
    RankOneSided bench(communicator, options, reporter);
    const Status status = bench.run();
    if (!status.is_ok()) give_up(communicator, status);
    return status;
  };
}

}  // namespace tutti::cli
