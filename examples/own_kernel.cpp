// A kernel of one's own over the memory of all ranks: heat that spreads around a ring of cells, of
// which each rank has a part. A step needs the cells beside one's part, so that neighbours put
// their edges into each other's memory, with a signal behind. All steps are one kernel; no host,
// and no collective, comes in between.
//
// This source is compiled by the host compiler, where ranks are threads, and, by own_kernel.cu, by
// nvcc for GPUs. The result is compared with the same steps made by one thread.
#include <tutti/device/peers.hpp>
#include <tutti/tutti.hpp>

#include <cstdio>
#include <cstring>
#include <thread>
#include <vector>

namespace {

constexpr int kCells = 1000;  // of a rank
constexpr int kSteps = 300;

// What each rank has in symmetric memory. Edges come for even and odd steps in turn: a neighbour
// that is a step ahead does not write over what is still read. It is never two ahead.
struct Part {
  float edges[2][2];       // [step % 2][left, right]
  float cells[2][kCells];  // [step % 2]
};
enum Side : int { kLeft, kRight };

// Weights are powers of two: no rounding hides what was computed with.
TUTTI_DEVICE float mixed(float left, float middle, float right) {
  return 0.25f * left + 0.5f * middle + 0.25f * right;
}

// Called by every thread of one block of each rank. Channel k carries what goes to the k-th side.
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
    // A left edge is what the left neighbour has at its right.
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

// The same by one thread.
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

int most_ranks() {
  int devices = 0;
  return cudaGetDeviceCount(&devices) == cudaSuccess ? devices : 0;
}

void copy(void* to, const void* from, std::size_t bytes) {
  cudaMemcpy(to, from, bytes, cudaMemcpyDefault);
}

__global__ void heat_kernel(const __grid_constant__ tutti::device::Peers peers) {
  spread_heat(peers, tutti::device::Block());
}

// CUDA loads a kernel when it is first used, which would wait for one that spins: all ranks load
// theirs, and meet, before any of them starts.
tutti::Status run(tutti::Communicator& group, const tutti::device::Peers& peers) {
  cudaSetDevice(group.device());
  cudaFuncAttributes loaded;
  cudaFuncGetAttributes(&loaded, heat_kernel);
  cudaStream_t stream = nullptr;
  cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking);
  const tutti::Status met = tutti::barrier(group, {.stream = stream});
  cudaStreamSynchronize(stream);
  if (met.is_ok()) heat_kernel<<<1, 256, 0, stream>>>(peers);
  const cudaError_t ended = cudaStreamSynchronize(stream);
  cudaStreamDestroy(stream);
  if (ended != cudaSuccess) return {tutti::StatusCode::kCuda, cudaGetErrorString(ended)};
  return met.is_ok() ? group.status() : met;
}

#else

constexpr auto kBackend = tutti::Backend::kHost;

int most_ranks() { return 3; }

void copy(void* to, const void* from, std::size_t bytes) { std::memcpy(to, from, bytes); }

tutti::Status run(tutti::Communicator& group, const tutti::device::Peers& peers) {
  spread_heat(peers, tutti::device::Block());
  return group.status();
}

#endif

// Every rank calls this. How many cells differ from what they should be; -1 where something failed.
int wrong_cells(tutti::Communicator& group) {
  auto memory = group.allocate(sizeof(Part));
  if (!memory) return std::puts(memory.status().to_string().c_str()), -1;
  auto peers = tutti::device_peers(group, *memory);
  if (!peers) return std::puts(peers.status().to_string().c_str()), -1;
  Part& part = *static_cast<Part*>(memory->data());
  const auto own = static_cast<std::ptrdiff_t>(group.rank()) * kCells;
  copy(part.cells[0], first_cells(group.size()).data() + own, sizeof part.cells[0]);
  const tutti::Status status = run(group, *peers);
  if (!status) return std::puts(status.to_string().c_str()), -1;
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
  if (ranks == 0) return std::puts("skipped: no GPU"), kSkipped;
  auto groups = tutti::Communicator::create_in_process(ranks, {.backend = kBackend});
  if (!groups) return std::puts(groups.status().to_string().c_str()), 1;
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
