// The verbs of messages on GPUs. A block is a lane, and its two halves go through the body each for
// itself: one sends, the other takes. In each half the last warp is the postmaster, a thread of it
// for each message: it looks which one can go on, and says so; the other warps move the chunk.
// Meanwhile it tells the peer of the chunk before, for which its fence waits until the movers'
// stores have arrived, a trip over the link and back.
//
// A half that has one message alone, and that in packets, does without: there is nothing to choose,
// so each thread knows what to do, and waits for its own words.
#pragma once

#include <cuda_runtime.h>

#include "device/nvlink_peer/message_moves.cuh"

namespace tutti {

template <class Protocol = ProductionProtocol>
class MessageTeam : public MessageMoves<Protocol> {
  using Base = MessageMoves<Protocol>;
  using Base::thread, Base::meet, Base::ahead_, Base::ahead_of_, Base::load_eight;
  using Base::work_, Base::kWarp, Base::takes, Base::movers, Base::mover, Base::is_postmaster;

 public:
  static_assert(kMaxMessages <= kWarp);

  // One of each half.
  struct Half {
    MessageMove moves[2];  // this step's, and the one before
    std::uint32_t failed;  // a mover has
  };
  struct Shared {
    Half halves[2];
  };

  // All threads of the block, of which each half has two warps at least.
  __device__ MessageTeam(const KernelArgs& work, Shared& shared)
      : Base(work), half_(shared.halves[takes()]) {
    if (is_postmaster() && thread() == 0) half_.failed = 0;
  }

  __device__ int lane() const { return static_cast<int>(blockIdx.x); }

  __device__ std::byte* slot_at_taker(const Message& message, std::uint64_t chunk) const {
    return messages_->slot(message.in_packets, message.peer, work_.rank, lane(), chunk);
  }
  __device__ const std::byte* own_slot(const Message& message, std::uint64_t chunk) const {
    return messages_->slot(message.in_packets, work_.rank, message.peer, lane(), chunk);
  }

  // The kernel before on the stream may be draining until then: it has written the counts, and what
  // is sent.
  __device__ void open_messages(const Messages& messages) {
    messages_ = &messages;
#if __CUDA_ARCH__ >= 900
    asm volatile("griddepcontrol.wait;" ::: "memory");
    asm volatile("griddepcontrol.launch_dependents;" ::: "memory");
#endif
    if (open_alone()) return;
    if (!is_postmaster()) return;
    const int own = thread();
    peer_ = -1;
    if (own < messages.number && messages.at[own].is_sent() != takes()) {
      const Message& message = messages.at[own];
      chunks_ = message.chunks_of(lane());
      is_own_ = message.is_own();
      in_packets_ = message.in_packets;
      signature_ = message.signature;
      peer_ = message.peer;
      posted_ = in_packets_ || is_own_;
      if (takes() && message.window != 0) place_ = message.output;
      if (place_ != nullptr && chunks_ > 0) chunks_ = 1;
    }
    counts_ = takes() ? &count_of(peer_).taken : &count_of(peer_).sent;
    const bool counted = chunks_ > 0 && !is_own_;
    // All under way together.
    const std::uint32_t poison = load_relaxed_gpu(&work_.control->poison);
    if (counted) begun_ = load_relaxed_gpu(counts_);
    if (counted && !takes()) credit_ = load_acquire_flag(&flags_from_peer().credits).epoch;
    failed_ = __any_sync(~0u, poison != 0);
    is_first_ = is_last_ = counted;
    for (int other = 0; other < messages.number; ++other) {
      const int peer = __shfl_sync(~0u, peer_, other);
      const std::uint32_t chunks = __shfl_sync(~0u, counted ? chunks_ : 0, other);
      if (peer != peer_ || chunks == 0) continue;
      of_pair_ += chunks;
      if (other < own) {
        before_ |= 1u << other;
        is_first_ = false;
      } else if (other > own) {
        is_last_ = false;
      }
    }
    has_chains_ = __any_sync(~0u, before_ != 0);
    chunk_ = begun_;
    // Lanes begin with different peers, and ranks with different ones in a lane.
    if (messages.number > 1) turn_ = (lane() + work_.rank) % messages.number;
    // What earlier operations took. Relaxed: their kernels have ended.
    if (takes() && is_first_ && !failed_) tell_credits(begun_);
  }

