#include "memory/rank_memory.hpp"

#include <map>
#include <mutex>
#include <utility>

#include "base/try.hpp"
#include "memory/device_scope.hpp"

namespace tutti {

struct RankMemory::Block {
  CudaDriver& cuda;
  int device;
  Sizes sizes;
  CudaAddress on_device = nullptr;
  std::byte* on_host = nullptr;
  std::unique_ptr<Block> next = {};  // of those that are kept

  Block(CudaDriver& driver, int ordinal, const Sizes& bytes)
      : cuda(driver), device(ordinal), sizes(bytes) {}
  Block(const Block&) = delete;
  Block& operator=(const Block&) = delete;
  ~Block() {
    if (on_device == nullptr && on_host == nullptr) return;
    const DeviceScope scope(cuda, device);
    if (on_device != nullptr) (void)cuda.free(on_device);
    if (on_host != nullptr) (void)cuda.free_mapped_host(on_host);
  }

  Status allocate() {
    if (sizes.device_bytes > 0) {
      TUTTI_ASSIGN(on_device, cuda.allocate(device, sizes.device_bytes));
    }
    TUTTI_ASSIGN(on_host, cuda.allocate_mapped_host(sizes.host_bytes));
    return Status::ok();
  }
};

// Of the whole process. Giving back allocates nothing: destructors do it.
class RankMemory::Kept {
 public:
  static Kept& of_process() {
    static Kept& kept = *new Kept;  // for threads that end after main()
    return kept;
  }

  // A block that was given back; null if none fits.
  std::unique_ptr<Block> take(CudaDriver& cuda, int device, const Sizes& sizes) {
    const std::lock_guard lock(mutex_);
    ++users_[&cuda].count;
    for (std::unique_ptr<Block>* at = &first_; *at != nullptr; at = &(*at)->next) {
      const Block& block = **at;
      if (&block.cuda == &cuda && block.device == device && block.sizes == sizes) return cut(*at);
    }
    return nullptr;
  }

  // Of a user that take() has counted.
  void give_back(CudaDriver& cuda, std::unique_ptr<Block> block) {
    std::unique_ptr<Block> all;  // freed outside the lock
    std::unique_ptr<Companion> companions;
    const std::lock_guard lock(mutex_);
    if (block != nullptr) push(first_, std::move(block));
    const auto users = users_.find(&cuda);
    if (--users->second.count > 0) return;
    companions = std::move(users->second.companions);
    users_.erase(users);
    for (std::unique_ptr<Block>* at = &first_; *at != nullptr;) {
      if (&(*at)->cuda == &cuda) {
        push(all, cut(*at));
      } else {
        at = &(*at)->next;
      }
    }
  }

  void keep(CudaDriver& cuda, std::unique_ptr<Companion> companion) {
    const std::lock_guard lock(mutex_);
    const auto users = users_.find(&cuda);
    if (users != users_.end()) push(users->second.companions, std::move(companion));
  }

 private:
  struct Users {  // of a driver
    int count = 0;
    std::unique_ptr<Companion> companions = {};
  };

  static std::unique_ptr<Block> cut(std::unique_ptr<Block>& at) {
    std::unique_ptr<Block> block = std::move(at);
    at = std::move(block->next);
    return block;
  }
  template <class T>
  static void push(std::unique_ptr<T>& first, std::unique_ptr<T> one) {
    one->next = std::move(first);
    first = std::move(one);
  }

  std::mutex mutex_;
  std::unique_ptr<Block> first_;
  std::map<CudaDriver*, Users> users_;
};

RankMemory::RankMemory(std::unique_ptr<Block> block) : block_(std::move(block)) {}
RankMemory::RankMemory() = default;
RankMemory::RankMemory(RankMemory&&) noexcept = default;
RankMemory& RankMemory::operator=(RankMemory&& other) noexcept {
  std::swap(block_, other.block_);
  return *this;
}

Result<RankMemory> RankMemory::create(CudaDriver& cuda, int device, const Sizes& sizes) {
  auto fresh = std::make_unique<Block>(cuda, device, sizes);
  std::unique_ptr<Block> kept = Kept::of_process().take(cuda, device, sizes);
  RankMemory memory(kept != nullptr ? std::move(kept) : std::move(fresh));
  if (memory.block_->on_host != nullptr) return memory;
  TUTTI_TRY(memory.block_->allocate());
  return memory;
}

RankMemory::~RankMemory() {
  if (block_ == nullptr) return;
  CudaDriver& cuda = block_->cuda;
  const bool whole = block_->on_host != nullptr;  // which is allocated last
  Kept::of_process().give_back(cuda, whole ? std::move(block_) : nullptr);
}

void RankMemory::keep(CudaDriver& cuda, std::unique_ptr<Companion> companion) {
  Kept::of_process().keep(cuda, std::move(companion));
}

CudaAddress RankMemory::device_memory() const { return block_->on_device; }
std::byte* RankMemory::host_memory() const { return block_->on_host; }

void RankMemory::leave_behind() {
  if (block_ == nullptr) return;
  block_->on_device = nullptr;
  block_->on_host = nullptr;
}

}  // namespace tutti
