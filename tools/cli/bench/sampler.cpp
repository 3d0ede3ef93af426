#include "bench/sampler.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <chrono>

#include "algorithms/catalogue.hpp"
#include "base/try.hpp"
#include "base/units.hpp"
#include "group/communicator_impl.hpp"

namespace tutti::cli {

// Where caches are to be cold: more than they hold, if that many are used at all.
int Sampler::slots(std::size_t largest) const {
  if (options_.cache != Cache::kCold) return 1;
  const std::size_t enough =
      ceil_div(2 * engine_->cache_bytes(), std::max<std::size_t>(largest, 1));
  return static_cast<int>(
      std::clamp<std::size_t>(enough, 1, static_cast<std::size_t>(options_.operations())));
}

Result<BufferKind> Sampler::choose_buffers() {
  CommunicatorImpl& group = communicator_.impl();
  const BufferKind wanted = options_.wanted_buffers();
  if (group.heap() != nullptr || wanted == BufferKind::kPlain) return wanted;
  if (options_.buffers) {
    return Status(StatusCode::kUnavailable,
                  fmt::format("--buffers {}: there is no symmetric memory: {}; --buffers plain "
                              "needs none",
                              to_string(wanted), group.why_no_heap()));
  }
  lacks_symmetric_ = true;
  return BufferKind::kPlain;
}

Status Sampler::open() {
  TUTTI_TRY(rows_.open());
  const bool cuda = communicator_.backend() == Backend::kCuda;
  TUTTI_ASSIGN(engine_, cuda ? make_cuda_engine(communicator_, options_)
                             : make_host_engine(communicator_, options_));
  const std::size_t message = *std::max_element(options_.bytes.begin(), options_.bytes.end());
  const Sides whole = is_uneven(options_.collective)
                          ? sides_of(options_.collective, message, 0, communicator_.size())
                          : sides(message);
  const std::size_t largest = std::max(whole.input, whole.output);
  TUTTI_ASSIGN(const BufferKind buffers, choose_buffers());
  Arena::Shape shape{.kind = buffers,
                     .slot_bytes = largest,
                     .inputs = slots(largest),
                     .outputs = options_.chained ? 2 : slots(largest)};
  TUTTI_ASSIGN(arena_, Arena::make(communicator_, *engine_, shape));
  // Where no memory is symmetric nothing is staged either.
  if (!arena_.zero_copy() && communicator_.impl().heap() != nullptr) {
    shape.kind = BufferKind::kSymmetric;
    TUTTI_ASSIGN(symmetric_, Arena::make(communicator_, *engine_, shape));
  }
  return Status::ok();
}

void Sampler::begin(std::size_t bytes, bool in_place) {
  bytes_ = bytes;
  if (is_uneven(options_.collective)) lengths_ = lengths(bytes, communicator_.rank());
  host_.resize(sides(bytes).input);
  pattern_ = {.operations = options_.operations(),
              .inputs = arena_.shape().inputs,
              .outputs = in_place ? 1 : arena_.shape().outputs,
              .chained = options_.chained && !in_place,
              .in_place = in_place};
  const bool summed = reduces(options_.collective);  // else every input comes out as it is
  inputs_.emplace(ExactInputs::Shape{.dtype = options_.dtype,
                                     .op = options_.op,
                                     .ranks = summed ? communicator_.size() : 1,
                                     .applications = summed ? pattern_.applications() : 1});
  if (!options_.normalises()) return;
  norm_inputs_.emplace(NormInputs::Shape{.dtype = options_.dtype,
                                         .ranks = communicator_.size(),
                                         .tokens = bytes / options_.token_bytes(),
                                         .hidden = static_cast<std::size_t>(options_.hidden)});
}

// Residual and weight lie behind the input, what is normalised behind what was added up.
Sides Sampler::sides(std::size_t bytes) const {
  if (options_.normalises()) return {2 * bytes + options_.token_bytes(), 2 * bytes, 0};
  const int rank = communicator_.rank();
  if (!is_uneven(options_.collective)) {
    return sides_of(options_.collective, bytes, rank, communicator_.size());
  }
  return lengths(bytes, rank).sides(options_.collective, rank, size_of(options_.dtype));
}

Lengths Sampler::lengths(std::size_t bytes, int rank) const {
  const int ranks = communicator_.size();
  const std::size_t longest = bytes / size_of(options_.dtype) / static_cast<std::size_t>(ranks);
  return piece_lengths(options_.collective, longest, rank, ranks);
}

Communicator::Query Sampler::query(std::string_view algorithm) const {
  return {.count = bytes_ / size_of(options_.dtype),
          .dtype = options_.dtype,
          .op = {options_.op},
          .hidden = options_.has_rows() ? static_cast<std::size_t>(options_.hidden) : 0,
          .symmetric = arena_.zero_copy(),
          .in_place = pattern_.in_place,
          .algorithm = algorithm,
          .sm_budget = options_.sm_budget,
          .captured = options_.mode == Mode::kGraph};
}

// Elements in all, or those of each piece.
template <class AnyCall>
void Sampler::give_length(AnyCall& call, std::size_t bytes) const {
  if constexpr (requires { call.count; }) {
    call.count = bytes / size_of(options_.dtype);
  } else if constexpr (requires { call.counts; }) {
    call.counts = lengths_.taken.data();
  } else {
    call.send_counts = lengths_.sent.data();
    call.recv_counts = lengths_.taken.data();
    call.max_count = piece_bytes() / size_of(options_.dtype);
  }
}

Operation Sampler::operation(const Configuration& configuration, std::byte* input,
                             std::byte* output) const {
  const CallOptions how{
      .algorithm = configuration.by_itself ? "" : std::string_view(configuration.algorithm),
      .blocks = configuration.blocks,
      .threads = configuration.threads,
      .chunk_bytes = configuration.chunk_bytes,
      .sm_budget = options_.sm_budget};
  const auto fill = [&](auto call, std::size_t bytes) {
    call.input = input;
    call.output = output;
    give_length(call, bytes);
    call.dtype = options_.dtype;
    call.options = how;
    if constexpr (requires { call.root; }) call.root = options_.root;
    if constexpr (requires { call.op; }) call.op = inputs_->op(communicator_.rank());
    return Operation(call);
  };
  switch (options_.collective) {
    case Collective::kAllReduce:
      return fill(AllReduce{}, bytes_);
    case Collective::kAllGather:
      return fill(AllGather{}, piece_bytes());
    case Collective::kReduceScatter:
      return fill(ReduceScatter{.rows = options_.split_rows ? bytes_ / options_.token_bytes() : 1},
                  piece_bytes());
    case Collective::kAllToAll:
      return fill(AllToAll{}, piece_bytes());
    case Collective::kBroadcast:
      return fill(Broadcast{}, bytes_);
    case Collective::kReduce:
      return fill(Reduce{}, bytes_);
    case Collective::kGather:
      return fill(Gather{}, piece_bytes());
    case Collective::kScatter:
      return fill(Scatter{}, piece_bytes());
    case Collective::kBarrier:
      return Barrier{.options = how};
    case Collective::kSendRecv:
      return fill(SendRecv{}, bytes_);
    case Collective::kAllGatherV:
      return fill(AllGatherV{}, bytes_);
    case Collective::kReduceScatterV:
      return fill(ReduceScatterV{}, bytes_);
    case Collective::kAllToAllV:
      return fill(AllToAllV{}, bytes_);
    case Collective::kAllReduceResidualRmsNorm:
      break;
  }
  return AllReduceResidualRmsNorm{.input = input,
                                  .residual = input + bytes_,
                                  .weight = input + 2 * bytes_,
                                  .residual_output = output,
                                  .output = output + bytes_,
                                  .tokens = bytes_ / options_.token_bytes(),
                                  .hidden = static_cast<std::size_t>(options_.hidden),
                                  .dtype = options_.dtype,
                                  .epsilon = NormInputs::kEpsilon,
                                  .options = how};
}

// Lays the operations of one sample over the slots of `arena`.
void Sampler::arrange(Contender& contender, const Arena& arena) const {
  const Configuration& configuration = contender.configuration;
  const Sides sides = this->sides(bytes_);
  for (int k = 0; k < pattern_.operations; ++k) {
    const auto output = arena.output(pattern_.output(k), sides.output);
    std::byte* input = arena.input(pattern_.input(k), sides.input).data();
    if (pattern_.in_place) input = output.data() + sides.place;
    if (pattern_.chained && k > 0) input = arena.output(pattern_.output(k - 1), bytes_).data();
    contender.operations.push_back(operation(configuration, input, output.data()));
    if (k < pattern_.outputs) contender.outputs.push_back(output);
  }
  contender.repeatable = !pattern_.in_place;
}

Status Sampler::prepare(Contender& contender, const Arena& arena,
                        const Configuration& configuration) {
  contender.configuration = configuration;
  arrange(contender, arena);
  return engine_->prepare(contender);
}

Result<std::unique_ptr<Trial>> Sampler::prepare(const Configuration& configuration) {
  TUTTI_TRY(end_as_told(options_.inject, communicator_.rank(), configuration.algorithm));
  auto trial = std::make_unique<Trial>();
  TUTTI_TRY(prepare(trial->contender, arena_, configuration));
  TUTTI_ASSIGN(const Algorithm* row, find_algorithm(options_.collective, configuration.algorithm));
  if (symmetric_ && (row->needs & (kNeedsNccl | kNeedsNetwork)) == 0) {
    trial->unstaged = std::make_unique<Contender>();
    TUTTI_TRY(prepare(*trial->unstaged, symmetric_, configuration));
  }
  return trial;
}

// A period of what is reduced, from where this rank's output begins.
Bytes Sampler::reduced(std::uint32_t iteration) const {
  Bytes period = inputs_->expected(iteration);
  const Sides sides = this->sides(bytes_);
  if (options_.split_rows) return split(period);
  const std::size_t first = sides.input > sides.output ? sides.place % period.size() : 0;
  std::rotate(period.begin(), period.begin() + static_cast<std::ptrdiff_t>(first), period.end());
  return period;
}

// All of this rank's output: its columns of each row of what repeats `period`.
Bytes Sampler::split(const Bytes& period) const {
  const std::size_t row = options_.token_bytes();
  const std::size_t columns = row / static_cast<std::size_t>(communicator_.size());
  const std::size_t first = columns * static_cast<std::size_t>(communicator_.rank());
  Bytes whole(bytes_), own;
  tile(whole, period);
  own.reserve(piece_bytes());
  for (std::size_t r = first; r < bytes_; r += row) {
    const auto from = whole.begin() + static_cast<std::ptrdiff_t>(r);
    own.insert(own.end(), from, from + static_cast<std::ptrdiff_t>(columns));
  }
  return own;
}

std::size_t Sampler::piece_bytes() const {
  return bytes_ / static_cast<std::size_t>(communicator_.size());
}

// A period of what comes from rank `rank`, beginning where it begins in that one's input.
Bytes Sampler::moved_from(int rank, std::uint32_t iteration) const {
  Bytes period = inputs_->input(rank, iteration);
  const bool uneven = options_.collective == Collective::kAllToAllV;
  const bool has_many = uneven || options_.collective == Collective::kAllToAll ||
                        options_.collective == Collective::kScatter;
  if (!has_many) return period;
  const int own = communicator_.rank();
  const std::size_t place =
      uneven ? firsts_of(lengths(bytes_, rank).sent)[static_cast<std::size_t>(own)] *
                   size_of(options_.dtype)
             : piece_bytes() * static_cast<std::size_t>(own);
  const auto first = static_cast<std::ptrdiff_t>(place % period.size());
  std::rotate(period.begin(), period.begin() + first, period.end());
  return period;
}

// By output, one behind the other.
std::vector<Sampler::Part> Sampler::expected(std::uint32_t iteration) const {
  const std::size_t all = sides(bytes_).output;
  if (reduces(options_.collective)) return {{reduced(iteration), all}};
  const int ranks = communicator_.size();
  if (is_pairwise(options_.collective)) {
    return {{moved_from((communicator_.rank() + ranks - 1) % ranks, iteration), all}};
  }
  std::vector<Part> parts;
  const bool from_root = root_side(options_.collective) == RootSide::kInput;
  const int sources = from_root ? 1 : ranks;
  parts.reserve(static_cast<std::size_t>(sources));
  for (int r = 0; r < sources; ++r) {
    const std::size_t bytes =
        is_uneven(options_.collective)
            ? lengths_.taken[static_cast<std::size_t>(r)] * size_of(options_.dtype)
            : all / static_cast<std::size_t>(sources);
    parts.push_back({moved_from(from_root ? options_.root : r, iteration), bytes});
  }
  return parts;
}

// Else there is nothing to check.
bool Sampler::has_output() const {
  if (options_.collective == Collective::kBarrier) return false;
  return root_side(options_.collective) != RootSide::kOutput ||
         communicator_.rank() == options_.root;
}

Status Sampler::fill_inputs(std::uint32_t iteration) {
  iteration_ = iteration;
  if (norm_inputs_) {
    input_ = norm_inputs_->input(communicator_.rank(), iteration);
  } else {
    input_ = inputs_->input(communicator_.rank(), iteration);
    expected_ = expected(iteration);
  }
  const Sides sides = this->sides(bytes_);
  host_.resize(sides.input);
  tile(host_, input_);
  for (const Arena* arena : {&arena_, &symmetric_}) {
    if (!*arena) continue;
    for (int slot = 0; slot < pattern_.inputs; ++slot) {
      TUTTI_TRY(engine_->write(arena->input(slot, host_.size()).data(), host_));
    }
    if (!pattern_.in_place) continue;
    TUTTI_TRY(engine_->write(arena->output(0, sides.output).data() + sides.place, host_));
  }
  return Status::ok();
}

Status Sampler::sample_checked(Trial& trial) {
  if (pattern_.in_place) {
    const Sides sides = this->sides(bytes_);
    host_.resize(sides.input);
    tile(host_, input_);
    TUTTI_TRY(engine_->write(trial.contender.outputs.front().data() + sides.place, host_));
  }
  Contender* const one[] = {&trial.contender};
  TUTTI_TRY(engine_->sample(one, 1, !pattern_.in_place));
  TUTTI_TRY(check(trial));
  if (!trial.unstaged) return Status::ok();
  Contender* const twin[] = {trial.unstaged.get()};
  return engine_->sample(twin, 1, false);
}

// Of the outputs that were read.
Mismatches Sampler::count_wrong() const {
  if (norm_inputs_) return norm_inputs_->count_wrong(host_, iteration_);
  const std::size_t element = size_of(options_.dtype);
  Mismatches all;
  std::size_t first = 0;
  for (const Part& part : expected_) {
    const auto got = std::span(host_).subspan(first, part.bytes);
    const Mismatches found = count_mismatches(got, part.period, element);
    if (all.count == 0 && found.count > 0) all.first = first / element + found.first;
    all.count += found.count;
    first += part.bytes;
  }
  return all;
}

Status Sampler::check(Trial& trial) {
  const std::size_t element = size_of(options_.dtype);
  const bool flip =
      options_.inject.kind == Injection::Kind::kFlip &&
      options_.inject.hits(communicator_.rank(), trial.contender.configuration.algorithm);
  trial.wrong = trial.wrong.value_or(0);
  if (!has_output()) return Status::ok();
  host_.resize(sides(bytes_).output);
  const int last = pattern_.output(pattern_.operations - 1);
  for (int slot = 0; slot < static_cast<int>(trial.contender.outputs.size()); ++slot) {
    if (pattern_.chained && slot != last) continue;  // holds a result from the middle
    TUTTI_TRY(engine_->read(host_, trial.contender.outputs[static_cast<std::size_t>(slot)].data()));
    if (flip && !host_.empty()) host_.front() ^= std::byte{1};
    const Mismatches found = count_wrong();
    if (found.count == 0) continue;
    if (*trial.wrong == 0) {
      trial.first_wrong = fmt::format("rank {}, element {} of {}", communicator_.rank(),
                                      found.first, host_.size() / element);
    }
    *trial.wrong += found.count;
  }
  return Status::ok();
}

Status Sampler::sample(std::span<Contender* const> contenders, int rounds) {
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

}  // namespace tutti::cli