  // Movers wait for the word of the postmaster, who has it before they have moved the chunk before.
  __device__ Outcome next_move(MessageMove& move) {
    if (alone_ >= 0) return next_alone(move);
    if (is_postmaster()) {
      half_.moves[step_ % 2] = choose();
      tell_ahead(half_.moves[step_ % 2]);
    }
    meet();
    move = half_.moves[step_ % 2];
    if (is_postmaster()) {
      failed_ = __any_sync(~0u, failed_ || half_.failed != 0);
      if (!failed_) tell_of_last();
      last_ = move;
      confirm();
    }
    ++step_;
    return move.kind == MessageMove::kNothing && move.message < 0 ? Outcome::kFailed
                                                                  : Outcome::kDone;
  }

  // The postmaster tells of it once the half has met again.
  __device__ Outcome pass(const MessageMove& move, Outcome carried) {
    if (alone_ >= 0) return pass_alone(move, carried);
    if (carried != Outcome::kDone) half_.failed = 1;
    return Outcome::kDone;
  }

  __device__ Outcome close_messages() const {
    if (!is_postmaster() || !is_last_ || failed_) return Outcome::kDone;
    // Who else ran with this peer began with the same count: one of the two finds another.
    const std::uint64_t seen =
        alone_ >= 0 ? counted_on_ : compare_and_swap(counts_, begun_, chunk_);
    if (seen == begun_) return Outcome::kDone;
    return fail(work_, FailureReason::kOverlap, {begun_, Flag{seen, 0}, work_.rank, 0});
  }

 private:
  __device__ MessageCounts& count_of(int peer) const {
    return messages_->counts[lane() * kMaxRanks + (peer < 0 ? 0 : peer)];
  }
  __device__ const MessageFlags& flags_from_peer() const {
    return messages_->flags(work_.rank, lane(), peer_);
  }
  __device__ MessageFlags& flags_at_peer() const {
    return messages_->flags(peer_, lane(), work_.rank);
  }

  // --- by all threads of a half, where its one message comes in packets ---

  __device__ bool open_alone() {
    int found = -1, number = 0;
    for (int i = 0; i < messages_->number; ++i) {
      if (messages_->at[i].is_sent() == takes()) continue;
      found = i;
      ++number;
    }
    if (number != 1 || !messages_->at[found].in_packets) return false;
    const Message& message = messages_->at[found];
    alone_ = found;
    peer_ = message.peer;
    signature_ = message.signature;
    chunks_ = message.chunks_of(lane());
    counts_ = takes() ? &count_of(peer_).taken : &count_of(peer_).sent;
    is_last_ = is_postmaster() && thread() == 0 && chunks_ > 0;
    if (chunks_ == 0) return true;
    // All under way together; and of what is sent, this thread's first piece.
    const std::uint32_t poison = load_relaxed_gpu(&work_.control->poison);
    begun_ = load_relaxed_gpu(counts_);
    if (!takes()) {
      credit_ = load_acquire_flag(&flags_from_peer().credits).epoch;
      const Range part = message.chunk(lane(), 0);
      const std::size_t at = std::size_t{mover()} * 8;
      if (!is_postmaster() && at < part.count) {
        const int width = width_of(reinterpret_cast<std::uintptr_t>(message.input));
        ahead_of_ = message.input + part.first + at;
        ahead_ = load_eight(ahead_of_, width, part.count - at);
      }
    }
    chunk_ = begun_;
    failed_ = poison != 0;
    // It is counted on at once, when all have read it: the answer comes while packets travel.
    __syncwarp();
    is_postmaster() ? meet() : Base::come();
    if (is_last_ && !failed_) counted_on_ = compare_and_swap(counts_, begun_, begun_ + chunks_);
    if (takes() && is_last_ && !failed_) tell_credits(begun_);
    return true;
  }

