#include "tutti/symmetric_pool.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <list>
#include <map>
#include <utility>

#include "api/guard.hpp"
#include "base/try.hpp"
#include "group/communicator_impl.hpp"
#include "group/stream_marks.hpp"
#include "memory/symmetric_heap.hpp"

namespace tutti {
namespace {

constexpr std::size_t kSmallestStep = 256;

// Eight sizes from one power of two to the next.
std::size_t rounded_up(std::size_t bytes) {
  const std::size_t step = std::max(kSmallestStep, std::bit_floor(bytes) / 8);
  return (bytes + step - 1) / step * step;
}

Status check_not_captured(const StreamMark& mark, Stream stream) {
  TUTTI_ASSIGN(const bool captured, mark.is_captured(stream));
  if (!captured) return Status::ok();
  return {StatusCode::kInvalidArgument,
          "a pool's blocks are neither taken nor given back within a capture: its graph would go "
          "on using them; take them before it"};
}

}  // namespace

// What a pool keeps of a block, taken or not.
struct PooledSegment {
  std::shared_ptr<SymmetricSegment> segment;
  std::size_t bytes = 0;  // rounded
  StreamMark last_use;
};

// One of them while it is taken.
using Held = std::list<PooledSegment>;

class SymmetricPoolImpl {
 public:
  explicit SymmetricPoolImpl(CommunicatorImpl& communicator) : communicator_(communicator) {}

  CommunicatorImpl& communicator() { return communicator_; }

  Result<Held> take(std::size_t bytes, Stream stream) {
    auto& queue = free_[bytes];
    if (queue.empty()) {
      TUTTI_ASSIGN(StreamMark mark, StreamMark::create(communicator_));
      TUTTI_TRY(check_not_captured(mark, stream));
      TUTTI_ASSIGN(auto segment, communicator_.allocate(bytes));
      queue.push_back({std::move(segment), bytes, std::move(mark)});
    }
    TUTTI_TRY(check_not_captured(queue.front().last_use, stream));
    TUTTI_TRY(queue.front().last_use.hold(stream));
    Held taken;
    taken.splice(taken.begin(), queue, queue.begin());
    taken.front().last_use.clear();
    ++taken_blocks_;
    taken_bytes_ += bytes;
    return taken;
  }

  // Asks for no memory: the block brings its place in the list.
  void put(Held held) {
    const std::size_t bytes = held.front().bytes;
    --taken_blocks_;
    taken_bytes_ -= bytes;
    auto& queue = free_.at(bytes);
    if (!closed_) queue.splice(queue.end(), held);
  }

  void trim() {
    for (auto& [bytes, queue] : free_) queue.clear();
  }
  // The pool's owner is gone: what comes back is freed.
  void close() {
    closed_ = true;
    trim();
  }

  SymmetricPool::Use use() const {
    SymmetricPool::Use use{.blocks = taken_blocks_, .taken_bytes = taken_bytes_};
    for (const auto& [bytes, queue] : free_) {
      use.blocks += queue.size();
      use.free_bytes += bytes * queue.size();
    }
    return use;
  }

 private:
  CommunicatorImpl& communicator_;
  std::map<std::size_t, Held> free_;  // by size, given back first to last
  std::size_t taken_blocks_ = 0, taken_bytes_ = 0;
  bool closed_ = false;
};

class SymmetricBlockImpl {
 public:
  SymmetricBlockImpl(std::shared_ptr<SymmetricPoolImpl> pool, Held held, std::size_t bytes)
      : pool_(std::move(pool)), held_(std::move(held)), bytes_(bytes) {}
  ~SymmetricBlockImpl() { pool_->put(std::move(held_)); }
  SymmetricBlockImpl(const SymmetricBlockImpl&) = delete;
  SymmetricBlockImpl& operator=(const SymmetricBlockImpl&) = delete;

  void* data() const { return held_.front().segment->local; }
  std::size_t bytes() const { return bytes_; }
  Status mark(Stream stream) {
    TUTTI_TRY(check_not_captured(held_.front().last_use, stream));
    return held_.front().last_use.set(stream);
  }

 private:
  std::shared_ptr<SymmetricPoolImpl> pool_;
  Held held_;
  std::size_t bytes_;
};

SymmetricBlock::SymmetricBlock() = default;
SymmetricBlock::SymmetricBlock(std::unique_ptr<SymmetricBlockImpl> impl) : impl_(std::move(impl)) {}
SymmetricBlock::SymmetricBlock(SymmetricBlock&&) noexcept = default;
SymmetricBlock& SymmetricBlock::operator=(SymmetricBlock&&) noexcept = default;
SymmetricBlock::~SymmetricBlock() = default;

void* SymmetricBlock::data() const { return impl_ ? impl_->data() : nullptr; }
std::size_t SymmetricBlock::bytes() const { return impl_ ? impl_->bytes() : 0; }

Status SymmetricBlock::give_back(Stream stream) {
  return guarded([&]() -> Status {
    if (impl_ == nullptr) return Status::ok();
    TUTTI_TRY(impl_->mark(stream));
    impl_.reset();
    return Status::ok();
  });
}

// Without memory for it take() will say so. The others take from theirs together with this rank.
SymmetricPool::SymmetricPool(Communicator& communicator) {
  guarded_by([&] { impl_ = std::make_shared<SymmetricPoolImpl>(communicator.impl()); },
             [&](const Status& failure) { (void)communicator.impl().break_off(failure); });
}
SymmetricPool::SymmetricPool(SymmetricPool&&) noexcept = default;
SymmetricPool& SymmetricPool::operator=(SymmetricPool&& other) noexcept {
  if (impl_ != nullptr && impl_ != other.impl_) impl_->close();
  impl_ = std::move(other.impl_);
  return *this;
}
SymmetricPool::~SymmetricPool() {
  if (impl_ != nullptr) impl_->close();
}

Result<SymmetricBlock> SymmetricPool::take(std::size_t bytes, Stream stream) {
  if (impl_ == nullptr) return Status(StatusCode::kResourceExhausted, "out of memory");
  return guarded(impl_->communicator(), [&]() -> Result<SymmetricBlock> {
    if (bytes == 0) return Status(StatusCode::kInvalidArgument, "take(0): bytes must be > 0");
    if (bytes > kMaxAllocationBytes) {
      return Status(StatusCode::kInvalidArgument,
                    fmt::format("take({}): at most {} bytes", bytes, kMaxAllocationBytes));
    }
    TUTTI_ASSIGN(Held taken, impl_->take(rounded_up(bytes), stream));
    return SymmetricBlock(std::make_unique<SymmetricBlockImpl>(impl_, std::move(taken), bytes));
  });
}

void SymmetricPool::trim() {
  if (impl_ != nullptr) impl_->trim();
}
SymmetricPool::Use SymmetricPool::use() const { return impl_ != nullptr ? impl_->use() : Use{}; }

}  // namespace tutti
