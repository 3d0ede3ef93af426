/* Calls every function of the C API, with one rank on the host. It proves that programs can link
 * them, and surface.py compares its list of calls with what the headers declare and what
 * libtutti.so exports. Plain C11. */
#define _GNU_SOURCE
#include <tutti/tutti.h>

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int failures = 0;

static void expect(int holds, const char* what) {
  if (holds) return;
  printf("%s: not as expected\n", what);
  ++failures;
}

static void check(tutti_status_t status, const char* what, tutti_status_t expected) {
  if (status == expected) return;
  printf("%s: %s: %s\n", what, tutti_status_name(status), tutti_last_error());
  ++failures;
}

static void ok(tutti_status_t status, const char* what) { check(status, what, TUTTI_OK); }

enum { kCount = 1024 };
static float input[kCount], output[kCount];

/* With one rank every collective is a copy. */
static void copied(tutti_status_t status, const char* what) {
  ok(status, what);
  expect(memcmp(input, output, sizeof input) == 0, what);
  memset(output, 0, sizeof output);
}

static void names(void) {
  int number = -1;
  expect(strcmp(tutti_version(), TUTTI_VERSION_STRING) == 0, "tutti_version");
  expect(strcmp(tutti_status_name(TUTTI_TIMEOUT), "timeout") == 0, "tutti_status_name");
  expect(strcmp(tutti_data_type_name(TUTTI_BFLOAT16), "bf16") == 0, "tutti_data_type_name");
  expect(strcmp(tutti_op_name(TUTTI_MAX), "max") == 0, "tutti_op_name");
  expect(strcmp(tutti_backend_name(TUTTI_BACKEND_HOST), "host") == 0, "tutti_backend_name");
  expect(strcmp(tutti_matrix_layout_name(TUTTI_ROW_MAJOR), "row") == 0, "tutti_matrix_layout_name");
  expect(strcmp(tutti_plan_source_name(TUTTI_PLAN_CALL), "?") != 0, "tutti_plan_source_name");
  expect(tutti_data_type_size(TUTTI_INT32) == 4, "tutti_data_type_size");
  expect(tutti_data_type_is_floating(TUTTI_FLOAT16) == 1, "tutti_data_type_is_floating");
  ok(tutti_parse_data_type("half", &number), "tutti_parse_data_type");
  expect(number == TUTTI_FLOAT16, "half");
  ok(tutti_parse_op("avg", &number), "tutti_parse_op");
  expect(number == TUTTI_AVG, "avg");
  ok(tutti_parse_backend("cuda", &number), "tutti_parse_backend");
  expect(number == TUTTI_BACKEND_CUDA, "cuda");
  ok(tutti_parse_matrix_layout("column", &number), "tutti_parse_matrix_layout");
  expect(number == TUTTI_COLUMN_MAJOR, "column");
}

/* A group of one by each of the three ways. The last one is worked with. */
static tutti_communicator_t* make_group(void) {
  tutti_communicator_options_t host = tutti_communicator_options_init();
  tutti_communicator_t* group = NULL;
  tutti_unique_id_t id, same;
  const int no_gpu = -1;
  host.backend = TUTTI_BACKEND_HOST;
  ok(tutti_unique_id_create(&id), "tutti_unique_id_create");
  ok(tutti_unique_id_from_text(id.text, &same), "tutti_unique_id_from_text");
  check(tutti_unique_id_create_tcp("127.0.0.1", -1, &id), "tutti_unique_id_create_tcp",
        TUTTI_INVALID_ARGUMENT);
  ok(tutti_communicator_create(&same, 0, 1, &host, &group), "tutti_communicator_create");
  ok(tutti_communicator_destroy(group), "tutti_communicator_destroy");
  check(tutti_communicator_destroy(group), "a closed handle", TUTTI_INVALID_ARGUMENT);
  setenv("TUTTI_RANK", "0", 1);
  setenv("TUTTI_SIZE", "1", 1);
  ok(tutti_communicator_create_from_environment(&host, &group),
     "tutti_communicator_create_from_environment");
  ok(tutti_communicator_destroy(group), "tutti_communicator_destroy");
  ok(tutti_communicator_create_in_process(&no_gpu, 1, &host, &group),
     "tutti_communicator_create_in_process");
  return group;
}

