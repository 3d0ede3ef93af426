// A kernel that copies what a thread of the host asks for, until that says that the operation has
// ended. So a stream takes part in what only the host can do, and the host needs no call of CUDA's,
// which might wait for the kernel.
//
// Both sides write words in pinned memory of the host. Each word has one writer, and its values
// only grow. Kernels of one page run one after the other.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "tutti/device/impl/memory.hpp"

namespace tutti {

// Rows of bytes, between any memory that the kernel addresses. Addresses are words.
struct RequestedCopy {
  std::uint64_t to = 0, from = 0;
  std::uint64_t to_stride = 0, from_stride = 0;  // from one row to the next
  std::uint64_t bytes = 0;                       // of a row
  std::uint64_t rows = 0;                        // 0: none; as a request, that the operation ends
};

struct CopyRequests {
  static constexpr std::size_t kSlots = 64;

  // Written by the host. Request k lies in slot (k - 1) % kSlots; `posted` of them have been made.
  // A slot is written again once its request is done.
  alignas(128) std::uint64_t posted;
  std::uint64_t timeout_ns;  // of waits for the next request, where the operation has none
  std::uint32_t aborted;     // 1: kernels end at once
  alignas(128) RequestedCopy slots[kSlots];

  // Written by kernels: the latest operation that has begun, for which its first copy is made; how
  // many requests are done; the latest operation whose kernel touches nothing any more; and the one
  // that has waited in vain.
  alignas(128) std::uint64_t begun;
  std::uint64_t done, ended, late;
  std::uint64_t scalar;  // the pre-multiplier of the operation, an element: its first copy
};

// Relaxed, system scope.
TUTTI_DEVICE std::uint64_t look_at(const std::uint64_t& word) {
#if defined(__CUDA_ARCH__)
  std::uint64_t value;
  asm volatile("ld.relaxed.sys.u64 %0, [%1];" : "=l"(value) : "l"(&word) : "memory");
  return value;
#else
  return std::atomic_ref(const_cast<std::uint64_t&>(word)).load(std::memory_order_relaxed);
#endif
}

// What a test may leave out, to see that its absence is found. Of the kernel, then of the host.
enum class CopyRule : std::uint8_t {
  kNone,
  kDoneAfterCopy,  // a request is done when it is read
  kDeadline,       // the kernel waits for ever
  kAbort,          // it does not hear that the group has failed
  kCopiedIn,       // what is sent may not have been copied yet
  kArrived,        // what is copied out may not have come yet
  kCopiedOut,      // staging is used again before it is copied out
};

// The argument of the kernel, by value.
struct RequestedCopies {
  CopyRequests* page;
  std::uint64_t number;      // of the operation, from 1
  std::uint64_t timeout_ns;  // 0: page->timeout_ns
  RequestedCopy first;       // made unasked, before the host hears that the operation has begun
};

template <class Memory, CopyRule omitted>
class CopyServer {
 public:
  TUTTI_DEVICE CopyServer(const RequestedCopies& work, const device::Block& block)
      : work_(work), page_(*work.page), block_(block) {}

  TUTTI_DEVICE void run() const {
    if (block_.all(!is_aborted())) serve();
    if (leads()) Memory::store_release(&page_.ended, work_.number);
  }

 private:
  TUTTI_DEVICE bool leads() const { return block_.thread() == 0; }
  TUTTI_DEVICE bool is_aborted() const {
    return omitted != CopyRule::kAbort && Memory::look_acquire(&page_.aborted) != 0;
  }

  TUTTI_DEVICE void serve() const {
    // Those before it have ended, so nobody writes it now.
    std::uint64_t done = Memory::load_acquire(&page_.done);
    copy(work_.first);
    finish(&page_.begun, work_.number);
    for (;;) {
      if (!block_.all(!leads() || await(done + 1))) return;
      const RequestedCopy request = read(page_.slots[done % CopyRequests::kSlots]);
      ++done;
      if (omitted == CopyRule::kDoneAfterCopy) finish(&page_.done, done);
      copy(request);
      if (omitted != CopyRule::kDoneAfterCopy) finish(&page_.done, done);
      if (request.rows == 0) return;
    }
  }

  // Release: the host that sees the word sees what all threads of the block have copied.
  TUTTI_DEVICE void finish(std::uint64_t* word, std::uint64_t value) const {
    block_.sync();
    if (leads()) Memory::store_release(word, value);
  }

  // Acquire: the requests up to `count`, and what the host has written into staging before.
  TUTTI_DEVICE bool await(std::uint64_t count) const {
    return Memory::wait(&page_.posted, count, [this](std::uint64_t, std::uint64_t waited_ns, bool) {
      if (is_aborted()) return true;
      if (omitted == CopyRule::kDeadline || waited_ns <= limit_ns()) return false;
      Memory::store_release(&page_.late, work_.number);
      return true;
    });
  }

  TUTTI_DEVICE std::uint64_t limit_ns() const {
    return work_.timeout_ns != 0 ? work_.timeout_ns : look_at(page_.timeout_ns);
  }

  // By each thread, behind the acquire of one of them.
  TUTTI_DEVICE static RequestedCopy read(const RequestedCopy& slot) {
    return {.to = look_at(slot.to),
            .from = look_at(slot.from),
            .to_stride = look_at(slot.to_stride),
            .from_stride = look_at(slot.from_stride),
            .bytes = look_at(slot.bytes),
            .rows = look_at(slot.rows)};
  }

  TUTTI_DEVICE void copy(const RequestedCopy& copy) const {
    for (std::uint64_t row = 0; row < copy.rows; ++row) {
      Memory::copy(block_, reinterpret_cast<std::byte*>(copy.to + row * copy.to_stride),
                   reinterpret_cast<const std::byte*>(copy.from + row * copy.from_stride),
                   copy.bytes);
    }
  }

  const RequestedCopies& work_;
  CopyRequests& page_;
  const device::Block& block_;
};

// By every thread of one block.
template <class Memory = device::impl::SystemMemory, CopyRule omitted = CopyRule::kNone>
TUTTI_DEVICE void run_requested_copies(const RequestedCopies& work, const device::Block& block) {
  CopyServer<Memory, omitted>(work, block).run();
}

}  // namespace tutti
