#include "executors/peer/executor.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <thread>

#include "base/knobs.hpp"
#include "base/log.hpp"
#include "base/try.hpp"
#include "base/units.hpp"
#include "bootstrap/bootstrap.hpp"
#include "drivers/cuda.hpp"
#include "drivers/shared_memory.hpp"
#include "executors/peer/address_exchange.hpp"
#include "memory/device_scope.hpp"
#include "memory/symmetric_heap.hpp"
#include "topology/topology.hpp"

namespace tutti {
namespace {

constexpr int kLateBuffers = 4096;
// Smaller messages are copied to staging in less time than ranks tell each other addresses.
constexpr std::size_t kLeastAddressedBytes = 4 * KiB;

Bytes to_message(const std::vector<std::uint64_t>& words) {
  const auto* bytes = reinterpret_cast<const std::byte*>(words.data());
  return {bytes, bytes + words.size() * sizeof(std::uint64_t)};
}

std::vector<std::uint64_t> from_message(const Bytes& bytes) {
  std::vector<std::uint64_t> words(bytes.size() / sizeof(std::uint64_t));
  std::memcpy(words.data(), bytes.data(), words.size() * sizeof(std::uint64_t));
  return words;
}

}  // namespace

Result<std::unique_ptr<PeerExecutor>> PeerExecutor::create(GroupServices& group,
                                                           const ExecutorParts& parts) {
  const bool cuda = group.cuda() != nullptr;
  const int late_buffers = cuda ? kLateBuffers : 0;
  const int ranks = group.bootstrap().size();
  std::unique_ptr<PeerExecutor> made(
      new PeerExecutor(group, layout_from(Knobs::process(), cuda, ranks), late_buffers));
  made->rank_ = group.bootstrap().rank();
  made->ranks_ = ranks;
  const EngineSizes sizes{
      .ranks = made->ranks_,
      .channels = made->layout_.channels(),
      .late_buffers = late_buffers,
      .timeout_ns = static_cast<std::uint64_t>(std::chrono::nanoseconds(group.timeout()).count())};
  if (cuda) {
    TUTTI_ASSIGN(made->engine_,
                 make_cuda_engine(*group.cuda(), group.device(), group.streams(), sizes));
  } else {
    made->engine_ = make_host_engine(sizes, parts.mutation, parts.waits_for);
  }
  return made;
}

void PeerExecutor::take_memory(std::shared_ptr<SymmetricSegment> early) {
  early_ = std::move(early);
  if (early_ == nullptr) own_ = nullptr;
}

Result<GroupServices::OwnMemory> PeerExecutor::scratch() {
  if (early_ == nullptr) return GroupServices::OwnMemory{};
  TUTTI_TRY(make_memory(group_.deadline(), "memory of the group"));
  return GroupServices::OwnMemory{own_.get(), own_->local + layout_.staging_offset(0),
                                  layout_.staging_bytes};
}

Status PeerExecutor::prepare_all(unsigned) {
  return early_ == nullptr ? Status::ok() : make_memory(group_.deadline(), "prepare()");
}

// What a rank sends to itself concerns no other one, and passes through nothing.
bool PeerExecutor::needs_memory(const Call& call) const {
  if (call.messages.empty()) return true;
  const auto is_own = [this](const MessageCall& message) { return message.peer == rank(); };
  return !layout_.early_messages && !std::ranges::all_of(call.messages, is_own);
}

// Where one rank has no room for its part, no rank keeps any, and the next call tries again.
Status PeerExecutor::make_memory(Deadline deadline, const std::string& whose) {
  if (own_ != nullptr) return Status::ok();
  const std::size_t bytes = layout_.late_bytes();
  auto made = group_.allocate_own(bytes + engine_->working_bytes(), deadline);
  TUTTI_TRY(group_.exchanged(made.status().with_context(whose)));
  own_ = std::move(made).value();
  engine_->work_in(own_->local + bytes);
  return Status::ok();
}

Status PeerExecutor::make_memory_for(const PlannedOperation& operation) {
  if (!needs_memory(operation.call)) return Status::ok();
  if (operation.captured()) {
    return {StatusCode::kUnsupported,
            "the first operation of a communicator makes its memory, which a capture forbids: call "
            "prepare(), start_capture() or one operation before the capture"};
  }
  return make_memory(Deadline(group_.timeout_of(operation.operation).value),
                     to_string(operation.operation));
}

// What is asked before a capture has a channel, is answered for the first one.
int PeerExecutor::channel_of(std::uint64_t capture_id) const {
  const CaptureLease* const lease = captures_.find(capture_id);
  return lease == nullptr ? 1 : lease->channel;
}

// Whether peers reach every buffer of this group, wherever it lies.
bool PeerExecutor::shares_addresses() const {
  const Topology& topology = group_.topology();
  return addressing_ && group_.cuda() == nullptr && topology.one_process && topology.nodes() == 1 &&
         size() > 1;
}

// Where ranks share a process and not a GPU: see SymmetricSegment::copies_queue.
bool PeerExecutor::copies_may_queue() const {
  const Topology& topology = group_.topology();
  return topology.processes < size() && topology.ranks_per_gpu < size();
}

void PeerExecutor::add_facts(Request& request, const Buffers* buffers) const {
  const bool is_call = buffers != nullptr && !is_pairwise(request.collective);
  // What a fused operation reads itself has to be symmetric.
  request.by_address = !request.symmetric() && !(is_call && buffers->is_step) &&
                       request.bytes() >= kLeastAddressedBytes && shares_addresses();
  const int channel = !request.capturing ? 0 : is_call ? channel_of(buffers->capture_id) : 1;
  if (is_call) {
    // Counts on the device do not say how far the buffers reach.
    request.registers_late = request.capturing && registering_ && !request.counts_on_device;
    // What a fused operation needs may lie behind the end of a rank's buffer.
    request.registers_now = request.registers_late && !buffers->is_step && !copies_may_queue();
  }
  request.staging_bytes = layout_.staging_size(channel);
  request.packet_bytes = layout_.packet_room(channel);
  request.ring_bytes = layout_.ring_bytes(channel);
  request.has_lanes = layout_.message_slot_bytes(size()) > 0;
  request.has_stream_barrier = !no_barrier_;
}

// The first operation of a capture agrees on a channel.
bool PeerExecutor::may_exchange(const Call& call) const {
  const auto stream = group_.streams().state(call.stream);
  if (!stream.is_ok()) return false;
  if (!stream->capturing) return may_open_barrier(call);
  if (own_ == nullptr || !call.messages.empty()) return false;
  return registering_ || captures_.find(stream->capture_id) == nullptr;
}

// Whether the call may be planned with a stream barrier before there is one.
bool PeerExecutor::may_open_barrier(const Call& call) const {
  if (barrier_ != nullptr || no_barrier_ || group_.cuda() == nullptr) return false;
  return admits_stream_barrier(barrier_bytes_, call.options.sm_budget, call.bytes());
}

Status PeerExecutor::open_barrier() {
  auto opened = group_.exchanged(StreamBarrier::open({.bootstrap = group_.bootstrap(),
                                                      .cuda = *group_.cuda(),
                                                      .device = group_.device(),
                                                      .shared_memory = real_shared_memory()},
                                                     group_.deadline()));
  if (opened.is_ok()) {
    barrier_ = std::move(opened).value();
    watched_ = barrier_.get();
    return Status::ok();
  }
  if (group_.has_failed()) return opened.status();
  no_barrier_ = true;
  why_no_barrier_ = opened.status().message();
  group_.forget_plans();
  log_once(
      rank() == 0 ? LogLevel::kWarn : LogLevel::kInfo,
      fmt::format("ranks meet by kernels, not by stream memory operations: {}", why_no_barrier_));
  return Status::ok();
}

Result<StreamBarrier*> PeerExecutor::stream_barrier() {
  if (group_.cuda() == nullptr) {
    return Status(StatusCode::kUnsupported, "no stream memory operations");
  }
  if (barrier_ == nullptr && !no_barrier_) TUTTI_TRY(open_barrier());
  if (barrier_ != nullptr) return barrier_.get();
  return Status(StatusCode::kUnsupported,
                fmt::format("no stream memory operations: {}", why_no_barrier_));
}

// The first operation of a capture that needs a channel agrees on it: one exchange among the hosts,
// and no CUDA call that a capture forbids.
Result<Executor::Ready> PeerExecutor::join_capture(const PlannedOperation& operation) {
  const StreamState& stream = operation.stream;
  const Stream on = operation.call.stream;
  std::vector<std::vector<std::uint64_t>> offers = {captures_.offer(on)};
  if (size() > 1) {
    TUTTI_ASSIGN(const auto answers, group_.exchanged(group_.bootstrap().all_gather(
                                         to_message(offers.front()), group_.deadline())));
    offers.clear();
    for (const Bytes& answer : answers) offers.push_back(from_message(answer));
  }
  const int channel = Captures::chosen(offers);
  captures_.open(stream.capture_id, on, channel);
  const Status retained =
      group_.cuda()->retain_on_graph(stream.graph, captures_.on_graph_destroyed(stream.capture_id));
  if (!retained.is_ok()) return group_.fail(retained);
  return channel == 1 ? Ready::kYes : Ready::kPlanAgain;
}

Result<Executor::Ready> PeerExecutor::prepare(PlannedOperation& operation) {
  if (own_ == nullptr) TUTTI_TRY(make_memory_for(operation));
  if (operation.plan.stream_barrier && barrier_ == nullptr) {
    TUTTI_TRY(open_barrier());
    if (no_barrier_) return Ready::kPlanAgain;
  }
  const bool joins = operation.captured() && operation.call.messages.empty() &&
                     captures_.find(operation.stream.capture_id) == nullptr;
  if (joins) {
    TUTTI_ASSIGN(const Ready ready, join_capture(operation));
    if (ready != Ready::kYes) return ready;
  }
  Launch& launch = launches_.take();
  const Status bound = bind(operation, launch);
  if (!bound.is_ok()) {
    launches_.give_back(launch);
    return bound;
  }
  operation.binding = &launch;
  return Ready::kYes;
}

Status PeerExecutor::bind(PlannedOperation& operation, Launch& launch) {
  const Call& call = operation.call;
  launch.channel = 0;
  launch.capture = 0;
  launch.late_slot = -1;
  launch.registered.reset();
  if (!call.messages.empty()) {
    TUTTI_TRY(add_messages(operation, launch));
  } else {
    if (is_uneven(call.collective)) {
      launch.counts = call.lengths.counts(call.collective, call.dtype);
    }
    TUTTI_TRY(find_channel(operation, launch));
  }
  fill_args(operation, launch);
  operation.signature = launch.args.signature;
  return Status::ok();
}

// Flags of one graph never look like those of another one of the same channel, so that replays
// which overlap are found. Overlapping launches of packets are found by their count.
Status PeerExecutor::find_channel(const PlannedOperation& operation, Launch& launch) {
  if (!operation.captured()) return Status::ok();
  CaptureLease* const lease = captures_.find(operation.stream.capture_id);
  if (lease == nullptr) return {StatusCode::kInternal, "a captured operation has no channel"};
  launch.channel = lease->channel;
  if (operation.plan.algorithm->packets == nullptr) launch.capture = lease->number;
  if (operation.plan.access != BufferAccess::kLate) return Status::ok();
  return operation.plan.algorithm->program != nullptr ? register_now(operation, *lease, launch)
                                                      : note_late(operation, *lease, launch);
}

Result<Ticket> PeerExecutor::enqueue(PlannedOperation& operation) {
  const Launch& launch = release(operation);  // it is passed by value, or read before this returns
  const Stream stream = operation.call.stream;
  const Arrivals& arrivals = operation.call.arrivals;
  TUTTI_TRY(group_.streams().enter(stream, operation.stream));
  if (arrivals.words != nullptr) {
    TUTTI_TRY(group_.streams().enter(arrivals.kernel_stream, operation.stream));
  }
  const Status run =
      engine_->run(operation.operation, launch.args,
                   {.threads = operation.plan.threads,
                    .stream = stream,
                    .barrier = operation.plan.stream_barrier ? barrier_.get() : nullptr,
                    .arrivals = arrivals,
                    .by_address = operation.plan.access == BufferAccess::kByAddress});
  // A part of it may have been enqueued even so.
  const Status left = group_.streams().leave(stream, operation.stream);
  TUTTI_TRY(run);
  TUTTI_TRY(left);
  return operation.operation.sequence;
}

// Only what was not enqueued is still bound.
Status PeerExecutor::settle(PlannedOperation& operation, const Status&) {
  (void)release(operation);
  return Status::ok();
}

PeerExecutor::Launch& PeerExecutor::release(PlannedOperation& operation) {
  auto& launch = static_cast<Launch&>(*std::exchange(operation.binding, nullptr));
  launches_.give_back(launch);
  return launch;
}

void PeerExecutor::await_users(const PlannedOperation& operation) {
  if (operation.plan.access != BufferAccess::kByAddress) return;
  PeerPointers channels;
  for (int r = 0; r < size(); ++r) channels.at[r] = own_->at[r] + layout_.channel_offset(0);
  AddressExchange::await_users(channels, rank(), size());
}

// Operations end in the order of their start: an event stands behind the latest alone.
bool PeerExecutor::has_ended(Ticket) { return group_.streams().caught_up(); }

std::uint64_t PeerExecutor::ended_through(std::uint64_t started) {
  return group_.streams().caught_up() ? started : 0;
}

Status PeerExecutor::check() {
  if (group_.has_failed()) return Status::ok();
  check_barrier();
  if (group_.has_failed()) return Status::ok();
  ArrivalLane* const lane = watched_arrivals_;
  const auto late = lane == nullptr ? std::nullopt : lane->late_chunk();
  if (!late) return Status::ok();
  const RankNames& names = group_.bootstrap().names();
  if (late->shard >= ranks_) {
    return {StatusCode::kTimeout,
            fmt::format("a matmul on {} waited too long for the ranks to meet (epoch {}, seen {})",
                        names.of(rank()), late->number, late->seen)};
  }
  return {
      StatusCode::kTimeout,
      fmt::format("a matmul on {} waited too long for chunk {} of the A of {} (epoch {}, seen {})",
                  names.of(rank()), late->chunk, names.of(late->shard), late->number, late->seen)};
}

// Acquire: a rank that has left sent before all that it ever will.
void PeerExecutor::check_barrier() {
  StreamBarrier* const barrier = watched_;
  if (barrier == nullptr) return;
  const std::chrono::nanoseconds usual = group_.timeout();
  const std::uint32_t notices =
      std::atomic_ref(*engine_->memory().notices).load(std::memory_order_acquire);
  const auto record = barrier->look(static_cast<std::uint64_t>(usual.count()), notices);
  if (record) group_.report(*record);
}

// The release comes before anything that enqueues, which may block until a stream goes on.
void PeerExecutor::hear_of_failure() {
  if (ArrivalLane* const lane = watched_arrivals_) lane->release();
  cancel();
  engine_->poison();
}

// Whoever finds its stream released finds what it waited for, too.
void PeerExecutor::cancel() {
  StreamBarrier* const barrier = watched_;
  if (barrier == nullptr) return;
  if (const auto record = barrier->waiting()) group_.report(*record);
  barrier->release();
}

void PeerExecutor::drain(Deadline deadline) {
  const bool gated = arrivals_ != nullptr && !arrivals_->drain(deadline);
  const auto left = std::chrono::duration_cast<std::chrono::nanoseconds>(deadline.left());
  if (engine_->drain(static_cast<std::uint64_t>(left.count())) && !gated) return;
  (void)group_.fail({StatusCode::kTimeout, "destroyed while an operation was still running"});
  if (gated) (void)arrivals_->drain(Deadline(std::chrono::seconds(1)));  // it was released
  if (barrier_ == nullptr) return;
  // What a stream awaited has been released by that.
  constexpr std::chrono::nanoseconds kReleased = std::chrono::seconds(1);
  if (!engine_->drain(kReleased.count())) barrier_->leave_behind();
}

Result<ArrivalLane*> PeerExecutor::arrivals(bool capturing) {
  if (arrivals_ != nullptr) return arrivals_.get();
  if (group_.cuda() == nullptr) {
    return Status(StatusCode::kUnsupported, "no copy engines that announce what they bring");
  }
  if (group_.heap() == nullptr) return Status(StatusCode::kUnsupported, group_.why_no_heap());
  TUTTI_ASSIGN(const CudaDeviceProperties gpu, group_.cuda()->properties(group_.device()));
  if (!gpu.stream_memory_operations) {
    return Status(StatusCode::kUnsupported, "the GPU has no 64-bit stream memory operations");
  }
  if (capturing) {
    return Status(StatusCode::kUnsupported, "call plan() of such a call once before the capture");
  }
  const DeviceScope scope(*group_.cuda(), group_.device());
  TUTTI_TRY(scope.status());
  TUTTI_ASSIGN(arrivals_, ArrivalLane::create(*group_.cuda(), group_.device()));
  watched_arrivals_ = arrivals_.get();
  return arrivals_.get();
}

Status PeerExecutor::set_timeout(std::chrono::nanoseconds timeout) {
  return engine_->set_timeout(static_cast<std::uint64_t>(timeout.count()));
}

}  // namespace tutti