static void communicator(tutti_communicator_t* group) {
  tutti_communicator_info_t info = tutti_communicator_info_init();
  tutti_communicator_t* part = NULL;
  int missing = -1, missing_count = -1;
  tutti_query_t query = tutti_query_init();
  tutti_plan_t plan = tutti_plan_init();
  char* text = NULL;
  ok(tutti_communicator_info(group, &info), "tutti_communicator_info");
  expect(info.rank == 0 && info.ranks == 1 && info.backend == TUTTI_BACKEND_HOST, "info");
  expect(info.device == -1, "device");
  ok(tutti_communicator_split(group, 0, 0, &part), "tutti_communicator_split");
  ok(tutti_communicator_destroy(part), "destroy a part");
  ok(tutti_communicator_shrink(group, 0, &part, &missing, &missing_count),
     "tutti_communicator_shrink");
  expect(missing == -1 && missing_count == 0, "nobody is missing");
  ok(tutti_communicator_destroy(part), "destroy the survivors");
  ok(tutti_communicator_prepare(group), "tutti_communicator_prepare");
  check(tutti_start_capture(group), "tutti_start_capture", TUTTI_UNSUPPORTED);
  check(tutti_finish_capture(group), "tutti_finish_capture", TUTTI_INVALID_ARGUMENT);
  check(tutti_prepare_nccl(group), "tutti_prepare_nccl", TUTTI_UNAVAILABLE);
  ok(tutti_communicator_set_timeout(group, 20000), "tutti_communicator_set_timeout");
  ok(tutti_communicator_status(group), "tutti_communicator_status");
  query.count = 100;
  ok(tutti_plan(group, "all_reduce", &query, &plan), "tutti_plan");
  expect(strstr(plan.algorithm, "all_reduce/") != NULL && plan.alone == 1, "a plan");
  expect(strstr(plan.text, "all_reduce") != NULL, "the text of a plan");
  tutti_string_free(plan.algorithm);
  tutti_string_free(plan.text);
  ok(tutti_explain(group, "all_reduce", &query, &text), "tutti_explain");
  expect(strlen(text) > 0, "an explanation");
  tutti_string_free(text);
}

static void memory(tutti_communicator_t* group) {
  tutti_counters_t counters = tutti_counters_init();
  tutti_memory_info_t info = tutti_memory_info_init();
  tutti_memory_t* memory = NULL;
  void* peer = NULL;
  ok(tutti_memory_allocate(group, 4096, &memory), "tutti_memory_allocate");
  ok(tutti_memory_info(memory, &info), "tutti_memory_info");
  ok(tutti_memory_peer(memory, 0, &peer), "tutti_memory_peer");
  expect(info.bytes == 4096 && info.zero_copy == 1 && peer == info.data, "allocated memory");
  ok(tutti_memory_free(memory), "tutti_memory_free");
  ok(tutti_memory_register(group, input, sizeof input, &memory), "tutti_memory_register");
  ok(tutti_memory_info(memory, &info), "tutti_memory_info");
  expect(info.data == input, "registered memory");
  ok(tutti_memory_free(memory), "tutti_memory_free");
  ok(tutti_communicator_counters(group, &counters), "tutti_communicator_counters");
  expect(counters.allocations >= 1 && counters.registrations == 1, "counters");
}

static void local_memory(tutti_communicator_t* group) {
  tutti_local_memory_info_t info = tutti_local_memory_info_init();
  tutti_local_memory_t* memory = NULL;
  ok(tutti_local_memory_allocate(group, 5000, &memory), "tutti_local_memory_allocate");
  ok(tutti_local_memory_info(memory, &info), "tutti_local_memory_info");
  expect(info.data != NULL && info.bytes == 5000, "local memory");
  ok(tutti_local_memory_free(memory), "tutti_local_memory_free");
}

static void pool(tutti_communicator_t* group) {
  tutti_pool_use_t use = tutti_pool_use_init();
  tutti_block_info_t info = tutti_block_info_init();
  tutti_pool_t* pool = NULL;
  tutti_block_t* block = NULL;
  ok(tutti_pool_create(group, &pool), "tutti_pool_create");
  ok(tutti_pool_take(pool, 5000, NULL, &block), "tutti_pool_take");
  ok(tutti_block_info(block, &info), "tutti_block_info");
  expect(info.data != NULL && info.bytes == 5000, "a taken block");
  ok(tutti_block_give_back(block, NULL), "tutti_block_give_back");
  check(tutti_block_free(block), "a block that was given back", TUTTI_INVALID_ARGUMENT);
  ok(tutti_pool_take(pool, 5000, NULL, &block), "tutti_pool_take");
  ok(tutti_block_free(block), "tutti_block_free");
  ok(tutti_pool_use(pool, &use), "tutti_pool_use");
  expect(use.blocks == 1 && use.taken_bytes == 0, "use");
  ok(tutti_pool_trim(pool), "tutti_pool_trim");
  ok(tutti_pool_destroy(pool), "tutti_pool_destroy");
}

