// The fake's streams, events and graphs. Work is done at once, or when its graph is launched.
#include <sys/mman.h>

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <thread>

#include "base/try.hpp"
#include "base/units.hpp"
#include "fakes/fake_cuda.hpp"

namespace tutti {
namespace {

constexpr std::size_t kPageBytes = 4096;

bool all_open(const std::vector<FakeCuda::Gate>& gates) {
  return std::all_of(gates.begin(), gates.end(), [](const auto& gate) { return gate->load(); });
}

Status wait_for(const std::vector<FakeCuda::Gate>& gates) {
  while (!all_open(gates)) std::this_thread::sleep_for(std::chrono::microseconds(100));
  return Status::ok();
}

// Pages of shared memory read as zeros once the system has them back. Most of what is zeroed is
// staging that a test never uses: to touch all of it, and a sanitizer's shadow of it, takes longer
// than the test.
void zero(void* address, std::size_t bytes) {
  const std::size_t pages = bytes / kPageBytes * kPageBytes;
  const bool large = pages >= MiB && reinterpret_cast<std::uintptr_t>(address) % kPageBytes == 0;
  const std::size_t given = large && ::madvise(address, pages, MADV_REMOVE) == 0 ? pages : 0;
  std::memset(static_cast<std::byte*>(address) + given, 0, bytes - given);
}

}  // namespace

FakeCuda::GraphLife::~GraphLife() {
  for (const auto& callback : on_destroy) callback();
}

void* FakeCuda::new_object() {
  last_object_ += 16;
  return reinterpret_cast<void*>(last_object_);
}

// ---- Work

Status FakeCuda::transfer(void* to, const void* from, std::size_t bytes) {
  const int source = world_device(from);
  const int target = world_device(to);
  if (world_->lossy.contains({source, target})) return Status::ok();
  std::memmove(to, from, bytes);
  return Status::ok();
}

Status FakeCuda::submit(Stream stream, Work work) {
  {
    const std::lock_guard lock(mutex_);
    if (stream != nullptr && !streams_.contains(stream)) return refused("not a stream");
    if (stream != nullptr && streams_[stream].capture != 0) {
      graphs_[streams_[stream].graph].work.push_back(std::move(work));
      return Status::ok();
    }
  }
  return hold(stream, {[] { return true; }, std::move(work)});
}

Status FakeCuda::hold(Stream stream, Held held) {
  const std::lock_guard working(work_mutex_);
  do_held_work();
  {
    const std::lock_guard lock(mutex_);
    const auto state = streams_.find(stream);
    if (state != streams_.end() && (!state->second.held.empty() || !held.ready())) {
      state->second.held.push_back(std::move(held));
      return Status::ok();
    }
  }
  return held.work();
}

// As far as it is ready. What fails then, nobody hears of.
void FakeCuda::do_held_work() {
  const std::lock_guard working(work_mutex_);
  for (bool again = true; again;) {
    again = false;
    std::vector<Work> ready;
    {
      const std::lock_guard lock(mutex_);
      for (auto& [stream, state] : streams_) {
        if (state.held.empty() || !state.held.front().ready()) continue;
        ready.push_back(std::move(state.held.front().work));
        state.held.pop_front();
      }
    }
    for (const Work& work : ready) {
      (void)work();
      again = true;
    }
  }
}

Status FakeCuda::memory_operations(std::span<const CudaMemoryOperation> operations, Stream stream) {
  TUTTI_TRY(enter("memory_operations"));
  for (const CudaMemoryOperation& each : operations) {
    const auto write = [each, world = world_] {
      if (world->lost_writes.fetch_sub(1) > 0) return Status::ok();
      if (each.kind == CudaMemoryOperation::Kind::kWrite32) {
        std::atomic_ref(*each.word32).store(static_cast<std::uint32_t>(each.value));
      } else {
        std::atomic_ref(*each.word).store(each.value);
      }
      return Status::ok();
    };
    const auto reached = [each] {
      return static_cast<std::int64_t>(std::atomic_ref(*each.word).load() - each.value) >= 0;
    };
    const bool writes = each.kind != CudaMemoryOperation::Kind::kWaitAtLeast;
    // The fake's graphs do not wait.
    if (!writes) TUTTI_TRY(check_not_capturing(stream, "a wait for a word"));
    TUTTI_TRY(writes ? submit(stream, write)
                     : hold(stream, {reached, [] { return Status::ok(); }}));
  }
  return Status::ok();
}

Status FakeCuda::copy(void* to, const void* from, std::size_t bytes) {
  TUTTI_TRY(enter("copy"));
  return transfer(to, from, bytes);
}

Status FakeCuda::copy_async(void* to, const void* from, std::size_t bytes, Stream stream) {
  TUTTI_TRY(enter("copy_async"));
  if (before_copy) before_copy(bytes, stream);
  return submit(stream, [=, this] { return transfer(to, from, bytes); });
}

Status FakeCuda::copy_batch(std::span<const CudaCopy> copies, Stream stream) {
  TUTTI_TRY(enter("copy_batch"));
  TUTTI_ASSIGN(const CudaCapture capture, capture_of(stream));
  if (stream == nullptr || capture.state != CudaCapture::State::kNone) {
    return refused("copy_batch: in a capture, or on the null stream");
  }
  return submit(stream, [this, all = std::vector(copies.begin(), copies.end())] {
    for (std::size_t k = all.size(); k-- > 0;) {
      TUTTI_TRY(transfer(all[k].to, all[k].from, all[k].bytes));
    }
    return Status::ok();
  });
}

Status FakeCuda::set_async(void* to, int value, std::size_t bytes, Stream stream) {
  TUTTI_TRY(enter("set_async"));
  return submit(stream, [=] {
    if (value == 0) {
      zero(to, bytes);
    } else {
      std::memset(to, value, bytes);
    }
    return Status::ok();
  });
}

// The shape in the map's first words, for tests to look at.
Status FakeCuda::encode_tensor_map(const TensorMapShape& shape, TensorMap& map) {
  TUTTI_TRY(enter("encode_tensor_map"));
  if (shape.leading * size_of(shape.dtype) % 16 != 0) {
    return refused("encode_tensor_map: rows at no multiple of 16 bytes");
  }
  map = {{reinterpret_cast<std::uintptr_t>(shape.address), shape.columns, shape.rows, shape.leading,
          static_cast<std::uint64_t>(shape.box_columns),
          static_cast<std::uint64_t>(shape.box_rows)}};
  return Status::ok();
}

Status FakeCuda::load_kernel(const void* kernel, std::size_t) {
  TUTTI_TRY(enter("load_kernel"));
  return kernel == nullptr ? refused("load_kernel: null") : Status::ok();
}

Status FakeCuda::launch(const CudaLaunch& launch) {
  TUTTI_TRY(enter("launch"));
  TUTTI_ASSIGN(const CudaCapture capture, capture_of(launch.stream));
  // A kernel's arguments live only as long as this call.
  if (capture.state != CudaCapture::State::kNone) {
    if (on_captured_launch) return submit(launch.stream, on_captured_launch(launch));
    return {StatusCode::kUnsupported, "the fake cannot capture kernels"};
  }
  if (!on_launch) return {StatusCode::kUnsupported, "the fake runs no kernels"};
  return on_launch(launch);
}

// ---- Streams and events

Result<Stream> FakeCuda::create_stream(int device) {
  TUTTI_TRY(enter("create_stream"));
  TUTTI_TRY(check_device(device));
  const std::lock_guard lock(mutex_);
  if (free_streams_.empty()) free_streams_.push_back(static_cast<Stream>(new_object()));
  Stream stream = free_streams_.back();
  free_streams_.pop_back();
  streams_[stream] = {.id = ++last_stream_};
  return stream;
}

Status FakeCuda::destroy_stream(Stream stream) {
  TUTTI_TRY(enter("destroy_stream"));
  const std::lock_guard lock(mutex_);
  if (streams_.erase(stream) == 0) return refused("destroy_stream: not a stream");
  free_streams_.push_back(stream);
  return Status::ok();
}

Result<std::uint64_t> FakeCuda::stream_id(Stream stream) {
  TUTTI_TRY(enter("stream_id"));
  const std::lock_guard lock(mutex_);
  const auto state = streams_.find(stream);
  if (state == streams_.end() && stream != nullptr) return refused("stream_id: not a stream");
  if (state != streams_.end() && state->second.capture != 0) {
    return refused("stream_id: not permitted while the stream is captured");
  }
  if (state != streams_.end()) return state->second.id;
  return std::uint64_t{0};
}

// As the driver does: waiting for a stream that is being captured spoils the capture.
Status FakeCuda::check_not_capturing(Stream stream, std::string_view method) {
  const std::lock_guard lock(mutex_);
  const auto state = streams_.find(stream);
  if (state == streams_.end())
    return stream == nullptr ? Status::ok() : refused(fmt::format("{}: not a stream", method));
  if (state->second.capture == 0) return Status::ok();
  state->second.invalid = true;
  return refused(fmt::format("{} is not permitted while the stream is captured", method));
}

void FakeCuda::add_gate(Stream stream, Gate gate) {
  const std::lock_guard lock(mutex_);
  const auto state = streams_.find(stream);
  if (state == streams_.end() || state->second.capture != 0) return;
  std::vector<Gate>& gates = state->second.gates;
  std::erase_if(gates, [](const Gate& each) { return each->load(); });
  gates.push_back(std::move(gate));
}

std::vector<FakeCuda::Gate> FakeCuda::gates_of(Stream stream) const {
  const std::lock_guard lock(mutex_);
  const auto state = streams_.find(stream);
  return state == streams_.end() ? std::vector<Gate>{} : state->second.gates;
}

std::vector<FakeCuda::Gate> FakeCuda::gates_before(CudaEvent event) const {
  const std::lock_guard lock(mutex_);
  const auto state = events_.find(event);
  return state == events_.end() ? std::vector<Gate>{} : state->second.gates;
}

Status FakeCuda::synchronize(Stream stream) {
  TUTTI_TRY(enter("synchronize"));
  TUTTI_TRY(check_not_capturing(stream, "synchronize"));
  while (!take_all_held(stream)) std::this_thread::sleep_for(std::chrono::microseconds(100));
  return wait_for(gates_of(stream));
}

// Whether nothing is held of the stream any more.
bool FakeCuda::take_all_held(Stream stream) {
  do_held_work();
  const std::lock_guard lock(mutex_);
  const auto state = streams_.find(stream);
  return state == streams_.end() || state->second.held.empty();
}

Result<bool> FakeCuda::stream_finished(Stream stream) {
  TUTTI_TRY(enter("stream_finished"));
  TUTTI_TRY(check_not_capturing(stream, "stream_finished"));
  return take_all_held(stream) && all_open(gates_of(stream));
}

Status FakeCuda::wait_event(Stream stream, CudaEvent event) {
  TUTTI_TRY(enter("wait_event"));
  for (Gate& gate : gates_before(event)) add_gate(stream, std::move(gate));
  TUTTI_TRY(join_capture(stream, event));
  const Gate reached = reached_by_stream(event);
  return hold(stream, {[reached] { return reached == nullptr || reached->load(); },
                       [] { return Status::ok(); }});
}

FakeCuda::Gate FakeCuda::reached_by_stream(CudaEvent event) const {
  const std::lock_guard lock(mutex_);
  const auto state = events_.find(event);
  return state == events_.end() ? nullptr : state->second.reached;
}

// A stream that waits for a captured event becomes part of that capture, until the capture ends.
Status FakeCuda::join_capture(Stream stream, CudaEvent event) {
  const std::lock_guard lock(mutex_);
  const auto state = streams_.find(stream);
  const auto source = events_.find(event);
  if (state == streams_.end() || source == events_.end()) return Status::ok();
  const std::uint64_t capture = source->second.capture;
  if (capture == state->second.capture) return Status::ok();
  if (capture == 0 || state->second.capture != 0) {
    return refused("wait_event: the event is not of the stream's capture");
  }
  state->second.capture = capture;
  state->second.graph = source->second.graph;
  return Status::ok();
}

Result<CudaEvent> FakeCuda::create_event(bool) {
  TUTTI_TRY(enter("create_event"));
  const std::lock_guard lock(mutex_);
  const CudaEvent event = new_object();
  events_[event] = {};
  return event;
}

Status FakeCuda::destroy_event(CudaEvent event) {
  TUTTI_TRY(enter("destroy_event"));
  const std::lock_guard lock(mutex_);
  return events_.erase(event) == 1 ? Status::ok() : refused("destroy_event: not an event");
}

Status FakeCuda::record_event(CudaEvent event, Stream stream) {
  TUTTI_TRY(enter("record_event"));
  auto reached = std::make_shared<std::atomic<bool>>(false);
  {
    const std::lock_guard lock(mutex_);
    const auto state = streams_.find(stream);
    const auto target = events_.find(event);
    if (target == events_.end()) return refused("record_event: not an event");
    if (state != streams_.end()) {
      target->second.capture = state->second.capture;
      target->second.graph = state->second.graph;
      if (state->second.capture == 0) target->second.reached = reached;
    }
  }
  return submit(stream, [this, event, stream, reached] {
    std::vector<Gate> gates = gates_of(stream);
    const std::lock_guard lock(mutex_);
    reached->store(true);
    const auto target = events_.find(event);
    if (target == events_.end()) return Status::ok();
    target->second.time = std::chrono::steady_clock::now();
    target->second.gates = std::move(gates);
    target->second.capture = 0;
    target->second.graph = nullptr;
    return Status::ok();
  });
}

bool FakeCuda::has_reached(CudaEvent event) {
  do_held_work();
  const Gate reached = reached_by_stream(event);
  return reached == nullptr || reached->load();
}

Status FakeCuda::synchronize_event(CudaEvent event) {
  TUTTI_TRY(enter("synchronize_event"));
  while (!has_reached(event)) std::this_thread::sleep_for(std::chrono::microseconds(100));
  return wait_for(gates_before(event));
}

Result<bool> FakeCuda::event_finished(CudaEvent event) {
  TUTTI_TRY(enter("event_finished"));
  return has_reached(event) && all_open(gates_before(event));
}

Result<float> FakeCuda::elapsed_us(CudaEvent from, CudaEvent to) {
  TUTTI_TRY(enter("elapsed_us"));
  const std::lock_guard lock(mutex_);
  if (!events_.contains(from) || !events_.contains(to)) return refused("not an event");
  return std::chrono::duration<float, std::micro>(events_[to].time - events_[from].time).count();
}

// ---- Graphs

Result<CudaCapture> FakeCuda::capture_of(Stream stream) {
  TUTTI_TRY(enter("capture_of"));
  const std::lock_guard lock(mutex_);
  const auto state = streams_.find(stream);
  if (state == streams_.end() || state->second.capture == 0) return CudaCapture{};
  if (state->second.invalid) return CudaCapture{CudaCapture::State::kInvalidated, 0, nullptr};
  return CudaCapture{CudaCapture::State::kActive, state->second.capture, state->second.graph};
}

Status FakeCuda::begin_capture(Stream stream) {
  TUTTI_TRY(enter("begin_capture"));
  const std::lock_guard lock(mutex_);
  const auto state = streams_.find(stream);
  if (state == streams_.end()) return refused("begin_capture: not a stream that can be captured");
  if (state->second.capture != 0) return refused("begin_capture: the stream is being captured");
  const CudaGraph graph = new_object();
  graphs_[graph] = {};
  state->second.capture = world_->next_number();
  state->second.graph = graph;
  state->second.invalid = false;
  return Status::ok();
}

Result<CudaGraph> FakeCuda::end_capture(Stream stream) {
  TUTTI_TRY(enter("end_capture"));
  decltype(graphs_)::node_type spoiled;  // its callbacks run without the lock
  const std::lock_guard lock(mutex_);
  const auto found = streams_.find(stream);
  if (found == streams_.end() || found->second.capture == 0)
    return refused("end_capture: the stream is not being captured");
  const StreamState state = found->second;
  for (auto& [each, joined] : streams_) {
    if (joined.capture != state.capture) continue;
    joined.capture = 0;
    joined.graph = nullptr;
    joined.invalid = false;
  }
  if (!state.invalid) return state.graph;
  spoiled = graphs_.extract(state.graph);
  return refused("end_capture: the capture was invalidated");
}

Result<CudaGraphExec> FakeCuda::instantiate(CudaGraph graph) {
  TUTTI_TRY(enter("instantiate"));
  const std::lock_guard lock(mutex_);
  const auto found = graphs_.find(graph);
  if (found == graphs_.end()) return refused("instantiate: not a graph");
  const CudaGraphExec exec = new_object();
  execs_[exec] = found->second;
  return exec;
}

Status FakeCuda::launch_graph(CudaGraphExec exec, Stream stream) {
  TUTTI_TRY(enter("launch_graph"));
  TUTTI_TRY(check_not_capturing(stream, "launch_graph"));
  std::vector<Work> work;
  {
    const std::lock_guard lock(mutex_);
    const auto found = execs_.find(exec);
    if (found == execs_.end()) return refused("launch_graph: not an instantiated graph");
    work = found->second.work;
  }
  for (const Work& node : work) TUTTI_TRY(node());
  return Status::ok();
}

Status FakeCuda::destroy_graph(CudaGraph graph) {
  TUTTI_TRY(enter("destroy_graph"));
  decltype(graphs_)::node_type ended;
  const std::lock_guard lock(mutex_);
  ended = graphs_.extract(graph);
  return ended.empty() ? refused("destroy_graph: not a graph") : Status::ok();
}

Status FakeCuda::destroy_graph_exec(CudaGraphExec exec) {
  TUTTI_TRY(enter("destroy_graph_exec"));
  decltype(execs_)::node_type ended;
  const std::lock_guard lock(mutex_);
  ended = execs_.extract(exec);
  return ended.empty() ? refused("destroy_graph_exec: not an instantiated graph") : Status::ok();
}

Status FakeCuda::retain_on_graph(CudaGraph graph, std::function<void()> on_destroy) {
  TUTTI_TRY(enter("retain_on_graph"));
  const std::lock_guard lock(mutex_);
  const auto found = graphs_.find(graph);
  if (found == graphs_.end()) return refused("retain_on_graph: not a graph");
  found->second.life->on_destroy.push_back(std::move(on_destroy));
  return Status::ok();
}

}  // namespace tutti
