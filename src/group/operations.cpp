// From a call to a running operation: plan, channel, KernelArgs.
#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "base/convert.hpp"
#include "base/hash.hpp"
#include "base/log.hpp"
#include "base/nvtx.hpp"
#include "base/try.hpp"
#include "drivers/cuda.hpp"
#include "group/communicator_impl.hpp"
#include "planning/filter.hpp"

namespace tutti {
namespace {

// How long a failed host operation waits for what the other rank has to say of it.
constexpr std::chrono::milliseconds kAccountLimit{200};

std::size_t offset_in(const SymmetricSegment& segment, const void* address) {
  return static_cast<std::size_t>(static_cast<const std::byte*>(address) - segment.local);
}

bool zero_copy(const std::shared_ptr<SymmetricSegment>& segment) {
  return segment != nullptr && segment->zero_copy();
}

Bytes to_message(const std::vector<std::uint64_t>& words) {
  const auto* bytes = reinterpret_cast<const std::byte*>(words.data());
  return {bytes, bytes + words.size() * sizeof(std::uint64_t)};
}

std::vector<std::uint64_t> from_message(const Bytes& bytes) {
  std::vector<std::uint64_t> words(bytes.size() / sizeof(std::uint64_t));
  std::memcpy(words.data(), bytes.data(), words.size() * sizeof(std::uint64_t));
  return words;
}

// A failure that has started nothing on this rank.
bool leaves_usable(StatusCode code) {
  return code == StatusCode::kUnsupported || code == StatusCode::kInvalidArgument ||
         code == StatusCode::kUnavailable;
}

// Blocks wait for those of all other ranks: where these share a GPU, all have to be on it at once.
// Half of it stays free, since a cluster needs neighbouring multiprocessors.
int most_blocks_at_once(const Topology& topology) {
  if (topology.ranks_per_gpu <= 1) return kMaxBlocks;
  const int share = topology.multiprocessors / (2 * topology.ranks_per_gpu);
  return std::max(share - share % kMaxClusterBlocks, 1);
}

}  // namespace

Request CommunicatorImpl::request_for(Collective collective,
                                      const Communicator::Query& query) const {
  Request request{.collective = collective,
                  .count = query.count,
                  .dtype = query.dtype,
                  .op = query.op.kind,
                  .hidden = query.hidden,
                  .in_place = query.in_place,
                  .symmetric = query.symmetric,
                  .staging_bytes = layout_.staging_size(query.captured ? 1 : 0),
                  .packet_bytes = layout_.packet_room(query.captured ? 1 : 0),
                  .ring_bytes = layout_.ring_bytes(query.captured ? 1 : 0),
                  .has_lanes = layout_.message_slot_bytes(size()) > 0,
                  .bidirectional_bytes = settings_.bidirectional_bytes,
                  .counts_on_device = query.counts_on_device,
                  .capturing = query.captured,
                  .deterministic = options_.deterministic,
                  .sm_budget = query.sm_budget,
                  .algorithm = std::string(query.algorithm),
                  .tune = settings_.tune,
                  .only_nccl = settings_.only_nccl};
  add_facts(request, nullptr);
  return request;
}

Result<Plan> CommunicatorImpl::plan(Collective collective, const Communicator::Query& query) const {
  return choose(request_for(collective, query), topology_, *table_);
}

Result<Plan> CommunicatorImpl::plan_for(const Request& request) {
  const PlanKey key{
      request.collective,     request.count,           request.dtype,         request.op,
      request.hidden,         request.in_place,        request.symmetric,     request.capturing,
      request.nccl_ready,     request.in_blocks,       request.windows.ready, request.copies.ready,
      request.default_stream, request.packet_bytes,    request.ring_bytes,    request.algorithm,
      request.sm_budget,      request.counts_on_device};
  if (const auto found = plans_.find(key); found != plans_.end()) return found->second;
  TUTTI_ASSIGN(const Plan plan, choose(request, topology_, *table_));
  log(LogLevel::kInfo, "{} bytes, {}{}: {}", request.bytes(),
      elements_text(request.collective, request.dtype, request.op),
      request.symmetric ? "" : ", staged", to_string(plan));
  return plans_.emplace(key, plan).first->second;
}

bool CommunicatorImpl::must_agree(const Call& call) {
  if (backend() == Backend::kHost) return true;
  const auto stream = engine_->stream_state(call.stream);
  const std::lock_guard lock(mutex_);
  if (!stream.is_ok()) return false;
  if (stream->capturing && captures_->find(stream->capture_id) == nullptr) return true;
  return std::any_of(executors_.begin(), executors_.end(),
                     [&call](const auto& executor) { return executor->may_exchange(call); });
}

// The first operation of a capture agrees on a channel that is free on every rank: one exchange of
// bitmaps among the hosts, no CUDA call.
Result<CaptureLease*> CommunicatorImpl::lease_for(const StreamState& stream) {
  if (CaptureLease* known = captures_->find(stream.capture_id)) return known;
  TUTTI_ASSIGN(const auto answers, exchanged(bootstrap_->all_gather(
                                       to_message(captures_->free_channels()), deadline())));
  std::vector<std::vector<std::uint64_t>> bitmaps;
  bitmaps.reserve(answers.size());
  for (const Bytes& answer : answers) bitmaps.push_back(from_message(answer));
  const int channel = Captures::lowest_common(bitmaps);
  if (channel == 0) {
    return Status(StatusCode::kResourceExhausted,
                  fmt::format("all {} capture channels are in use: destroy graphs, or raise "
                              "TUTTI_CAPTURE_CHANNELS",
                              layout_.capture_channels));
  }
  CaptureLease& lease = captures_->open(stream.capture_id, channel);
  const Status retained = drivers_.cuda->retain_on_graph(
      stream.graph, captures_->on_graph_destroyed(stream.capture_id));
  if (!retained.is_ok()) return fail(retained);
  return &lease;
}

// The segments that hold the call's buffers, if any. In place, the smaller side lies in the larger
// one's: alone, it would lie elsewhere in each rank's segment. A driver cannot be asked inside a
// capture.
Status CommunicatorImpl::find_buffers(PlannedOperation& prepared) {
  if (heap_ == nullptr) return Status::ok();
  const Call& call = prepared.call;
  const bool within_output = prepared.in_place && prepared.sides.input <= prepared.sides.output;
  const bool within_input = prepared.in_place && !within_output;
  if (!within_input) prepared.output = heap_->find(call.output, prepared.sides.output);
  prepared.input = within_output ? prepared.output : heap_->find(call.input, prepared.sides.input);
  if (within_input) prepared.output = prepared.input;
  for (const auto& segment : {prepared.input, prepared.output}) {
    if (segment == nullptr || prepared.captured) continue;
    if (const Status alive = heap_->check_alive(*segment); !alive.is_ok()) return fail(alive);
  }
  return Status::ok();
}

// What runs, and with which grid: chosen, unless the call says it.
Result<const Algorithm*> CommunicatorImpl::choose_row(PlannedOperation& prepared) {
  const Call& call = prepared.call;
  // Where the root's alone lies, only the root knows: the choice must not depend on it.
  const RootSide alone = root_side(call.collective);
  // Of uneven pieces peers touch the larger side alone; the other one may be empty on some ranks.
  const bool uneven = is_uneven(call.collective), computes = reduces(call.collective);
  const bool has_input =
      alone == RootSide::kInput || (uneven && !computes) || zero_copy(prepared.input);
  const bool has_output =
      alone == RootSide::kOutput || (uneven && computes) || zero_copy(prepared.output);
  const bool late = prepared.captured && registering_ && !uneven;
  Request request = request_for(call.collective, {.count = call.count,
                                                  .dtype = call.dtype,
                                                  .op = call.op,
                                                  .hidden = call.norm.hidden,
                                                  .symmetric = (has_input && has_output) || late,
                                                  .in_place = prepared.in_place,
                                                  .algorithm = call.options.algorithm,
                                                  .sm_budget = call.options.sm_budget,
                                                  .counts_on_device = call.lengths.are_on_device(),
                                                  .captured = prepared.captured});
  const Executor::Buffers buffers{call.input, call.output, prepared.input.get(),
                                  prepared.output.get()};
  add_facts(request, &buffers);
  request.default_stream = is_default_stream(call.stream);
  request.packet_bytes = layout_.packet_room(prepared.area);
  request.ring_bytes = layout_.ring_bytes(prepared.area);
  TUTTI_ASSIGN(prepared.plan, plan_for(request));
  // Pieces that differ between sender and taker are for the row to find.
  prepared.plan.alone &= prepared.sides.input == prepared.sides.output;
  if (call.options.blocks > 0) prepared.plan.blocks = call.options.blocks;
  if (call.options.threads > 0) prepared.plan.threads = call.options.threads;
  if (call.options.chunk_bytes > 0) prepared.plan.chunk_bytes = call.options.chunk_bytes;
  TUTTI_ASSIGN(const Algorithm* row, find_algorithm(request.collective, prepared.plan.algorithm));
  const bool tells_counts = !call.lengths.are_agreed(call.collective);
  prepared.plan.blocks =
      std::min({prepared.plan.blocks, most_blocks(*row, request.ring_bytes, tells_counts),
                most_blocks_at_once(topology_), blocks_within(request, topology_)});
  prepared.plan.threads = std::max(prepared.plan.threads, row->min_threads);
  return row;
}

Result<PlannedOperation> CommunicatorImpl::prepare(const Call& call) {
  const std::lock_guard lock(mutex_);
  if (failure_->failed()) return failure_->status();
  TUTTI_ASSIGN(const StreamState stream, engine_->stream_state(call.stream));

  PlannedOperation prepared{.call = call};
  prepared.call.options.timeout = limited(call.options.timeout);
  prepared.sides = call.sides(rank(), size());
  prepared.in_place =
      runs_in_place(call.collective) && prepared.sides.are_in_place(call.input, call.output);
  prepared.captured = stream.capturing;
  if (!call.messages.empty()) return prepare_messages(std::move(prepared));
  if (prepared.captured) prepared.area = captures_->area(call.stream);
  TUTTI_TRY(find_buffers(prepared));
  TUTTI_ASSIGN(const Algorithm* row, choose_row(prepared));
  prepared.operation = {.sequence = ++sequence_,
                        .row = row,
                        .count = is_uneven(call.collective)
                                     ? call.count / static_cast<std::size_t>(size())
                                     : call.count,
                        .dtype = call.dtype,
                        .op = call.op.kind,
                        .root = call.root};
  if (is_uneven(call.collective) && size() <= kMaxRanks) {
    prepared.counts = call.lengths.counts(call.collective, call.dtype);
  }
  failure_->note(prepared.operation);
  TUTTI_TRY(prepare_for_executor(prepared));
  if (prepared.executor != nullptr || prepared.plan.alone) return prepared;
  row = prepared.operation.row;
  const bool by_switch = (row->needs & kNeedsMulticast) != 0 && topology_.multicast;
  const auto reached = [by_switch](const std::shared_ptr<SymmetricSegment>& segment) {
    return zero_copy(segment) && (!by_switch || segment->multicast != nullptr);
  };
  const bool in_place_staging = prepared.in_place && row->in_place_needs_staging;
  const RootSide alone = root_side(call.collective);
  const bool input_reached = alone != RootSide::kInput && reached(prepared.input);
  const bool output_reached = alone != RootSide::kOutput && reached(prepared.output);
  const bool direct =
      (!row->peers_read_input || input_reached) && (!row->peers_write_output || output_reached);
  prepared.staged = !direct || in_place_staging;
  // A capture's own staging is small. What passes through it in any case shares that of rings.
  const bool passes = row->pushes_through_staging || row->fetches_into_staging;
  const bool shares = row->ring_directions > 0 || (passes && layout_.ring_bytes(prepared.area) > 0);
  if (shares) prepared.channel = layout_.ring_channel(prepared.area);
  // Copies are enqueued with their addresses: for them it is not enough to know those later.
  const bool even = !is_uneven(call.collective);
  const bool can_wait =
      registering_ && even && !in_place_staging && !by_switch && row->program == nullptr;
  const bool is_late = can_wait && !direct && prepared.call.bytes() > 0;
  if (!stream.capturing || row->packets != nullptr || (shares && !is_late)) return prepared;

  TUTTI_ASSIGN(CaptureLease * lease, lease_for(stream));
  if (!shares) prepared.channel = lease->channel;
  if (is_late) TUTTI_TRY(register_late(prepared, *lease, stream));
  return prepared;
}

// Buffers of a captured operation that finish_capture() will register.
Status CommunicatorImpl::register_late(PlannedOperation& prepared, CaptureLease& lease,
                                       const StreamState& stream) {
  TUTTI_ASSIGN(prepared.late_slot, captures_->take_late_slot(lease));
  late_requests_.push_back({.slot = prepared.late_slot,
                            .row = prepared.operation.row,
                            .input = prepared.call.input,
                            .output = prepared.call.output,
                            .sides = prepared.sides,
                            .capture_id = stream.capture_id});
  prepared.staged = false;
  return Status::ok();
}

Executor* CommunicatorImpl::executor_for(std::string_view name) const {
  for (const auto& executor : executors_) {
    if (executor->name() == name) return executor.get();
  }
  return nullptr;
}

void CommunicatorImpl::add_facts(Request& request, const Executor::Buffers* buffers) const {
  for (const auto& executor : executors_) executor->add_facts(request, buffers);
}

// Until an executor takes it: some learn only then that they cannot run what was chosen.
Status CommunicatorImpl::prepare_for_executor(PlannedOperation& prepared) {
  while (!prepared.plan.alone) {
    prepared.executor = executor_for(executor_of(*prepared.operation.row));
    if (prepared.executor == nullptr) return Status::ok();
    TUTTI_ASSIGN(const Executor::Ready ready, prepared.executor->prepare(prepared));
    if (ready == Executor::Ready::kYes) return Status::ok();
    TUTTI_ASSIGN(prepared.operation.row, choose_row(prepared));
    failure_->note(prepared.operation);
  }
  return Status::ok();
}

Status CommunicatorImpl::start(PlannedOperation& prepared) {
  const std::lock_guard lock(mutex_);
  if (failure_->failed()) return failure_->status();
  const NvtxRange range(prepared.operation.row->id.data());
  if (prepared.executor != nullptr) return start_on_executor(prepared);
  if (prepared.captured) return run(prepared);
  Status status = engine_->enter_stream(prepared.call.stream);
  if (status.is_ok()) status = run(prepared);
  if (status.is_ok()) status = engine_->leave_stream(prepared.call.stream);
  // Release: whoever sees the number finds the event behind that operation.
  if (status.is_ok()) started_.store(prepared.operation.sequence, std::memory_order_release);
  return status.is_ok() || failure_->failed() ? status : fail(status);
}

Status CommunicatorImpl::start_on_executor(PlannedOperation& prepared) {
  record_start(prepared, 0);
  const auto ticket = prepared.executor->enqueue(prepared);
  if (ticket.is_ok()) {
    prepared.ticket = *ticket;
    return Status::ok();
  }
  recorder_->end(prepared.operation.sequence, false);
  return leaves_usable(ticket.status().code()) ? ticket.status() : fail(ticket.status());
}

Status CommunicatorImpl::settle(PlannedOperation& prepared, const Status& handed_over) {
  if (prepared.executor == nullptr) return Status::ok();
  const std::lock_guard lock(mutex_);
  const Status status = prepared.executor->settle(prepared, handed_over);
  if (!status.is_ok()) return leaves_usable(status.code()) ? status : fail(status);
  // Release, as in start().
  if (prepared.ticket && !prepared.captured) {
    started_.store(prepared.operation.sequence, std::memory_order_release);
  }
  return status;
}

Status CommunicatorImpl::execute(const Call& call) {
  TUTTI_ASSIGN(PlannedOperation prepared, prepare(call));
  const Status started = start(prepared);
  const Status settled = settle(prepared, Status::ok());
  return started.is_ok() ? settled : started;
}

Status CommunicatorImpl::run(const PlannedOperation& prepared) {
  const std::uint64_t sequence = prepared.operation.sequence;
  Status status = prepared.plan.alone ? run_alone(prepared) : run_row(prepared);
  if (status.is_ok() && backend() == Backend::kCuda) return status;
  if (status.is_ok()) {
    collect_failure();
    if (failure_->failed()) failure_->await_account(kAccountLimit);
    status = failure_->status();
  }
  recorder_->end(sequence, status.is_ok());
  return status;
}

Status CommunicatorImpl::run_row(const PlannedOperation& prepared) {
  const KernelArgs work = make_work(prepared);
  record_start(prepared, work.signature);
  return engine_->run(prepared.operation, work, prepared.plan, prepared.call.stream);
}

// Nobody compares its signature.
Status CommunicatorImpl::run_alone(const PlannedOperation& prepared) {
  const Call& call = prepared.call;
  record_start(prepared, 0);
  if (call.input == call.output || prepared.sides.output == 0) return Status::ok();
  return engine_->copy(call.output, call.input, prepared.sides.output, call.stream);
}

void CommunicatorImpl::record_start(const PlannedOperation& prepared, std::uint32_t signature) {
  const bool host = backend() == Backend::kHost;
  const bool computes = reduces(prepared.call.collective);
  recorder_->begin({.sequence = prepared.operation.sequence,
                    .row = prepared.operation.row->id,
                    .count = prepared.operation.count,
                    .dtype = prepared.operation.dtype,
                    .op = computes ? std::optional(prepared.operation.op) : std::nullopt,
                    .signature = signature,
                    .state = prepared.captured ? OperationState::kUntracked
                             : host            ? OperationState::kRunning
                                               : OperationState::kEnqueued});
}

KernelArgs CommunicatorImpl::make_work(const PlannedOperation& prepared) const {
  const Call& call = prepared.call;
  const PrivateMemory& memory = engine_->memory();
  KernelArgs work{};
  work.count = call.bytes() / size_of(moved_as(call.collective, call.dtype));
  work.rank = rank();
  work.ranks = size();
  work.root = call.root;
  work.blocks = std::clamp(prepared.plan.blocks, 1, kMaxBlocks);
  work.signature = signature_of(prepared);
  work.sequence = prepared.operation.sequence;
  if (!prepared.captured) {
    work.timeout_ns =
        static_cast<std::uint64_t>(std::chrono::nanoseconds(call.options.timeout).count());
  }
  work.input = static_cast<const std::byte*>(call.input);
  work.output = static_cast<std::byte*>(call.output);
  point_at_buffers(prepared, work);
  for (int r = 0; r < size(); ++r) {
    work.channels.at[r] = own_->at[r] + layout_.channel_offset(prepared.channel);
    work.staging.at[r] = own_->at[r] + layout_.staging_offset(prepared.channel);
  }
  if (own_->multicast != nullptr) {
    work.multicast_channel = own_->multicast + layout_.channel_offset(prepared.channel);
  }
  for (int r = 0; work.stage_output && r < size(); ++r) {
    work.outputs.at[r] = work.staging.at[(rank() + 1 + r) % size()];
  }
  if (prepared.operation.row->packets != nullptr) point_at_packets(prepared, work);
  work.staging_bytes = layout_.staging_size(prepared.channel);
  const Algorithm& row = *prepared.operation.row;
  const bool in_slots = prepared.staged || !row.peers_write_output;
  work.ring = ring_slots(row, in_slots ? work.staging_bytes : kNoSlots, work.blocks,
                         prepared.plan.chunk_bytes);
  work.chunk_bytes = prepared.plan.chunk_bytes;
  if (prepared.plan.chunk_bytes > 0) {
    work.staging_bytes = std::clamp(round_up(prepared.plan.chunk_bytes, 256), kLeastStagingBytes,
                                    work.staging_bytes);
  }
  work.epochs = memory.epochs + static_cast<std::size_t>(prepared.channel) * kMaxBlocks;
  work.control = memory.control;
  work.failure = memory.failure;
  work.notices = memory.notices;
  work.scalar = within_range(call.dtype, call.op.scalar);
  work.scaled_by_peers = call.op.kind == OpKind::kPreMulSum;
  work.divisor = call.op.kind == OpKind::kAvg ? size() : 1;
  work.norm = call.norm;
  if (prepared.messages) {
    work.messages = &*prepared.messages;
    work.signature = prepared.messages->at[0].signature;
  }
  if (prepared.counts) work.counts = &*prepared.counts;
  return work;
}

void CommunicatorImpl::point_at_packets(const PlannedOperation& prepared, KernelArgs& work) const {
  const Call& call = prepared.call;
  const int area = prepared.area;
  for (int r = 0; r < size(); ++r) {
    const int next = (rank() + 1 + r) % size();
    work.packets.memory.at[r] = own_->at[next] + layout_.packet_offset(area);
  }
  work.packets.generation_bytes = layout_.packet_room(area);
  const Extent extent{call.bytes(), size(), call.norm.hidden * size_of(call.dtype)};
  work.packets.slot_bytes = packet_use(*prepared.operation.row, extent, call.dtype).slot_bytes;
  work.packets.launches = engine_->memory().launches + area;
}

void CommunicatorImpl::point_at_buffers(const PlannedOperation& prepared, KernelArgs& work) const {
  const bool reads = prepared.operation.row->peers_read_input;
  const bool writes = prepared.operation.row->peers_write_output;
  work.stage_input = prepared.staged && reads;
  work.stage_output = prepared.staged && writes;
  if (prepared.late_slot >= 0) {
    work.late = engine_->memory().late + prepared.late_slot;
    return;
  }
  if (prepared.staged && own_->multicast != nullptr) {
    std::byte* const staging = own_->multicast + layout_.staging_offset(prepared.channel);
    work.multicast = {staging, staging};
  }
  if (prepared.staged || (!reads && !writes)) return;
  const DeferredBuffers now = late_buffers(reads ? input_place(prepared) : BufferPlace{},
                                           writes ? output_place(prepared) : BufferPlace{});
  work.inputs = now.inputs;
  work.outputs = now.outputs;
  work.multicast = now.multicast;
}

// In place, each rank's smaller side has a place of its own in larger ones that lie alike.
BufferPlace CommunicatorImpl::place_of(const PlannedOperation& prepared, std::size_t bytes,
                                       BufferPlace alone) const {
  if (!prepared.in_place || bytes == prepared.sides.larger()) return alone;
  return {alone.segment, alone.offset - prepared.sides.place, prepared.call.sides(1, size()).place};
}

BufferPlace CommunicatorImpl::input_place(const PlannedOperation& prepared) const {
  return place_of(prepared, prepared.sides.input,
                  {prepared.input.get(), offset_in(*prepared.input, prepared.call.input)});
}

BufferPlace CommunicatorImpl::output_place(const PlannedOperation& prepared) const {
  return place_of(prepared, prepared.sides.output,
                  {prepared.output.get(), offset_in(*prepared.output, prepared.call.output)});
}

DeferredBuffers CommunicatorImpl::late_buffers(const BufferPlace& input,
                                               const BufferPlace& output) const {
  DeferredBuffers buffers{};
  for (int r = 0; r < size(); ++r) {
    const int next = (rank() + 1 + r) % size();
    if (input.segment != nullptr) buffers.inputs.at[r] = input.at(r);
    if (output.segment != nullptr) buffers.outputs.at[r] = output.at(next);
  }
  if (input.segment != nullptr && input.segment->multicast != nullptr) {
    buffers.multicast.input = input.segment->multicast + input.offset;
  }
  if (output.segment != nullptr && output.segment->multicast != nullptr) {
    buffers.multicast.output = output.segment->multicast + output.offset;
  }
  buffers.ready = 1;
  return buffers;
}

// Equal on two ranks exactly where they mean the same operation on the same symmetric buffers.
std::uint32_t CommunicatorImpl::signature_of(const PlannedOperation& prepared) const {
  const Call& call = prepared.call;
  Hash hash;
  hash.add(prepared.operation.row->id);
  hash.add(static_cast<std::uint64_t>(call.dtype));
  hash.add(static_cast<std::uint64_t>(call.op.kind));
  hash.add(call.count);
  hash.add(static_cast<std::uint64_t>(call.root));
  hash.add(static_cast<std::uint64_t>(prepared.channel));
  if (prepared.operation.row->packets != nullptr) {
    hash.add(static_cast<std::uint64_t>(prepared.area));
  }
  hash.add(static_cast<std::uint64_t>(prepared.plan.blocks));
  hash.add(static_cast<std::uint64_t>(prepared.plan.threads));
  hash.add(prepared.plan.chunk_bytes);
  hash.add(static_cast<std::uint64_t>(prepared.staged));
  hash.add(static_cast<std::uint64_t>(prepared.late_slot >= 0));
  hash.add(static_cast<std::uint64_t>(prepared.captured));
  if (call.norm.hidden > 0) {
    hash.add(call.norm.hidden);
    hash.add(__builtin_bit_cast(std::uint32_t, call.norm.epsilon));
    hash.add(static_cast<std::uint64_t>(call.norm.output_dtype));
    hash.add(__builtin_bit_cast(std::uint32_t, call.norm.scale));
  }
  if (is_uneven(call.collective)) {
    hash.add(static_cast<std::uint64_t>(call.lengths.are_on_device()));
    const bool agreed = call.lengths.are_agreed(call.collective);
    for (const std::size_t length : call.lengths.taken) hash.add(agreed ? length : 0);
  }
  const bool touched = !prepared.staged && prepared.late_slot < 0;
  if (touched && prepared.operation.row->peers_read_input) {
    hash.add(prepared.input->id);
    hash.add(input_place(prepared).offset);
  }
  if (touched && prepared.operation.row->peers_write_output) {
    hash.add(prepared.output->id);
    hash.add(output_place(prepared).offset);
  }
  const std::uint64_t value = hash.value();
  return static_cast<std::uint32_t>(value ^ value >> 32);
}

}  // namespace tutti