  // A message in packets has no more chunks in a lane than slots: nobody waits to be told that some
  // of them are taken.
  __device__ Outcome next_alone(MessageMove& move) {
    if (failed_) return Outcome::kFailed;
    move = {MessageMove::kNothing, alone_, index_, chunk_, nullptr};
    if (index_ == chunks_) return Outcome::kDone;
    move.kind = takes() ? MessageMove::kTake : MessageMove::kSend;
    if (!takes() && chunk_ >= kPacketSlots + credit_) {
      const Flag* const credits = &flags_from_peer().credits;
      if (wait_for(credits, chunk_ + 1 - kPacketSlots, false) != Outcome::kDone) {
        return Outcome::kFailed;
      }
    }
    if (!takes() && is_last_) tell_chunk(chunk_);
    ++index_;
    ++chunk_;
    return Outcome::kDone;
  }

  __device__ Outcome pass_alone(const MessageMove& move, Outcome carried) {
    if (carried != Outcome::kDone || !is_last_ || !takes()) return carried;
    const Flag* const flag = &flags_from_peer().chunks[move.chunk % kChunkSlots];
    return wait_for(flag, move.chunk + 1, true);
  }

  // --- by the postmaster, each thread for its message ---

  // What can be done next. Where that is nothing yet: nothing, until what was done has been told.
  __device__ MessageMove choose() {
    for (Patience patience;;) {
      const unsigned unfinished = __ballot_sync(~0u, index_ < chunks_);
      if (failed_) {
        take_post_back();
        return {MessageMove::kNothing, -1, 0, 0, nullptr};
      }
      const bool told = !tells_of_last();
      if (unfinished == 0) {
        return {told ? MessageMove::kNothing : MessageMove::kIdle, 0, 0, 0, nullptr};
      }
      const bool is_next = index_ < chunks_ && (unfinished & before_) == 0;
      if (has_chains_) chunk_ = begun_ + moved_before() + index_;
      if (takes() && is_next && !posted_) post();
      bool other = false;
      const bool ready = is_next && is_ready((unfinished & (unfinished - 1)) == 0, other);
      if (__any_sync(~0u, other)) {
        failed_ = true;
        continue;
      }
      const unsigned all = __ballot_sync(~0u, ready);
      if (all != 0) return take_turn(all);
      if (!told) return {MessageMove::kIdle, 0, 0, 0, nullptr};
      if (!patience.is_tried()) continue;
      const unsigned waiting = __ballot_sync(~0u, is_next);
      Outcome end = Outcome::kDone;
      if (thread() == __ffs(waiting) - 1) {
        end = patience.look_up(work_, {chunk_ + 1, awaited(), peer_, 0});
      }
      if (__any_sync(~0u, end != Outcome::kDone)) failed_ = true;
    }
  }

  __device__ Flag awaited() const {
    Flag seen = takes() ? load_relaxed_flag(&flags_from_peer().chunks[chunk_ % kChunkSlots])
                        : load_relaxed_flag(&flags_from_peer().credits);
    if (seen.epoch > chunk_) seen.epoch = chunk_;
    return seen;
  }

  // Whether its next chunk can go, or has come. `alone`: no other message of this half is left, so
  // that nobody minds if its movers wait for packets.
  __device__ bool is_ready(bool alone, bool& other) {
    if (is_own_) return true;
    if (!takes()) {
      if (!posted_ && !find_post(other)) return false;
      const auto slots = static_cast<std::uint64_t>(slots_of(in_packets_));
      if (chunk_ < slots + credit_) return true;
      credit_ = load_acquire_flag(&flags_from_peer().credits).epoch;
      return chunk_ < slots + credit_;
    }
    if (in_packets_ && alone) return true;
    return has_come(other);
  }

