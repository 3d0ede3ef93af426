// The implementation of tutti/device/peers.hpp. The template parameter `Memory` is SystemMemory;
// tests use a memory that reorders accesses which nothing orders.
#pragma once

#include <cassert>

#include "tutti/device/impl/memory.hpp"
#include "tutti/device/peers.hpp"

namespace tutti::device {
namespace impl {

template <class Memory>
TUTTI_DEVICE bool is_healthy(const Peers& peers) {
  return Memory::look(&peers.signals.control->poison) == 0;
}

TUTTI_DEVICE void check_range(const Peers& peers, int peer, std::size_t offset, std::size_t bytes) {
  assert(peer >= 0 && peer < peers.ranks);
  assert(offset <= peers.bytes && bytes <= peers.bytes - offset);
  (void)peers, (void)peer, (void)offset, (void)bytes;
}
TUTTI_DEVICE void check_channel(const Peers& peers, int peer, int channel) {
  assert(peer >= 0 && peer < peers.ranks);
  assert(channel >= 0 && channel < kSignalChannels);
  (void)peers, (void)peer, (void)channel;
}

template <class Memory, class Threads>
TUTTI_DEVICE void put(const Peers& peers, const Threads& threads, const Put& put) {
  check_range(peers, put.peer, put.offset_bytes, put.bytes);
  if (!is_healthy<Memory>(peers)) return;
  Memory::copy(threads, peers.at[put.peer] + put.offset_bytes,
               static_cast<const std::byte*>(put.from), put.bytes);
}

template <class Memory, class Threads>
TUTTI_DEVICE void get(const Peers& peers, const Threads& threads, const Get& get) {
  check_range(peers, get.peer, get.offset_bytes, get.bytes);
  if (!is_healthy<Memory>(peers)) return;
  Memory::copy(threads, static_cast<std::byte*>(get.to), peers.at[get.peer] + get.offset_bytes,
               get.bytes);
}

// Called by one thread. Releases what this thread did, and what other threads did before a common
// sync().
template <class Memory>
TUTTI_DEVICE void send_signal(const Peers& peers, int peer, int channel) {
  check_channel(peers, peer, channel);
  if (!is_healthy<Memory>(peers)) return;
  std::uint64_t* const sent = &peers.signals.counters->sent[channel][peer];
  const std::uint64_t count = Memory::load(sent) + 1;
  Memory::store(sent, count);
  Memory::store_release(&peers.signals.of[peer]->arrived[channel][peers.rank], count);
}

// The state of one thread's wait, for the FailureRecord.
struct WaitForSignal {
  int peer, channel, block;
  std::uint64_t expected, seen, waited_ns;
  bool peer_left = false;  // as of the last check; the word was polled since
};

// Marks this rank as failed, and fills the record unless another wait was first.
template <class Memory>
TUTTI_DEVICE void fail(const Signals& signals, int rank, FailureReason reason,
                       const WaitForSignal& wait) {
  Memory::poison(&signals.control->poison, static_cast<std::uint32_t>(reason));
  if (!Memory::claim(&signals.control->claimed)) return;
  FailureRecord& record = *signals.failure;
  record.sequence = 0;
  record.expected_epoch = wait.expected;
  record.seen_epoch = wait.seen;
  record.waiting_rank = rank;
  record.missing_rank = wait.peer;
  record.block = wait.block;
  record.reason = static_cast<std::uint32_t>(reason);
  record.waited_ns = wait.waited_ns;
  record.signal = static_cast<std::uint32_t>(wait.channel) + 1;
  Memory::publish(&record.state, 1);
}

// Whether the wait has to end: by an abort, a failure, the end of the peer, or its timeout.
template <class Memory>
TUTTI_DEVICE bool ends(const Peers& peers, WaitForSignal& wait, bool look_at_host) {
  const Signals& signals = peers.signals;
  const std::uint32_t notices = look_at_host ? Memory::look_acquire(signals.notices) : 0;
  if ((notices & Notice::kAbort) != 0) {
    fail<Memory>(signals, peers.rank, FailureReason::kAborted, wait);
    return true;
  }
  if (!is_healthy<Memory>(peers)) return true;
  if (wait.peer_left) {
    fail<Memory>(signals, peers.rank, FailureReason::kLeft, wait);
    return true;
  }
  wait.peer_left = (notices & Notice::left(wait.peer)) != 0;
  const std::uint64_t limit =
      signals.timeout_ns != 0 ? signals.timeout_ns : Memory::load(&signals.control->timeout_ns);
  if (wait.waited_ns <= limit) return false;
  fail<Memory>(signals, peers.rank, FailureReason::kTimeout, wait);
  return true;
}

// Called by one thread.
template <class Memory>
TUTTI_DEVICE bool take_signals(const Peers& peers, WaitForSignal wait, std::uint64_t times) {
  check_channel(peers, wait.peer, wait.channel);
  if (!is_healthy<Memory>(peers)) return false;
  std::uint64_t* const taken = &peers.signals.counters->taken[wait.channel][wait.peer];
  wait.expected = Memory::load(taken) + times;
  const auto is_over = [&](std::uint64_t seen, std::uint64_t waited_ns, bool look_at_host) {
    wait.seen = seen;
    wait.waited_ns = waited_ns;
    return ends<Memory>(peers, wait, look_at_host);
  };
  std::uint64_t* const arrived = &peers.signals.of[peers.rank]->arrived[wait.channel][wait.peer];
  if (!Memory::wait(arrived, wait.expected, is_over)) return false;
  Memory::store(taken, wait.expected);
  return true;
}

template <class Memory, class Threads>
TUTTI_DEVICE void signal(const Peers& peers, const Threads& threads, int peer, int channel) {
  threads.sync();
  if (threads.thread() == 0) send_signal<Memory>(peers, peer, channel);
}

template <class Memory, class Threads>
TUTTI_DEVICE bool wait_signal(const Peers& peers, const Threads& threads, int peer, int channel,
                              std::uint64_t times) {
  bool good = true;
  if (threads.thread() == 0) {
    const WaitForSignal wait{peer, channel, threads.index(), 0, 0, 0};
    good = take_signals<Memory>(peers, wait, times);
  }
  return threads.all(good);
}

// One thread per peer if there are enough. All signals are sent before the first wait.
template <class Memory, class Threads>
TUTTI_DEVICE bool barrier(const Peers& peers, const Threads& threads, int channel) {
  threads.sync();
  const int first = static_cast<int>(threads.thread()), step = static_cast<int>(threads.threads());
  for (int r = first; r < peers.ranks; r += step) send_signal<Memory>(peers, r, channel);
  bool good = true;
  for (int r = first; r < peers.ranks && good; r += step) {
    good = take_signals<Memory>(peers, {r, channel, threads.index(), 0, 0, 0}, 1);
  }
  return threads.all(good);
}

}  // namespace impl

template <class T>
TUTTI_DEVICE T* Peers::pointer(int peer, std::size_t offset_bytes) const {
  impl::check_range(*this, peer, offset_bytes, 0);
  return reinterpret_cast<T*>(at[peer] + offset_bytes);
}
template <class Threads>
TUTTI_DEVICE void Peers::put(const Threads& threads, const Put& put) const {
  impl::put<impl::SystemMemory>(*this, threads, put);
}
template <class Threads>
TUTTI_DEVICE void Peers::get(const Threads& threads, const Get& get) const {
  impl::get<impl::SystemMemory>(*this, threads, get);
}
template <class Threads>
TUTTI_DEVICE void Peers::signal(const Threads& threads, int peer, int channel) const {
  impl::signal<impl::SystemMemory>(*this, threads, peer, channel);
}
template <class Threads>
TUTTI_DEVICE void Peers::put_signal(const Threads& threads, const Put& put, int channel) const {
  impl::put<impl::SystemMemory>(*this, threads, put);
  impl::signal<impl::SystemMemory>(*this, threads, put.peer, channel);
}
template <class Threads>
TUTTI_DEVICE bool Peers::wait_signal(const Threads& threads, int peer, int channel,
                                     std::uint64_t times) const {
  return impl::wait_signal<impl::SystemMemory>(*this, threads, peer, channel, times);
}
template <class Threads>
TUTTI_DEVICE bool Peers::barrier(const Threads& threads, int channel) const {
  return impl::barrier<impl::SystemMemory>(*this, threads, channel);
}

}  // namespace tutti::device