/* A collective whose struct has `input`, `output` and `count`. */
#define EXPECT_COPY(name)                               \
  do {                                                  \
    tutti_##name##_t call = tutti_##name##_init();      \
    call.input = input;                                 \
    call.output = output;                               \
    call.count = kCount;                                \
    copied(tutti_##name(group, &call), "tutti_" #name); \
  } while (0)

static void collectives(tutti_communicator_t* group) {
  EXPECT_COPY(all_reduce);
  EXPECT_COPY(all_gather);
  EXPECT_COPY(reduce_scatter);
  EXPECT_COPY(all_to_all);
  EXPECT_COPY(broadcast);
  EXPECT_COPY(reduce);
  EXPECT_COPY(gather);
  EXPECT_COPY(scatter);
  ok(tutti_barrier(group, NULL), "tutti_barrier");
}

static void variable_counts(tutti_communicator_t* group) {
  const size_t count = kCount;
  tutti_all_gather_v_t gather = tutti_all_gather_v_init();
  tutti_reduce_scatter_v_t scatter = tutti_reduce_scatter_v_init();
  tutti_all_to_all_v_t all = tutti_all_to_all_v_init();
  gather.input = scatter.input = all.input = input;
  gather.output = scatter.output = all.output = output;
  gather.counts = scatter.counts = all.send_counts = all.recv_counts = &count;
  all.max_count = count;
  copied(tutti_all_gather_v(group, &gather), "tutti_all_gather_v");
  copied(tutti_reduce_scatter_v(group, &scatter), "tutti_reduce_scatter_v");
  copied(tutti_all_to_all_v(group, &all), "tutti_all_to_all_v");
}

static void messages(tutti_communicator_t* group) {
  tutti_send_t send = tutti_send_init();
  tutti_recv_t recv = tutti_recv_init();
  send.buffer = input;
  recv.buffer = output;
  send.count = recv.count = kCount;
  ok(tutti_group_start(), "tutti_group_start");
  ok(tutti_send(group, &send), "tutti_send");
  ok(tutti_recv(group, &recv), "tutti_recv");
  copied(tutti_group_end(), "tutti_group_end");
}

static void norm(tutti_communicator_t* group) {
  static float weight[kCount], residual[kCount];
  tutti_all_reduce_residual_rms_norm_t call = tutti_all_reduce_residual_rms_norm_init();
  for (int i = 0; i < kCount; ++i) weight[i] = 2;
  call.input = input;
  call.residual = call.residual_output = residual;
  call.weight = weight;
  call.output = output;
  call.tokens = 1;
  call.hidden = kCount;
  call.dtype = TUTTI_FLOAT32;
  ok(tutti_all_reduce_residual_rms_norm(group, &call), "tutti_all_reduce_residual_rms_norm");
  expect(memcmp(residual, input, sizeof input) == 0, "the residual");
  expect(fabsf(output[0] - 2) < 1e-5F, "what the norm wrote");
  memset(output, 0, sizeof output);
}

static void one_sided(tutti_communicator_t* group) {
  tutti_memory_info_t info = tutti_memory_info_init();
  tutti_memory_t* memory = NULL;
  tutti_put_t put = tutti_put_init();
  tutti_get_t get = tutti_get_init();
  tutti_signal_t signal = tutti_signal_init();
  tutti_wait_signal_t wait = tutti_wait_signal_init();
  tutti_device_peers_t peers;
  ok(tutti_memory_allocate(group, sizeof input, &memory), "tutti_memory_allocate");
  ok(tutti_memory_info(memory, &info), "tutti_memory_info");
  put.from = input;
  put.to = info.data;
  get.from = info.data;
  get.to = output;
  put.count = get.count = kCount;
  wait.times = 2;
  ok(tutti_put(group, &put), "tutti_put");
  ok(tutti_put_signal(group, &put), "tutti_put_signal");
  ok(tutti_signal(group, &signal), "tutti_signal");
  ok(tutti_wait_signal(group, &wait), "tutti_wait_signal");
  copied(tutti_get(group, &get), "tutti_get");
  ok(tutti_device_peers(group, memory, &peers), "tutti_device_peers");
  expect(peers.ranks == 1 && peers.at[0] == info.data, "peers");
  ok(tutti_memory_free(memory), "tutti_memory_free");
}

static void sharded_parameters(tutti_communicator_t* group) {
  tutti_sharded_layer_t layer;
  tutti_sharded_parameters_t* sharded = NULL;
  const void* weights = NULL;
  void* gradient = NULL;
  size_t layers = 0;
  memset(&layer, 0, sizeof layer);
  layer.shard = input;
  layer.count = kCount;
  layer.dtype = TUTTI_FLOAT32;
  ok(tutti_sharded_parameters_create(group, &layer, 1, NULL, &sharded), "create");
  check(tutti_communicator_destroy(group), "destroy too early", TUTTI_INVALID_ARGUMENT);
  ok(tutti_sharded_parameters_layers(sharded, &layers), "layers");
  ok(tutti_sharded_parameters_prefetch(sharded, 0), "prefetch");
  ok(tutti_sharded_parameters_gathered(sharded, 0, NULL, &weights), "gathered");
  expect(layers == 1 && memcmp(weights, input, sizeof input) == 0, "what was gathered");
  ok(tutti_sharded_parameters_gradient(sharded, 0, NULL, &gradient), "gradient");
  memcpy(gradient, input, sizeof input);
  ok(tutti_sharded_parameters_release(sharded, 0, NULL), "release");
  ok(tutti_sharded_parameters_reduce_gradient(sharded, 0, output, NULL, NULL), "reduce_gradient");
  copied(tutti_sharded_parameters_finish(sharded, NULL), "finish");
  ok(tutti_sharded_parameters_updated(sharded, NULL), "updated");
  ok(tutti_sharded_parameters_destroy(sharded), "destroy");
}

static void free_plan(tutti_matmul_plan_t* plan, const char* algorithm) {
  expect(strcmp(plan->algorithm, algorithm) == 0, algorithm);
  tutti_string_free(plan->algorithm);
  tutti_string_free(plan->config);
  tutti_string_free(plan->why);
}

static void matmuls(void) {
  const float a[2] = {1, 2}, b[2] = {3, 4};
  float c = 0;
  char* text = NULL;
  tutti_matmul_t call = tutti_matmul_init();
  tutti_matmul_plan_t plan = tutti_matmul_plan_init();
  call.a = a;
  call.product.b = b;
  call.product.c = &c;
  call.m = call.product.n = 1;
  call.k = 2;
  call.dtype = TUTTI_FLOAT32;
  call.backend = TUTTI_BACKEND_HOST;
  ok(tutti_matmul(NULL, &call), "tutti_matmul");
  expect(c == 11, "a product");
  ok(tutti_matmul_plan(&call, &plan), "tutti_matmul_plan");
  free_plan(&plan, "host_matmul");
  ok(tutti_matmul_tune(NULL, &call, &plan), "tutti_matmul_tune");
  free_plan(&plan, "host_matmul");
  ok(tutti_matmul_explain(&call, &text), "tutti_matmul_explain");
  tutti_string_free(text);
}

static void fused(tutti_communicator_t* group) {
  const float a[2] = {1, 2}, b[2] = {3, 4};
  float c = 0, gathered[2] = {0, 0};
  size_t bytes = 1;
  char* text = NULL;
  tutti_all_gather_matmul_t call = tutti_all_gather_matmul_init();
  tutti_matmul_plan_t plan = tutti_matmul_plan_init();
  call.a = a;
  call.product.b = b;
  call.product.c = &c;
  call.m = call.product.n = 1;
  call.k = 2;
  call.dtype = TUTTI_FLOAT32;
  call.gathered = gathered;
  ok(tutti_all_gather_matmul(group, &call), "tutti_all_gather_matmul");
  expect(c == 11 && gathered[1] == 2, "a product of what was gathered");
  ok(tutti_all_gather_matmul_workspace(group, &call, &bytes), "tutti_all_gather_matmul_workspace");
  expect(bytes == 0, "no workspace");
  ok(tutti_all_gather_matmul_plan(group, &call, &plan), "tutti_all_gather_matmul_plan");
  free_plan(&plan, "unfused");
  ok(tutti_all_gather_matmul_explain(group, &call, &text), "tutti_all_gather_matmul_explain");
  tutti_string_free(text);
}

static void abort_group(tutti_communicator_t* group) {
  tutti_failure_t failure = tutti_failure_init();
  ok(tutti_communicator_abort(group, "the end"), "tutti_communicator_abort");
  check(tutti_communicator_status(group), "after abort", TUTTI_ABORTED);
  ok(tutti_last_failure(&failure), "tutti_last_failure");
  expect(failure.code == TUTTI_ABORTED && strstr(failure.text, "the end") != NULL, "the failure");
  failure = tutti_failure_init();
  ok(tutti_communicator_failure(group, &failure), "tutti_communicator_failure");
  expect(failure.code == TUTTI_ABORTED, "the communicator's failure");
}

int main(void) {
  tutti_communicator_t* group;
  for (int i = 0; i < kCount; ++i) input[i] = 3;
  names();
  group = make_group();
  communicator(group);
  memory(group);
  local_memory(group);
  pool(group);
  collectives(group);
  variable_counts(group);
  messages(group);
  norm(group);
  one_sided(group);
  sharded_parameters(group);
  matmuls();
  fused(group);
  abort_group(group);
  ok(tutti_communicator_destroy(group), "tutti_communicator_destroy");
  if (failures == 0) puts("every function did what it should");
  return failures == 0 ? 0 : 1;
}
