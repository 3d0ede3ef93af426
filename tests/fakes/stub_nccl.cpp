// Stands in for libnccl.so.2: NCCL's ABI as its own header declares it, spelled out here a second
// time so that a slip in the library's prototypes shows.
#include "stub_nccl.hpp"

#include <algorithm>
#include <chrono>
#include <climits>
#include <cstring>
#include <thread>

namespace {

struct Id {
  char internal[128];
};

StubNccl state;

int take_result() { return state.next_result.exchange(0); }

std::size_t element_bytes(int dtype) {
  constexpr std::array<std::size_t, 12> kBytes = {1, 1, 4, 4, 8, 8, 2, 4, 8, 2, 1, 1};
  return kBytes.at(static_cast<std::size_t>(dtype));
}

constexpr int kFirstUserOp = 5, kInvalidUsage = 5;
int comm_storage = 0;
#ifndef STUB_IS_OLD
int window_storage = 0;
#endif

}  // namespace

// The names and parameters are the ABI's.
// NOLINTBEGIN(readability-identifier-naming,readability-function-size)
extern "C" {

StubNccl* stub_nccl_state() { return &state; }

int ncclGetVersion(int* version) {
  *version = state.version;
  return 0;
}

const char* ncclGetErrorString(int result) { return result == 6 ? "remote process" : "stub error"; }
const char* ncclGetLastError(void* /*comm*/) { return "the last words"; }

int ncclGetUniqueId(Id* id) {
  std::memset(id->internal, 'x', sizeof id->internal);
  return take_result();
}

int ncclCommInitRank(void** comm, int size, Id id, int rank) {
  *comm = &comm_storage;
  state.size = size;
  state.rank = rank;
  std::memcpy(state.id.data(), id.internal, sizeof id.internal);
  while (state.hold_init) std::this_thread::sleep_for(std::chrono::milliseconds(1));
  ++state.inits;
  return take_result();
}

int ncclCommDestroy(void* /*comm*/) {
  ++state.destroys;
  return take_result();
}

int ncclCommAbort(void* /*comm*/) {
  ++state.aborts;
  return take_result();
}

int ncclCommRevoke(void* /*comm*/, int flags) {
  state.revokes += flags == 0 ? 1 : 0;
  return take_result();
}

int ncclCommGetAsyncError(void* /*comm*/, int* error) {
  *error = state.async_error;
  return take_result();
}

int ncclAllReduce(const void* /*input*/, void* /*output*/, std::size_t count, int dtype, int op,
                  void* /*comm*/, void* stream) {
  state.count = count;
  state.dtype = dtype;
  state.op = op;
  state.stream = stream;
  return take_result();
}

int ncclAllGather(const void* /*input*/, void* /*output*/, std::size_t count, int dtype,
                  void* /*comm*/, void* stream) {
  state.count = count;
  state.dtype = dtype;
  state.op = -1;
  state.stream = stream;
  return take_result();
}

int ncclReduceScatter(const void* input, void* output, std::size_t count, int dtype, int op,
                      void* comm, void* stream) {
  state.scatters += 1;
  return ncclAllReduce(input, output, count, dtype, op, comm, stream);
}

int ncclReduce(const void* input, void* output, std::size_t count, int dtype, int op, int root,
               void* comm, void* stream) {
  state.root = root;
  return ncclAllReduce(input, output, count, dtype, op, comm, stream);
}

int ncclBroadcast(const void* input, void* output, std::size_t count, int dtype, int root,
                  void* comm, void* stream) {
  state.root = root;
  return ncclAllGather(input, output, count, dtype, comm, stream);
}

int ncclRedOpCreatePreMulSum(int* op, void* scalar, int dtype, int residence, void* /*comm*/) {
  state.scalar_at = scalar;
  std::memcpy(state.scalar.data(), scalar, element_bytes(dtype));
  state.residence = residence;
  *op = kFirstUserOp + state.operations_open++;
  return take_result();
}

int ncclRedOpDestroy(int /*op*/, void* /*comm*/) {
  --state.operations_open;
  return 0;
}

#ifndef STUB_IS_OLD
// ncclConfig_t of 2.28: 16 bytes that say what it is, four numbers, a name, two numbers, a name,
// and the rest, of which only the policy may be set.
int ncclCommInitRankConfig(void** comm, int size, Id id, int rank, void* config) {
  struct Config {
    std::size_t size;
    unsigned magic, version;
    int numbers[4];
    const char* net;
    int shares[2];
    const char* name;
    int collnet, policy, others[4];
  } given;
  std::memcpy(&given, config, sizeof given);
  const auto unset = [](int number) { return number == INT_MIN; };
  const bool as_it_should = given.size == sizeof given && given.magic == 0xcafebeef &&
                            given.version == 22800 && given.net == nullptr &&
                            given.name == nullptr && std::ranges::all_of(given.numbers, unset) &&
                            std::ranges::all_of(given.shares, unset) && unset(given.collnet) &&
                            std::ranges::all_of(given.others, unset);
  if (!as_it_should) return kInvalidUsage;
  state.cta_policy = given.policy;
  return ncclCommInitRank(comm, size, id, rank);
}

int ncclAlltoAll(const void* input, void* output, std::size_t count, int dtype, void* comm,
                 void* stream) {
  state.exchanges_at_once += 1;
  return ncclAllGather(input, output, count, dtype, comm, stream);
}

int ncclGather(const void* input, void* output, std::size_t count, int dtype, int root, void* comm,
               void* stream) {
  state.gathers_at_once += 1;
  return ncclBroadcast(input, output, count, dtype, root, comm, stream);
}

int ncclScatter(const void* input, void* output, std::size_t count, int dtype, int root, void* comm,
                void* stream) {
  state.scatters_at_once += 1;
  return ncclBroadcast(input, output, count, dtype, root, comm, stream);
}

int ncclCommWindowRegister(void* /*comm*/, void* base, std::size_t bytes, void** window,
                           int flags) {
  state.window_base = base;
  state.window_bytes = bytes;
  state.window_flags = flags;
  const int result = take_result();
  if (result != 0 || !state.makes_windows) return result;
  *window = &window_storage;
  ++state.windows_open;
  return 0;
}

int ncclCommWindowDeregister(void* /*comm*/, void* window) {
  state.windows_open -= window == &window_storage ? 1 : 0;
  return take_result();
}
#endif

// Alone it would wait for a peer that waits, too.
int ncclSend(const void* from, std::size_t count, int dtype, int peer, void* /*comm*/,
             void* stream) {
  if (state.groups_open == 0) return kInvalidUsage;
  if (state.fail_sends) return 1;
  state.sent.push_back({from, count, peer});
  state.dtype = dtype;
  state.stream = stream;
  return take_result();
}

int ncclRecv(void* to, std::size_t count, int /*dtype*/, int peer, void* /*comm*/,
             void* /*stream*/) {
  if (state.groups_open == 0) return kInvalidUsage;
  state.received.push_back({to, count, peer});
  return take_result();
}

int ncclGroupStart() {
  ++state.groups_open;
  return take_result();
}
int ncclGroupEnd() {
  --state.groups_open;
  return take_result();
}

}  // extern "C"
// NOLINTEND(readability-identifier-naming,readability-function-size)
