// Workspaces for cuBLASLt: products that may run at the same time have different ones.
#pragma once

#include <cstddef>
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
//
// None is freed: cudaFree waits for every kernel, and a kernel of another rank in this process may
// wait for the rank that frees. In place of that, a stream gets the workspace of another one whose
// products have ended. Only an event of its own tells that: the other stream may be gone.
class CublasLtWorkspaces {
 public:
  // Of each device: 512 MiB. From then on events follow products, and a further stream gets another
  // one's workspace. If products of all of them run, it gets a new one.
  static constexpr std::ptrdiff_t kMostStreams = 16;

  explicit CublasLtWorkspaces(CudaDriver& cuda) : cuda_(cuda) {}
  ~CublasLtWorkspaces();
  CublasLtWorkspaces(const CublasLtWorkspaces&) = delete;
  CublasLtWorkspaces& operator=(const CublasLtWorkspaces&) = delete;

  // As long as it is held, no other stream gets it.
  class Held;
  using Lease = std::shared_ptr<Held>;
  static CublasLtWorkspace workspace(const Lease& lease);

  // `capture`: the capture of `stream`, whose work is on `device`.
  Result<Lease> of(int device, Stream stream, const CudaCapture& capture);
  // After each product with it, which may have failed. The device is current.
  void used(const Lease& lease);

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
  Status add(const User& user);
  bool take_over(const User& user);
  std::ptrdiff_t count_streams(int device) const;
  bool has_ended(const Lease& lease);

  CudaDriver& cuda_;
  const std::shared_ptr<Returned> returned_ = std::make_shared<Returned>();
  std::mutex mutex_;  // of everything below; not held while something is enqueued, which may block
  std::list<Lease> used_;                           // the one used last first
  std::vector<std::pair<int, CudaAddress>> spare_;  // with their devices
};

class CublasLtWorkspaces::Held {
 public:
  Held(const User& user, CudaAddress address) : user_(user), address_(address) {}

 private:
  friend class CublasLtWorkspaces;
  User user_;
  const CudaAddress address_;
  CudaEvent ended_ = nullptr;
  bool is_recorded_ = false;  // the event, behind the latest product
};

}  // namespace tutti
