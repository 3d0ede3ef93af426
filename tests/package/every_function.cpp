// Calls every function that libtutti has for programs, with one rank on the host. It proves that
// programs can link them, and surface.py compares its list of calls with what the headers declare
// and what libtutti.so exports.
#include <tutti/tutti.hpp>

#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <utility>
#include <vector>

namespace {

using tutti::Communicator;
using tutti::Status;
using tutti::StatusCode;

int failures = 0;

void expect(bool holds, const char* what) {
  if (holds) return;
  std::printf("%s: not as expected\n", what);
  ++failures;
}

void expect(const Status& status, const char* what, StatusCode code = StatusCode::kOk) {
  if (status.code() == code) return;
  std::printf("%s: %s\n", what, status.to_string().c_str());
  ++failures;
}

template <class T>
T take(tutti::Result<T> result, const char* what) {
  expect(result.status(), what);
  if (!result) std::exit(1);
  return std::move(*result);
}

void names_and_types() {
  using namespace tutti;
  expect(std::string_view(version()) == TUTTI_VERSION_STRING, "version");
  expect(to_string(StatusCode::kTimeout) == "timeout", "to_string(StatusCode)");
  expect(to_string(DataType::kBfloat16) == "bf16", "to_string(DataType)");
  expect(to_string(OpKind::kMax) == "max", "to_string(OpKind)");
  expect(to_string(Backend::kHost) == "host", "to_string(Backend)");
  expect(!to_string(PlanSource::kModel).empty(), "to_string(PlanSource)");
  expect(size_of(DataType::kInt32) == 4, "size_of");
  expect(is_floating(DataType::kFloat16) && !is_floating(DataType::kInt8), "is_floating");
  expect(take(parse_data_type("half"), "parse_data_type") == DataType::kFloat16, "half");
  expect(take(parse_op("sum"), "parse_op") == OpKind::kSum, "sum");
  expect(take(parse_backend("cuda"), "parse_backend") == Backend::kCuda, "cuda");
  expect(take(parse_matrix_layout("column"), "parse_matrix_layout") == MatrixLayout::kColumnMajor,
         "column");
  expect(to_string(MatrixLayout::kRowMajor) == "row", "to_string(MatrixLayout)");
  const Status failure(StatusCode::kTimeout, "late");
  expect(failure.with_context("here").to_string() == "timeout: here: late", "with_context");
}

// A group of one by each of the three ways. The last one is worked with.
Communicator make_group() {
  const tutti::CommunicatorOptions host = {.backend = tutti::Backend::kHost};
  const auto id = take(tutti::UniqueId::create(), "UniqueId::create");
  const auto same = take(tutti::UniqueId::from_text(id.text()), "from_text");
  expect(tutti::UniqueId::create_tcp("127.0.0.1", 0).status(), "create_tcp to port 0");
  Communicator group = take(Communicator::create(same, 0, 1, host), "create");
  setenv("TUTTI_RANK", "0", 1);
  setenv("TUTTI_SIZE", "1", 1);
  group = take(Communicator::create_from_environment(host), "create_from_environment");
  const std::vector<int> no_gpu = {-1};
  auto in_process = take(Communicator::create_in_process(no_gpu, host), "create_in_process");
  in_process = take(Communicator::create_in_process(1, host), "create_in_process");
  return std::move(in_process[0]);
}

void communicator(Communicator& group) {
  expect(group.rank() == 0 && group.size() == 1 && group.device() == -1, "rank, size and device");
  expect(group.backend() == tutti::Backend::kHost, "backend");
  const auto part = take(group.split(0, 0), "split");
  expect(part->size() == 1, "a group that was split off");
  const auto survivors = take(group.shrink(), "shrink");
  expect(survivors.communicator->size() == 1 && survivors.missing.empty(), "a group that shrank");
  expect(group.start_capture(), "start_capture on the host", StatusCode::kUnsupported);
  expect(group.finish_capture(), "finish_capture on the host", StatusCode::kInvalidArgument);
  expect(group.prepare(), "prepare");
  expect(group.prepare_nccl(), "prepare_nccl on the host", StatusCode::kUnavailable);
  expect(group.set_timeout(std::chrono::seconds(20)), "set_timeout");
  expect(group.status(), "status");
  const auto plan = take(group.plan("all_reduce", {.count = 100}), "plan");
  expect(to_string(plan).find("all_reduce") != std::string::npos, "to_string(Plan)");
  expect(!tutti::explain(group, "all_reduce", {.count = 100}).empty(), "explain");
}

void memory(Communicator& group) {
  const auto before = group.counters();
  const auto block = take(group.allocate(4096), "allocate");
  expect(group.counters().allocations == before.allocations + 1, "counters");
  expect(block.size() == 4096 && block.peer(0) == block.data(), "an allocated block");
  const auto local = take(group.allocate_local(4096), "allocate_local");
  expect(local.size() == 4096 && local.data() != nullptr, "local memory");
  std::vector<float> own(1024);
  const auto registered = take(group.register_memory(own.data(), 4096), "register_memory");
  expect(registered.data() == own.data() && registered.zero_copy(), "registered memory");
}

void pool(Communicator& group) {
  tutti::SymmetricPool first(group), pool(std::move(first));
  first = std::move(pool);
  pool = std::move(first);
  auto taken = take(pool.take(5000), "take");
  tutti::SymmetricBlock block;
  block = std::move(taken);
  expect(block.data() != nullptr && block.bytes() == 5000, "a taken block");
  expect(block.give_back(nullptr), "give_back");
  expect(pool.use().blocks == 1, "use");
  pool.trim();
  expect(pool.use().blocks == 0, "trim");
}

struct Buffers {
  static constexpr std::size_t kCount = 1024;
  std::vector<float> input = std::vector<float>(kCount, 3), output = std::vector<float>(kCount);

