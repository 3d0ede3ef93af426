// Your own kernel over the memory of all ranks: heat spreads around a ring of cells, and each rank
// has a part of the ring. A step needs the cells next to the part, so neighbours put their edge
// cells into each other's memory and send a signal. All steps run in one kernel, without the host
// and without collectives.
//
// The host compiler compiles this source for ranks that are threads; own_kernel.cu compiles it with
// nvcc for GPUs. The result is compared with the same steps by one thread.
#include <tutti/device/peers.hpp>
#include <tutti/tutti.hpp>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <thread>
#include <vector>

namespace {

constexpr int kCells = 1000;  // per rank
constexpr int kSteps = 300;

void check(const tutti::Status& status) {
  if (status) return;
  std::fprintf(stderr, "%s\n", status.to_string().c_str());
  std::exit(1);
}

// The symmetric memory of a rank. Even and odd steps have separate edges, so that a neighbour that
// is a step ahead does not overwrite what is still read. It is never two steps ahead.
struct Part {
  float edges[2][2];       // [step % 2][left, right], written by the neighbours
  float cells[2][kCells];  // [step % 2]
};
enum Side : int { kLeft, kRight };

// The weights are powers of two, so that results are exact.
TUTTI_DEVICE float mixed(float left, float middle, float right) {
  return 0.25f * left + 0.5f * middle + 0.25f * right;
}

// Called by all threads of one block of each rank. Signals on channel kLeft follow what is put to
// the left neighbour, signals on channel kRight what is put to the right one.
TUTTI_DEVICE void spread_heat(const tutti::device::Peers& peers,
                              const tutti::device::Block& block) {
  const int left = (peers.rank + peers.ranks - 1) % peers.ranks;
  const int right = (peers.rank + 1) % peers.ranks;
  Part& part = *peers.pointer<Part>(peers.rank);
  const auto edge_at = [](int step, Side side) {
    return sizeof(float) * static_cast<std::size_t>(2 * (step % 2) + side);
  };
  for (int step = 0; step < kSteps; ++step) {
    const float* const now = part.cells[step % 2];
    float* const then = part.cells[(step + 1) % 2];
    // To the left neighbour, this rank's first cell is at the right edge.
    peers.put_signal(block, {left, edge_at(step, kRight), &now[0], sizeof(float)}, kLeft);
    peers.put_signal(block, {right, edge_at(step, kLeft), &now[kCells - 1], sizeof(float)}, kRight);
    if (!peers.wait_signal(block, right, kLeft)) return;  // Communicator::status() says why
    if (!peers.wait_signal(block, left, kRight)) return;
    const float* const edges = part.edges[step % 2];
    for (unsigned k = block.thread(); k < kCells; k += block.threads()) {
      then[k] = mixed(k == 0 ? edges[kLeft] : now[k - 1], now[k],
                      k == kCells - 1 ? edges[kRight] : now[k + 1]);
    }
    block.sync();
  }
}

std::vector<float> first_cells(int ranks) {
  std::vector<float> cells(static_cast<std::size_t>(ranks * kCells));
  for (std::size_t k = 0; k < cells.size(); ++k) cells[k] = static_cast<float>(k * k % 1009);
  return cells;
}

// The same steps by one thread.
std::vector<float> expected_cells(int ranks) {
  std::vector<float> now = first_cells(ranks), then = now;
  const std::size_t n = now.size();
  for (int step = 0; step < kSteps; ++step) {
    for (std::size_t k = 0; k < n; ++k) {
      then[k] = mixed(now[(k + n - 1) % n], now[k], now[(k + 1) % n]);
    }
    now.swap(then);
  }
  return now;
}

// --- where it runs ---

#if defined(__CUDACC__)

constexpr auto kBackend = tutti::Backend::kCuda;

void check(cudaError_t error) {
  if (error != cudaSuccess) check({tutti::StatusCode::kCuda, cudaGetErrorString(error)});
}

int most_ranks() {
  int devices = 0;
  return cudaGetDeviceCount(&devices) == cudaSuccess ? devices : 0;
}

void copy(void* to, const void* from, std::size_t bytes) {
  check(cudaMemcpy(to, from, bytes, cudaMemcpyDefault));
}

__global__ void heat_kernel(const __grid_constant__ tutti::device::Peers peers) {
  spread_heat(peers, tutti::device::Block());
}

// CUDA loads a kernel on first use, and may wait for running kernels to do so. Therefore all ranks
// load theirs and pass a barrier before any of them launches it.
void run(tutti::Communicator& group, const tutti::device::Peers& peers) {
  check(cudaSetDevice(group.device()));
  cudaFuncAttributes loaded;
  check(cudaFuncGetAttributes(&loaded, heat_kernel));
  cudaStream_t stream = nullptr;
  check(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
  check(tutti::barrier(group, {.stream = stream}));
  check(cudaStreamSynchronize(stream));
  heat_kernel<<<1, 256, 0, stream>>>(peers);
  check(cudaStreamSynchronize(stream));
  check(cudaStreamDestroy(stream));
  check(group.status());
}

#else

constexpr auto kBackend = tutti::Backend::kHost;

int most_ranks() { return 3; }

void copy(void* to, const void* from, std::size_t bytes) { std::memcpy(to, from, bytes); }

void run(tutti::Communicator& group, const tutti::device::Peers& peers) {
  spread_heat(peers, tutti::device::Block());
  check(group.status());
}

#endif

// Every rank calls this. Returns how many of its cells are wrong.
int wrong_cells(tutti::Communicator& group) {
  auto memory = group.allocate(sizeof(Part));
  check(memory.status());
  auto peers = tutti::device_peers(group, *memory);
  check(peers.status());
  Part& part = *static_cast<Part*>(memory->data());
  const auto own = static_cast<std::ptrdiff_t>(group.rank()) * kCells;
  copy(part.cells[0], first_cells(group.size()).data() + own, sizeof part.cells[0]);
  run(group, *peers);
  std::vector<float> cells(kCells);
  copy(cells.data(), part.cells[kSteps % 2], sizeof part.cells[0]);
  const std::vector<float> expected = expected_cells(group.size());
  int wrong = 0;
  for (std::ptrdiff_t k = 0; k < kCells; ++k) {
    wrong += cells[static_cast<std::size_t>(k)] != expected[static_cast<std::size_t>(own + k)];
  }
  return wrong;
}

}  // namespace

int main() {
  constexpr int kSkipped = 77;
  const int ranks = most_ranks() < 8 ? most_ranks() : 8;
  if (ranks == 0) {
    std::puts("skipped: no GPU");
    return kSkipped;
  }
  auto groups = tutti::Communicator::create_in_process(ranks, {.backend = kBackend});
  check(groups.status());
  std::vector<int> wrong(static_cast<std::size_t>(ranks));
  {
    std::vector<std::jthread> threads;
    for (std::size_t r = 0; r < wrong.size(); ++r) {
      threads.emplace_back([&, r] { wrong[r] = wrong_cells((*groups)[r]); });
    }
  }
  bool good = true;
  for (std::size_t r = 0; r < wrong.size(); ++r) {
    std::printf("rank %zu: %d of %d cells differ after %d steps\n", r, wrong[r], kCells, kSteps);
    good = good && wrong[r] == 0;
  }
  return good ? 0 : 1;
}