  // A flag stays until its slot is free again, so it is that of this very chunk.
  __device__ bool has_come(bool& other) {
    if (!Protocol::waits_for_chunks()) return true;
    const Flag seen = load_acquire_flag(&flags_from_peer().chunks[chunk_ % kChunkSlots]);
    if (seen.epoch <= chunk_ || !is_whole(seen)) return false;
    other = seen.epoch == chunk_ + 1 && seen.check != check_word(signature_, seen.epoch);
    if (other) fail(work_, FailureReason::kMismatch, {chunk_ + 1, seen, peer_, 0});
    return true;
  }

  // The first that is ready behind the one that had its turn last.
  __device__ MessageMove take_turn(unsigned ready) {
    const unsigned behind = ready & ~((2u << turn_) - 1);
    turn_ = __ffs(behind != 0 ? behind : ready) - 1;
    const auto place = __shfl_sync(~0u, reinterpret_cast<unsigned long long>(place_), turn_);
    MessageMove move = {MessageMove::kSend, turn_, __shfl_sync(~0u, index_, turn_),
                        __shfl_sync(~0u, chunk_, turn_), reinterpret_cast<std::byte*>(place)};
    if (takes()) move.kind = MessageMove::kTake;
    if (__shfl_sync(~0u, static_cast<int>(is_own_), turn_) != 0) move.kind = MessageMove::kOwn;
    if (thread() == turn_) {
      ++index_;
      ++chunk_;
    }
    return move;
  }

  // Chunks of this pair's messages that go first. All threads.
  __device__ std::uint64_t moved_before() const {
    std::uint64_t moved = 0;
    for (int other = 0; other < messages_->number; ++other) {
      const std::uint32_t index = __shfl_sync(~0u, index_, other);
      if ((before_ >> other & 1u) != 0) moved += index;
    }
    return moved;
  }

  // Relaxed: what was done with the output before, earlier kernels did.
  __device__ void post() {
    const Message& message = messages_->at[thread()];
    const PostedPlace place{message.window, message.offset};
    Flag* const posts = flags_at_peer().posts;
    store_flag(&posts[0], place.first(chunk_ + 1));
    store_flag(&posts[1], place.second(chunk_ + 1));
    store_flag(&posts[2], PostedPlace::flag_of(chunk_ + 1, signature_));
    posted_ = true;
  }
  // Nobody who comes from now on may store there. But for a mismatch, which the peer finds by it.
  __device__ void take_post_back() const {
    const bool stands = takes() && posted_ && !in_packets_ && !is_own_ && index_ < chunks_;
    const std::uint32_t poison = load_relaxed_gpu(&work_.control->poison);
    if (!stands || Control::reason_of(poison) == FailureReason::kMismatch) return;
    store_flag(&flags_at_peer().posts[0], Flag{});
  }
  // Where the message goes. `other`: the post names a registration that is not known here.
  __device__ bool find_post(bool& other) {
    const Flag* const posts = flags_from_peer().posts;
    const Flag first = load_acquire_flag(&posts[0]), second = load_acquire_flag(&posts[1]);
    const Flag message = load_acquire_flag(&posts[2]);
    const auto is_new = [this](const Flag& flag) {
      return flag.epoch == chunk_ + 1 && is_whole(flag);
    };
    if (!is_new(first) || !is_new(second) || !is_new(message)) return false;
    posted_ = true;
    other = message.check != check_word(signature_, chunk_ + 1);
    if (other) fail(work_, FailureReason::kMismatch, {chunk_ + 1, message, peer_, 0});
    if (other) return false;
    const PostedPlace place = PostedPlace::of(first, second);
    if (place.window == 0) return true;
    place_ = messages_->place_of(place, peer_);
    chunks_ = 1;
    other = place_ == nullptr;
    if (other) fail(work_, FailureReason::kMismatch, {chunk_ + 1, first, peer_, 0});
    return !other;
  }

