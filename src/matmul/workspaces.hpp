// Workspaces for cuBLASLt: products that may run at the same time have different ones.
#pragma once

#include <cstdint>
#include <list>
#include <memory>
#include <mutex>
#include <utility>
#include <vector>

#include "base/guard.hpp"
#include "drivers/cublas_lt.hpp"
#include "drivers/cuda.hpp"

namespace tutti {

// One for each stream, and one for each stream of each capture, which the capture's graph keeps,
// since a graph may be launched in another stream. From any number of threads.
class CublasLtWorkspaces {
 public:
  // 512 MiB. Beyond, the workspace that was not used for longest is freed.
  static constexpr std::ptrdiff_t kMostStreams = 16;

  explicit CublasLtWorkspaces(CudaDriver& cuda) : cuda_(cuda) {}
  ~CublasLtWorkspaces();
  CublasLtWorkspaces(const CublasLtWorkspaces&) = delete;
  CublasLtWorkspaces& operator=(const CublasLtWorkspaces&) = delete;

  // `capture`: the capture of `stream`, whose work is on `device`.
  Result<CublasLtWorkspace> of(int device, Stream stream, const CudaCapture& capture);

 private:
  struct User {
    int device = 0;
    Stream stream = nullptr;
    std::uint64_t thread = 0;   // of cudaStreamPerThread; else 0
    std::uint64_t capture = 0;  // its id; 0: none
    friend bool operator==(const User&, const User&) = default;
  };
  // What graphs that are gone had kept. A thread that must not call CUDA adds it.
  struct Returned {
    std::mutex mutex;
    std::vector<CudaAddress> addresses;
    void add(CudaAddress address) {
      guarded([&] {
        const std::lock_guard lock(mutex);
        addresses.push_back(address);
      });
    }
  };

  void take_back();
  Result<CudaAddress> take(int device);
  Status make_room();

  CudaDriver& cuda_;
  const std::shared_ptr<Returned> returned_ = std::make_shared<Returned>();
  std::mutex mutex_;                                // of everything below
  std::list<std::pair<User, CudaAddress>> used_;    // the one used last first
  std::vector<std::pair<int, CudaAddress>> spare_;  // with their devices
};

}  // namespace tutti
