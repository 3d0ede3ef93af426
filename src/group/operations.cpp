// From a call to a running operation: plan, prepare, enqueue.
#include <fmt/format.h>

#include <algorithm>
#include <span>
#include <thread>
#include <utility>
#include <vector>

#include "base/log.hpp"
#include "base/nvtx.hpp"
#include "base/try.hpp"
#include "drivers/cuda.hpp"
#include "group/communicator_impl.hpp"
#include "group/cuda_pipelines.hpp"
#include "group/host_pipelines.hpp"
#include "planning/selection.hpp"

namespace tutti {
namespace {

// How long a failed host operation waits for what the other rank has to say of it.
constexpr std::chrono::milliseconds kAccountLimit{200};

BufferReach reach_of(const std::shared_ptr<SymmetricSegment>& segment) {
  if (segment == nullptr || !segment->zero_copy()) return BufferReach::kOwner;
  if (segment->copies_queue) return BufferReach::kKernels;
  return segment->multicast != nullptr ? BufferReach::kSwitch : BufferReach::kPeers;
}

// Whether ranks compare it by their recorders' pages. On GPUs it gets its number once it is
// enqueued, since until then this rank alone may refuse it. On the host that cannot happen, and the
// call waits for the other ranks.
bool is_numbered(const PlannedOperation& operation) {
  return operation.signature != 0 && !operation.captured() &&
         !is_pairwise(operation.call.collective);
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
                  .stream_barrier_bytes = settings_.stream_barrier_bytes,
                  .bidirectional_bytes = settings_.bidirectional_bytes,
                  .counts_on_device = query.counts_on_device,
                  .capturing = query.captured,
                  .deterministic = options_.deterministic,
                  .sm_budget = query.sm_budget,
                  .algorithm = query.algorithm,
                  .tune = settings_.tune,
                  .only_nccl = settings_.only_nccl};
  if (!query.symmetric) request.set_plain();
  return request;
}

void CommunicatorImpl::add_facts(Request& request, const Executor::Buffers* buffers) const {
  for (const auto& executor : executors_) executor->add_facts(request, buffers);
}

Request CommunicatorImpl::question(Collective collective, const Communicator::Query& query) const {
  Request request = request_for(collective, query);
  add_facts(request, nullptr);
  return request;
}

Result<Plan> CommunicatorImpl::plan(Collective collective, const Communicator::Query& query) const {
  return choose(question(collective, query), topology_, *table_);
}

Result<OperationPlan> CommunicatorImpl::plan_for(const Request& request) {
  return plans_.find(request, [this](const Request& asked) {
    auto plan = select({asked, topology_, *table_});
    if (plan.is_ok()) {
      log(LogLevel::kInfo, "{} bytes, {}, {}: {}", asked.bytes(),
          elements_text(asked.collective, asked.dtype, asked.op), buffers_text(asked),
          to_string(describe(*plan)));
    }
    return plan;
  });
}

bool CommunicatorImpl::must_agree(const Call& call) {
  if (backend() == Backend::kHost) return true;
  const std::lock_guard lock(mutex_);
  const auto some = [this](const auto& asks) {
    return std::any_of(executors_.begin(), executors_.end(), asks);
  };
  if (some([&](const auto& executor) { return executor->may_exchange(call); })) return true;
  if (!some([&](const auto& executor) { return executor->must_exchange(call); })) return false;
  PlannedOperation operation{.call = call};
  if (!describe_call(operation).is_ok() || !choose_plan(operation).is_ok()) return false;
  if (operation.plan.alone) return false;
  const Executor* const planned = executor_named(executor_of(*operation.plan.algorithm));
  return planned != nullptr && planned->must_exchange(call);
}

// The segments that hold the call's buffers, if any. In place, the smaller side lies in the larger
// one's: alone, it would lie elsewhere in each rank's segment. Memory that was freed is refused, as
// other wrong arguments are. A driver cannot be asked inside a capture.
Status CommunicatorImpl::find_buffers(PlannedOperation& operation) {
  if (heap_ == nullptr) return Status::ok();
  const Call& call = operation.call;
  const bool within_output = operation.in_place && operation.sides.input <= operation.sides.output;
  const bool within_input = operation.in_place && !within_output;
  if (!within_input) operation.output = heap_->find(call.output, operation.sides.output);
  operation.input =
      within_output ? operation.output : heap_->find(call.input, operation.sides.input);
  if (within_input) operation.output = operation.input;
  for (const auto& segment : {operation.input, operation.output}) {
    if (segment == nullptr || operation.captured()) continue;
    TUTTI_TRY(heap_->check_alive(*segment));
  }
  return Status::ok();
}

// What find_buffers() checks, before the messages have a number.
Status CommunicatorImpl::check_received(const PlannedOperation& operation) const {
  if (heap_ == nullptr || operation.captured()) return Status::ok();
  for (const MessageCall& message : operation.call.messages) {
    if (message.output == nullptr) continue;
    const auto segment = heap_->find(message.output, message.bytes());
    if (segment != nullptr) TUTTI_TRY(heap_->check_alive(*segment));
  }
  return Status::ok();
}

// What an operation asks of planning.
Request CommunicatorImpl::request_of(const PlannedOperation& operation) const {
  const Call& call = operation.call;
  Request request = request_for(call.collective, {.count = call.count,
                                                  .dtype = call.dtype,
                                                  .op = call.op,
                                                  .hidden = call.norm.hidden,
                                                  .in_place = operation.in_place,
                                                  .algorithm = call.options.algorithm,
                                                  .sm_budget = call.options.sm_budget,
                                                  .counts_on_device = call.lengths.are_on_device(),
                                                  .captured = operation.captured()});
  request.input_reach = reach_of(operation.input);
  request.output_reach = reach_of(operation.output);
  request.sizes_differ = operation.sides.input != operation.sides.output;
  request.tells_counts = is_uneven(call.collective) && !call.lengths.are_agreed(call.collective);
  request.default_stream = is_default_stream(call.stream);
  request.blocks = call.options.blocks;
  request.threads = call.options.threads;
  request.chunk_bytes = call.options.chunk_bytes;
  const Executor::Buffers buffers{call.input,
                                  call.output,
                                  operation.input.get(),
                                  operation.output.get(),
                                  operation.stream.capture_id,
                                  call.step_of != nullptr};
  add_facts(request, &buffers);
  return request;
}

Result<OperationPlan> CommunicatorImpl::plan_message(const MessageCall& message, const Call& call) {
  const std::lock_guard lock(mutex_);
  if (failure_->failed()) return failure_->status();
  TUTTI_ASSIGN(const StreamState stream, streams_->state(call.stream));
  return plan_message(message, call, stream.capturing);
}

// Where buffers lie is no matter: the other end would not know.
Result<OperationPlan> CommunicatorImpl::plan_message(const MessageCall& message, const Call& call,
                                                     bool captured) {
  Request request = request_for(Collective::kSendRecv, {.count = message.count,
                                                        .dtype = message.dtype,
                                                        .algorithm = call.options.algorithm,
                                                        .sm_budget = call.options.sm_budget,
                                                        .captured = captured});
  request.blocks = call.options.blocks;
  request.threads = call.options.threads;
  const Executor::Buffers anywhere;
  add_facts(request, &anywhere);
  return plan_for(request);
}

Status CommunicatorImpl::choose_plan(PlannedOperation& operation) {
  const Call& call = operation.call;
  if (call.messages.empty()) {
    TUTTI_TRY(find_buffers(operation));
    TUTTI_ASSIGN(operation.plan, plan_for(request_of(operation)));
  } else {
    TUTTI_TRY(check_received(operation));
    TUTTI_ASSIGN(operation.plan, plan_message(call.messages.front(), call, operation.captured()));
  }
  operation.operation.row = operation.plan.algorithm;
  return Status::ok();
}

Result<PlannedOperation> CommunicatorImpl::prepare(const Call& call) {
  PlannedOperation operation{.call = call};
  const std::lock_guard lock(mutex_);
  TUTTI_TRY(prepare_locked(operation));
  return operation;
}

Result<Request> CommunicatorImpl::question(const Call& call) {
  PlannedOperation operation{.call = call};
  const std::lock_guard lock(mutex_);
  TUTTI_TRY(describe_call(operation));
  TUTTI_TRY(find_buffers(operation));
  return request_of(operation);
}

// What follows from the call alone.
Status CommunicatorImpl::describe_call(PlannedOperation& operation) {
  if (failure_->failed()) return failure_->status();
  const Call& call = operation.call;
  TUTTI_ASSIGN(operation.stream, streams_->state(call.stream));
  operation.call.options.timeout = limited(call.options.timeout);
  operation.sides = call.sides(rank(), size());
  operation.in_place =
      runs_in_place(call.collective) && operation.sides.are_in_place(call.input, call.output);
  operation.operation = describe(call, size());
  operation.operation.timeout = call.options.timeout;
  operation.operation.captured = operation.captured();
  return Status::ok();
}

Status CommunicatorImpl::prepare_locked(PlannedOperation& operation) {
  TUTTI_TRY(describe_call(operation));
  TUTTI_TRY(choose_plan(operation));
  operation.operation.sequence = ++sequence_;
  failure_->note(operation.operation);
  return prepare_executor_of(operation);
}

// Until an executor takes it: some learn only then that they cannot run what was chosen.
Status CommunicatorImpl::prepare_executor_of(PlannedOperation& operation) {
  while (!operation.plan.alone) {
    operation.executor = executor_named(executor_of(*operation.plan.algorithm));
    if (operation.executor == nullptr) {
      return {StatusCode::kUnsupported,
              fmt::format("{} runs on {}, which this group has not", operation.plan.algorithm->id,
                          executor_of(*operation.plan.algorithm))};
    }
    TUTTI_ASSIGN(const Executor::Ready ready, operation.executor->prepare(operation));
    if (ready == Executor::Ready::kYes) return Status::ok();
    TUTTI_TRY(choose_plan(operation));
    failure_->note(operation.operation);
  }
  operation.executor = nullptr;
  return Status::ok();
}

Executor* CommunicatorImpl::executor_named(std::string_view name) const {
  for (const auto& executor : executors_) {
    if (executor->name() == name) return executor.get();
  }
  return nullptr;
}

Status CommunicatorImpl::start(PlannedOperation& operation) {
  const std::lock_guard lock(mutex_);
  return start_locked(operation);
}

Status CommunicatorImpl::start_locked(PlannedOperation& operation) {
  TUTTI_TRY(begin_locked(operation));
  return backend() == Backend::kHost ? wait_on_host(operation) : Status::ok();
}

Status CommunicatorImpl::begin_locked(PlannedOperation& operation) {
  if (failure_->failed()) return failure_->status();
  const NvtxRange range(operation.operation.row->id.data());
  record_start(operation);
  const Status status = enqueue(operation);
  if (status.is_ok()) {
    if (backend() == Backend::kCuda && is_numbered(operation)) {
      recorder_->number(operation.operation.sequence, operation.signature);
    }
    if (operation.binding == nullptr) note_started(operation);
    return Status::ok();
  }
  recorder_->end(operation.operation.sequence, false);
  const bool usable = operation.executor == nullptr
                          ? operation.captured()
                          : operation.executor->leaves_usable(operation, status);
  return usable ? status : fail(status);
}

Status CommunicatorImpl::enqueue(PlannedOperation& operation) {
  if (operation.executor == nullptr) return copy_alone(operation);
  TUTTI_ASSIGN(operation.ticket, operation.executor->enqueue(operation));
  return Status::ok();
}

// Nobody compares its signature.
Status CommunicatorImpl::copy_alone(const PlannedOperation& operation) {
  const Call& call = operation.call;
  TUTTI_TRY(streams_->enter(call.stream, operation.stream));
  if (call.input != call.output && operation.sides.output > 0) {
    TUTTI_TRY(streams_->copy(call.output, call.input, operation.sides.output, call.stream));
  }
  return streams_->leave(call.stream, operation.stream);
}

// A call on the host returns when its operation has ended: nobody touches its buffers any more.
// Where the group has failed, executors end it soon.
Status CommunicatorImpl::wait_on_host(const PlannedOperation& operation) {
  while (operation.executor != nullptr && !operation.executor->has_ended(*operation.ticket)) {
    operation.executor->await(*operation.ticket);
  }
  collect_failure();
  if (failure_->failed()) {
    if (operation.executor != nullptr) operation.executor->await_users(operation);
    failure_->await_account(kAccountLimit);
  }
  const Status status = failure_->status();
  recorder_->end(operation.operation.sequence, status.is_ok());
  return status;
}

// Called once the operation's event is recorded: for what is still bound, that is in settle().
// Release: a thread that reads the number finds the event recorded.
void CommunicatorImpl::note_started(const PlannedOperation& operation) {
  if (operation.captured()) return;
  started_.store(operation.operation.sequence, std::memory_order_release);
}

Status CommunicatorImpl::settle(PlannedOperation& operation, const Status& handed_over) {
  if (operation.binding == nullptr) return Status::ok();
  const std::lock_guard lock(mutex_);
  const Status status = operation.executor->settle(operation, handed_over);
  if (!status.is_ok()) {
    return operation.executor->leaves_usable(operation, status) ? status : fail(status);
  }
  if (operation.ticket) note_started(operation);
  return status;
}

Status CommunicatorImpl::prepare_and_start(PlannedOperation& operation) {
  const std::lock_guard lock(mutex_);
  TUTTI_TRY(prepare_locked(operation));
  return start_locked(operation);
}

Status CommunicatorImpl::execute(const Call& call) {
  PlannedOperation operation{.call = call};
  const Status started = prepare_and_start(operation);
  const Status settled = settle(operation, Status::ok());
  return started.is_ok() ? settled : started;
}

Status CommunicatorImpl::execute_on_host(std::span<const Call* const> calls) {
  const std::lock_guard lock(mutex_);
  Status first;
  std::vector<PlannedOperation> begun;
  begun.reserve(calls.size());
  for (const Call* call : calls) {
    PlannedOperation operation{.call = *call};
    Status status = prepare_locked(operation);
    if (status.is_ok()) status = begin_locked(operation);
    if (status.is_ok()) begun.push_back(std::move(operation));
    // A later call must not follow one that has failed: at the same barrier it would show the flags
    // of another operation, which a peer that is late may be waiting for.
    collect_failure();
    if (first.is_ok()) first = status;
  }
  for (const PlannedOperation& operation : begun) {
    const Status status = wait_on_host(operation);
    if (first.is_ok()) first = status;
  }
  return first;
}

Status CommunicatorImpl::follow(Stream later, Stream earlier) {
  const std::lock_guard lock(mutex_);
  return streams_->follow(later, earlier);
}

Status CommunicatorImpl::execute(const PipelinedAllGatherMatmul& call) {
  const std::lock_guard lock(mutex_);
  if (failure_->failed()) return failure_->status();
  const NvtxRange range(call.text.c_str());
  if (pipelines_ == nullptr) pipelines_ = make_pipelines();
  return pipelines_->run(call);
}

std::unique_ptr<Pipelines> CommunicatorImpl::make_pipelines() {
  GroupServices& group = *this;
  const auto allocate = [this](std::size_t bytes) { return allocate_locked(bytes); };
  PipelineRecord record{
      .begin = [this](const PipelinedAllGatherMatmul& call) { return begin_pipeline(call); },
      .end = [this](std::uint64_t number, const Status& status) { end_pipeline(number, status); },
      .waits_for = recorder_->waits_for()};
  const auto barrier = [this] { return peers_->stream_barrier(); };
  auto backend =
      cuda() == nullptr
          ? make_host_pipelines(group, allocate, std::move(record))
          : make_cuda_pipelines(group, {.stream_barrier = barrier, .record = std::move(record)});
  return std::make_unique<Pipelines>(group, allocate, std::move(backend));
}

std::uint64_t CommunicatorImpl::begin_pipeline(const PipelinedAllGatherMatmul& call) {
  failure_->note({.sequence = ++sequence_,
                  .timeout = call.timeout,
                  .step_of = std::make_shared<const std::string>(call.text)});
  const std::string row = fmt::format("{}/{}", kAllGatherMatmul, to_string(call.algorithm));
  const bool host = backend() == Backend::kHost;
  recorder_->begin({.sequence = sequence_,
                    .row = row,
                    .count = call.matmul.m * call.matmul.k,
                    .dtype = call.matmul.dtype,
                    .op = std::nullopt,
                    .signature = signature_of(call),
                    .state = host ? OperationState::kRunning : OperationState::kEnqueued,
                    .numbered = !host});  // there they find by themselves who runs another one
  return sequence_;
}

void CommunicatorImpl::end_pipeline(std::uint64_t number, const Status& status) {
  if (backend() == Backend::kHost || !status.is_ok()) {
    recorder_->end(number, status.is_ok());
  } else {
    started_.store(number, std::memory_order_release);  // as in note_started()
  }
}

void CommunicatorImpl::record_start(const PlannedOperation& operation) {
  const bool host = backend() == Backend::kHost;
  const bool computes = reduces(operation.call.collective);
  recorder_->begin({.sequence = operation.operation.sequence,
                    .row = operation.operation.row->id,
                    .count = operation.operation.count,
                    .dtype = operation.operation.dtype,
                    .op = computes ? std::optional(operation.operation.op) : std::nullopt,
                    .signature = operation.signature,
                    .state = operation.captured() ? OperationState::kUntracked
                             : host               ? OperationState::kRunning
                                                  : OperationState::kEnqueued,
                    .numbered = host && is_numbered(operation)});
}

Status CommunicatorImpl::check_arrivals(bool capturing) {
  const std::lock_guard lock(mutex_);
  if (failure_->failed()) return failure_->status();
  return peers_->arrivals(capturing).status();
}

// Who has the lane may still need the group's lock.
Result<ArrivalLane::Turn> CommunicatorImpl::begin_arrivals(Stream stream, int flags) {
  ArrivalLane* lane = nullptr;
  {
    const std::lock_guard lock(mutex_);
    if (failure_->failed()) return failure_->status();
    TUTTI_ASSIGN(const StreamState state, streams_->state(stream));
    TUTTI_ASSIGN(lane, peers_->arrivals(state.capturing));
  }
  std::unique_lock alone = lane->lock();
  const std::lock_guard lock(mutex_);
  return lane->begin(std::move(alone), stream, flags);
}

// The caller's stream waits for the all-gather, which is the latest operation, or behind it.
Status CommunicatorImpl::end_arrivals(ArrivalLane::Turn turn, Stream stream) {
  const std::lock_guard lock(mutex_);
  const bool captured = turn.gathered != nullptr;
  if (!captured) TUTTI_TRY(streams_->enter(stream, {}));
  ArrivalLane* const lane = turn.lane;
  return lane->end(std::move(turn), stream);
}

// From any thread, also while another one's call waits: neither the lock nor the number that ranks
// compare is taken.
Status CommunicatorImpl::execute(const OneSidedCall& call) {
  if (failure_->failed()) return failure_->status();
  const NvtxRange range(to_string(call.kind).data());
  const Status status = peers_->execute(call);
  if (!status.is_ok()) return failure_->failed() ? failure_->status() : status;
  if (backend() == Backend::kHost) collect_failure();
  return failure_->status();
}

Result<device::Peers> CommunicatorImpl::device_peers(const void* address, std::size_t bytes) const {
  if (failure_->failed()) return failure_->status();
  return peers_->device_peers(address, bytes);
}

}  // namespace tutti
