// Messages between pairs of ranks, on the host.
#include "device/host_shared/host_waits.hpp"

namespace tutti {

void HostTeam::open_messages(const Messages& messages) {
  book_.open(messages, block_);
  for (int i = 0; i < messages.number; ++i) {
    const Message& message = messages.at[i];
    if (message.is_sent()) continue;
    tell_credits(message.peer, book_.at_begin(message.peer).taken);
  }
}

// Release: who sees the count fills the slots after they were loaded from.
void HostTeam::tell_credits(int peer, std::uint64_t taken) const {
  if (weakened(&ProtocolMutation::no_credit_release, 1)) return;
  const bool release = !weakened(&ProtocolMutation::no_credit_release, 0);
  signal(work_.messages->flags(peer, block_, work_.rank).credits, taken,
         release ? std::memory_order_release : std::memory_order_relaxed);
}

// Relaxed: what was done with the output before this operation, whoever posts has seen the end of.
void HostTeam::post_turns() {
  book_.post_turns([this](const Message& message, std::uint64_t chunk) {
    const PostedPlace place{message.window, message.offset};
    Flag* const posts = work_.messages->flags(message.peer, block_, work_.rank).posts;
    const Flag said[] = {place.first(chunk + 1), place.second(chunk + 1),
                         PostedPlace::flag_of(chunk + 1, message.signature)};
    for (int part = 0; part < 3; ++part) {
      word(posts[part].check).store(said[part].check, std::memory_order_relaxed);
      word(posts[part].epoch).store(said[part].epoch, std::memory_order_release);
    }
  });
}

bool HostTeam::find_post(const Message& message, std::uint64_t chunk, std::byte*& place) const {
  MessageFlags& flags = work_.messages->flags(work_.rank, block_, message.peer);
  Flag seen[3];
  for (int part = 0; part < 3; ++part) {
    if (word(flags.posts[part].epoch).load(std::memory_order_acquire) != chunk + 1) return false;
    seen[part] = flag_now(flags.posts[part]);
  }
  if (seen[2].check != check_word(message.signature, chunk + 1))
    return true;  // move_found() says so
  const PostedPlace posted = PostedPlace::of(seen[0], seen[1]);
  if (posted.window != 0) place = work_.messages->place_of(posted, message.peer);
  return posted.window == 0 || place != nullptr;
}

bool HostTeam::is_ready(const Message& message, std::uint64_t chunk) {
  MessageFlags& flags = work_.messages->flags(work_.rank, block_, message.peer);
  if (!message.is_sent()) {
    const bool acquire = !weakened(&ProtocolMutation::no_chunk_acquire, 0);
    const auto order = acquire ? std::memory_order_acquire : std::memory_order_relaxed;
    return weakened(&ProtocolMutation::no_chunk_wait, 0) ||
           word(flags.chunks[chunk % kChunkSlots].epoch).load(order) > chunk;
  }
  const auto find = [this](const Message& sent, std::uint64_t first, std::byte*& place) {
    return find_post(sent, first, place);
  };
  if (!book_.is_posted(message, chunk, find)) return false;
  const auto slots = static_cast<std::uint64_t>(slots_of(message.in_packets));
  if (chunk < slots || weakened(&ProtocolMutation::no_credit_wait, 0)) return true;
  const bool acquire = !weakened(&ProtocolMutation::no_credit_acquire, 0);
  const auto order = acquire ? std::memory_order_acquire : std::memory_order_relaxed;
  return word(flags.credits.epoch).load(order) > chunk - slots;
}

Flag& HostTeam::awaited_flag(const Message& message, std::uint64_t chunk) const {
  MessageFlags& flags = work_.messages->flags(work_.rank, block_, message.peer);
  return message.is_sent() ? flags.credits : flags.chunks[chunk % kChunkSlots];
}

Outcome HostTeam::next_move(MessageMove& move) {
  if (poisoned()) return Outcome::kFailed;
  post_turns();
  const auto ready = [this](const Message& message, std::uint64_t chunk) {
    return is_ready(message, chunk);
  };
  if (book_.pick(move, ready)) return move_found(move);
  std::uint64_t chunk = 0;
  const Message& waits = book_.first_waiting(chunk);
  bool looked = false;
  const auto look = [&] {
    looked = true;
    tell(std::uint64_t{1} << waits.peer);
    return Flag{flag_now(awaited_flag(waits, chunk)).epoch, 0};
  };
  const auto come = [&] { return book_.pick(move, ready); };
  if (wait_until(waits.peer, chunk + 1, come, look) != Outcome::kDone) {
    // Nobody who comes from now on may store there.
    book_.for_each_posted([this](const Message& message) {
      Flag* const posts = work_.messages->flags(message.peer, block_, work_.rank).posts;
      word(posts[0].epoch).store(0, std::memory_order_relaxed);
    });
    return Outcome::kFailed;
  }
  if (looked) tell(0);
  return move_found(move);
}

// A flag stays until its slot is free again, so it is that of this very chunk.
Outcome HostTeam::move_found(const MessageMove& move) const {
  const Message& message = work_.messages->at[move.message];
  if (move.kind == MessageMove::kSend && !message.in_packets) return post_found(message, move);
  if (move.kind != MessageMove::kTake) return Outcome::kDone;
  const Flag seen = flag_now(awaited_flag(message, move.chunk));
  const std::uint64_t check = check_word(message.signature, move.chunk + 1);
  const bool whole = static_cast<std::uint32_t>(seen.check) == static_cast<std::uint32_t>(check);
  if (!whole || seen.check == check) return Outcome::kDone;
  return fail(FailureReason::kMismatch, message.peer, move.chunk + 1, seen, 0);
}

// It stands until the last chunk has come.
Outcome HostTeam::post_found(const Message& message, const MessageMove& move) const {
  const std::uint64_t first = move.chunk + 1 - move.index;
  const Flag seen = flag_now(work_.messages->flags(work_.rank, block_, message.peer).posts[2]);
  if (seen.check == check_word(message.signature, first)) return Outcome::kDone;
  return fail(FailureReason::kMismatch, message.peer, first, seen, 0);
}

Outcome HostTeam::pass(const MessageMove& move, Outcome carried) {
  if (carried != Outcome::kDone) return carried;
  const Message& message = work_.messages->at[move.message];
  book_.note(move);
  if (move.kind == MessageMove::kSend) {
    Flag& flag =
        work_.messages->flags(message.peer, block_, work_.rank).chunks[move.chunk % kChunkSlots];
    word(flag.check)
        .store(check_word(message.signature, move.chunk + 1), std::memory_order_relaxed);
    // Release: who sees the flag finds the chunk.
    store_epoch(flag, move.chunk + 1, !weakened(&ProtocolMutation::no_chunk_release, 0));
  } else if (move.kind == MessageMove::kTake && book_.tells_credits(message.peer)) {
    tell_credits(message.peer, move.chunk + 1);
  }
  return Outcome::kDone;
}

Outcome HostTeam::close_messages() const {
  for (int r = 0; r < work_.ranks; ++r) {
    MessageCounts& kept = work_.messages->counts[block_ * kMaxRanks + r];
    const MessageCounts& begun = book_.at_begin(r);
    if (kept.sent != begun.sent || kept.taken != begun.taken) {
      return fail(FailureReason::kOverlap, r, begun.sent, Flag{kept.sent, 0}, 0);
    }
    kept = book_.now(r);
  }
  return Outcome::kDone;
}

}  // namespace tutti