  // Whether the peer waits to be told of what moved last. That chunks are taken it may wait for
  // within the operation where they are more than its slots; else the next one tells. All threads.
  __device__ bool tells_of_last() const {
    const bool sends = last_.kind == MessageMove::kSend && !in_packets_;
    const bool frees = last_.kind == MessageMove::kTake && of_pair_ > kPacketSlots;
    return __any_sync(~0u, thread() == last_.message && (sends || frees));
  }
  // Of the chunk that the movers have moved before they met.
  __device__ void tell_of_last() const {
    if (!tells_of_last() || thread() != last_.message) return;
    const bool sends = last_.kind == MessageMove::kSend;
    if (!sends || Protocol::releases_chunks()) fence_release_system();
    sends ? tell_chunk(last_.chunk) : tell_credits(last_.chunk + 1);
  }
  // Packets come by themselves; the flag says which message's they are.
  __device__ void tell_ahead(const MessageMove& move) const {
    if (thread() != move.message || move.kind != MessageMove::kSend || !in_packets_) return;
    tell_chunk(move.chunk);
  }
  // Of packets that the movers wait for: that they are those of this message.
  __device__ void confirm() {
    const bool waits = thread() == last_.message && last_.kind == MessageMove::kTake && in_packets_;
    bool other = false;
    if (waits) {
      const Flag* const flag = &flags_from_peer().chunks[last_.chunk % kChunkSlots];
      other = wait_for(flag, last_.chunk + 1, true) != Outcome::kDone;
    }
    failed_ = __any_sync(~0u, failed_ || other);
  }
  // `signed_flag`: it is that of a chunk of this message.
  __device__ Outcome wait_for(const Flag* flag, std::uint64_t epoch, bool signed_flag) const {
    for (Patience patience;;) {
      const Flag seen = load_acquire_flag(flag);
      if (seen.epoch >= epoch && is_whole(seen)) {
        if (!signed_flag || seen.epoch > epoch || seen.check == check_word(signature_, epoch)) {
          return Outcome::kDone;
        }
        return fail(work_, FailureReason::kMismatch, {epoch, seen, peer_, 0});
      }
      if (!patience.is_tried()) continue;
      const Outcome end = patience.look_up(work_, {epoch, seen, peer_, 0});
      if (end != Outcome::kDone) return end;
    }
  }
  __device__ void tell_chunk(std::uint64_t chunk) const {
    store_flag(&flags_at_peer().chunks[chunk % kChunkSlots],
               Flag{chunk + 1, check_word(signature_, chunk + 1)});
  }
  __device__ void tell_credits(std::uint64_t taken) const {
    store_flag(&flags_at_peer().credits, Flag{taken, check_word(signature_, taken)});
  }

  Half& half_;
  const Messages* messages_ = nullptr;
  unsigned step_ = 0;

  int alone_ = -1;  // the one message of this half, in packets

  // Of the postmaster's threads: the message, if it is of this half, and where it stands.
  int peer_ = -1;
  std::uint32_t chunks_ = 0, index_ = 0;  // of it in this lane
  std::uint64_t begun_ = 0, chunk_ = 0;   // of the pair: before the operation, and its next
  std::uint32_t of_pair_ = 0;             // of the pair in this operation
  std::uint64_t counted_on_ = 0;          // what was found when it was counted on
  std::byte* place_ = nullptr;            // where the message goes, or comes, at once
  std::uint64_t credit_ = 0;              // chunks that the peer is known to have taken
  std::uint64_t* counts_ = nullptr;
  unsigned before_ = 0;  // messages that go first, as bits
  std::uint32_t signature_ = 0;
  int turn_ = kWarp - 1;
  bool is_own_ = false, in_packets_ = false, is_first_ = false, is_last_ = false;
  bool posted_ = false;  // where it goes is known
  bool has_chains_ = false;
  bool failed_ = false;
  MessageMove last_ = {};
};

}  // namespace tutti