  // With one rank every collective is a copy.
  void expect_copied(const Status& status, const char* what) {
    expect(status, what);
    expect(output == input, what);
    output.assign(kCount, 0);
  }
};

void collectives(Communicator& group) {
  Buffers b;
  const float* const in = b.input.data();
  float* const out = b.output.data();
  const std::size_t n = Buffers::kCount;
  b.expect_copied(all_reduce(group, {.input = in, .output = out, .count = n}), "all_reduce");
  b.expect_copied(all_gather(group, {.input = in, .output = out, .count = n}), "all_gather");
  b.expect_copied(reduce_scatter(group, {.input = in, .output = out, .count = n}),
                  "reduce_scatter");
  b.expect_copied(all_to_all(group, {.input = in, .output = out, .count = n}), "all_to_all");
  b.expect_copied(broadcast(group, {.input = in, .output = out, .count = n}), "broadcast");
  b.expect_copied(reduce(group, {.input = in, .output = out, .count = n}), "reduce");
  b.expect_copied(gather(group, {.input = in, .output = out, .count = n}), "gather");
  b.expect_copied(scatter(group, {.input = in, .output = out, .count = n}), "scatter");
  b.expect_copied(all_gather_v(group, {.input = in, .output = out, .counts = &n}), "all_gather_v");
  b.expect_copied(reduce_scatter_v(group, {.input = in, .output = out, .counts = &n}),
                  "reduce_scatter_v");
  b.expect_copied(
      all_to_all_v(
          group,
          {.input = in, .output = out, .send_counts = &n, .recv_counts = &n, .max_count = n}),
      "all_to_all_v");
  expect(barrier(group), "barrier");
  tutti::group_start();
  expect(send(group, {.buffer = in, .count = n}), "send");
  expect(recv(group, {.buffer = out, .count = n}), "recv");
  b.expect_copied(tutti::group_end(), "group_end");
}

void norm(Communicator& group) {
  Buffers b;
  const std::vector<float> weight(Buffers::kCount, 2);
  std::vector<float> residual(Buffers::kCount);
  expect(all_reduce_residual_rms_norm(group, {.input = b.input.data(),
                                              .residual = residual.data(),
                                              .weight = weight.data(),
                                              .residual_output = residual.data(),
                                              .output = b.output.data(),
                                              .tokens = 1,
                                              .hidden = Buffers::kCount,
                                              .dtype = tutti::DataType::kFloat32}),
         "all_reduce_residual_rms_norm");
  expect(residual == b.input && std::abs(b.output[0] - 2) < 1e-5F, "what the norm wrote");
}

void one_sided(Communicator& group) {
  Buffers b;
  const std::size_t n = Buffers::kCount;
  const auto block = take(group.allocate(n * sizeof(float)), "allocate");
  expect(put(group, {.from = b.input.data(), .to = block.data(), .count = n}), "put");
  expect(put_signal(group, {.from = b.input.data(), .to = block.data(), .count = n}, 0),
         "put_signal");
  expect(signal(group, {.peer = 0}), "signal");
  expect(wait_signal(group, {.peer = 0, .times = 2}), "wait_signal");
  b.expect_copied(get(group, {.from = block.data(), .to = b.output.data(), .count = n}), "get");
  expect(take(device_peers(group, block), "device_peers").ranks == 1, "what device_peers made");
}

void sharded_parameters(Communicator& group) {
  using tutti::ShardedParameters;
  Buffers b;
  const std::vector<tutti::ShardedLayer> layers = {
      {.shard = b.input.data(), .count = Buffers::kCount}};
  auto made = take(ShardedParameters::create(group, layers), "ShardedParameters::create");
  ShardedParameters sharded(std::move(made));
  made = std::move(sharded);
  sharded = std::move(made);
  expect(sharded.layers() == 1, "layers");
  expect(sharded.prefetch(0), "prefetch");
  const void* const weights = take(sharded.gathered(0, nullptr), "gathered");
  expect(static_cast<const float*>(weights)[9] == b.input[9], "what was gathered");
  auto* const gradient = static_cast<float*>(take(sharded.gradient(0, nullptr), "gradient"));
  for (std::size_t i = 0; i < Buffers::kCount; ++i) gradient[i] = b.input[i];
  expect(sharded.release(0, nullptr), "release");
  expect(sharded.reduce_gradient(0, b.output.data(), nullptr), "reduce_gradient");
  b.expect_copied(sharded.finish(nullptr), "finish");
  expect(sharded.updated(nullptr), "updated");
}

void matmuls() {
  const std::vector<float> a = {1, 2}, b = {3, 4};
  std::vector<float> c(1);
  const tutti::Matmul call = {.a = a.data(),
                              .b = b.data(),
                              .c = c.data(),
                              .m = 1,
                              .n = 1,
                              .k = 2,
                              .dtype = tutti::DataType::kFloat32,
                              .backend = tutti::Backend::kHost};
  expect(matmul(nullptr, call), "matmul");
  expect(c[0] == 11, "a product");
  expect(take(plan(call), "plan of a matmul").algorithm == "host_matmul", "an algorithm");
  expect(take(tune(nullptr, call), "tune a matmul").algorithm == "host_matmul", "an algorithm");
  expect(!take(explain(call), "explain a matmul").empty(), "an explanation");
}

void fused(Communicator& group) {
  const std::vector<float> a = {1, 2}, b = {3, 4};
  std::vector<float> c(1), gathered(2);
  const tutti::AllGatherMatmul call = {.a = a.data(),
                                       .b = b.data(),
                                       .c = c.data(),
                                       .m = 1,
                                       .n = 1,
                                       .k = 2,
                                       .dtype = tutti::DataType::kFloat32,
                                       .gathered = gathered.data()};
  expect(all_gather_matmul(group, call), "all_gather_matmul");
  expect(c[0] == 11 && gathered == a, "a product of what was gathered");
  expect(take(all_gather_matmul_workspace(group, call), "all_gather_matmul_workspace") == 0,
         "no workspace");
  expect(take(plan(group, call), "plan of an all_gather_matmul").algorithm == "unfused",
         "an algorithm");
  expect(!take(explain(group, call), "explain an all_gather_matmul").empty(), "an explanation");
}

}  // namespace

int main() {
  names_and_types();
  Communicator made = make_group(), group(std::move(made));
  communicator(group);
  memory(group);
  pool(group);
  collectives(group);
  norm(group);
  one_sided(group);
  sharded_parameters(group);
  matmuls();
  fused(group);
  group.abort("the end");
  expect(group.status(), "status after abort", StatusCode::kAborted);
  expect(group.failure().code == StatusCode::kAborted, "failure after abort");
  if (failures == 0) std::puts("every function did what it should");
  return failures == 0 ? 0 : 1;
}
