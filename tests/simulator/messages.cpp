// Messages between pairs of ranks, in the simulation.
#include "simulator/team.hpp"

namespace tutti {
namespace {

using Kind = simulated::Mutation::Kind;
using simulated::Waited;

}  // namespace

void SimulatedTeam::open_messages(const Messages& messages) {
  book_.open(messages, block_);
  if (ended_) return;
  for (int i = 0; i < messages.number; ++i) {
    const Message& message = messages.at[i];
    if (message.is_sent()) continue;
    memory().send(fiber(), Publish::kEarlierKernels);
    tell_taken(message.peer, book_.at_begin(message.peer).taken);
  }
}

void SimulatedTeam::tell_taken(int peer, std::uint64_t taken) const {
  if (left_out(Kind::kNoCredit, 0)) return;
  memory().store_flag(fiber(), &work_.messages->flags(peer, block_, work_.rank).credits,
                      {taken, check_word(taken)});
}

const Flag* SimulatedTeam::awaited_flag(const Message& message, std::uint64_t chunk) const {
  const MessageFlags& flags = work_.messages->flags(work_.rank, block_, message.peer);
  return message.is_sent() ? &flags.credits : &flags.chunks[chunk % kChunkSlots];
}

void SimulatedTeam::post_turns() {
  book_.post_turns([this](const Message& message, std::uint64_t chunk) {
    const PostedPlace place{message.window, message.offset};
    Flag* const posts = work_.messages->flags(message.peer, block_, work_.rank).posts;
    memory().send(fiber(), Publish::kEarlierKernels);
    memory().store_flag(fiber(), &posts[0], place.first(chunk + 1));
    memory().store_flag(fiber(), &posts[1], place.second(chunk + 1));
    memory().store_flag(fiber(), &posts[2], PostedPlace::flag_of(chunk + 1, message.signature));
  });
}

bool SimulatedTeam::find_post(const Message& message, std::uint64_t chunk,
                              std::byte*& place) const {
  const Flag* const posts = work_.messages->flags(work_.rank, block_, message.peer).posts;
  Flag seen[3];
  for (int part = 0; part < 3; ++part) {
    seen[part] = memory().read_flag(&posts[part]);
    if (seen[part].epoch != chunk + 1 || !is_whole(seen[part])) return false;
  }
  const bool other = seen[2].check != check_word(message.signature, chunk + 1);
  if (other && !left_out(Kind::kNoSignature, 0)) return true;  // next_move() says so
  const PostedPlace posted = PostedPlace::of(seen[0], seen[1]);
  if (posted.window != 0) place = work_.messages->place_of(posted, message.peer);
  return posted.window == 0 || place != nullptr;
}

bool SimulatedTeam::is_ready(const Message& message, std::uint64_t chunk) {
  const Flag seen = memory().read_flag(awaited_flag(message, chunk));
  if (!message.is_sent()) {
    return left_out(Kind::kNoChunkWait, 0) || (seen.epoch > chunk && is_whole(seen));
  }
  const auto find = [this](const Message& sent, std::uint64_t first, std::byte*& place) {
    return find_post(sent, first, place);
  };
  if (!book_.is_posted(message, chunk, find)) return false;
  const std::uint64_t more = left_out(Kind::kCreditTooMany, 0) ? 1 : 0;
  const auto slots = static_cast<std::uint64_t>(slots_of(message.in_packets)) + more;
  return chunk < slots || left_out(Kind::kNoCreditWait, 0) || seen.epoch > chunk - slots;
}

Outcome SimulatedTeam::next_move(MessageMove& move) {
  if (ended_) return Outcome::kFailed;
  environment_.simulation.interrupt(fiber());
  post_turns();
  const auto pick = [&] {
    return book_.pick(move, [this](const Message& message, std::uint64_t chunk) {
      return is_ready(message, chunk);
    });
  };
  if (!pick()) {
    const auto waited = environment_.simulation.wait_until(fiber(), pick, &work_.control->poison);
    if (waited != Waited::kArrived) {
      std::uint64_t chunk = 0;
      const Message& waits = book_.first_waiting(chunk);
      if (!left_out(Kind::kFlagsNotTakenBack, 0)) {
        book_.for_each_posted([this](const Message& message) {
          memory().store_flag(
              fiber(), &work_.messages->flags(message.peer, block_, work_.rank).posts[0], {});
        });
      }
      const bool called_off = waited == Waited::kCalledOff;
      return fail(called_off ? FailureReason::kAborted : FailureReason::kTimeout, waits.peer,
                  chunk + 1, {});
    }
  }
  if (move.kind != MessageMove::kSend && move.kind != MessageMove::kTake) return Outcome::kDone;
  const Message& message = work_.messages->at[move.message];
  const Flag* const flag = awaited_flag(message, move.chunk);
  const bool takes = move.kind == MessageMove::kTake;
  if (!takes && !message.in_packets && !left_out(Kind::kNoAcquire, 0)) {
    const Flag* const posts = work_.messages->flags(work_.rank, block_, message.peer).posts;
    for (int part = 0; part < 3; ++part) memory().acquire(fiber(), &posts[part]);
  }
  if (!takes && !message.in_packets && !left_out(Kind::kNoSignature, 0)) {
    const std::uint64_t first = move.chunk + 1 - move.index;
    const Flag seen =
        memory().read_flag(&work_.messages->flags(work_.rank, block_, message.peer).posts[2]);
    if (seen.check != check_word(message.signature, first)) {
      return fail(FailureReason::kMismatch, message.peer, first, seen);
    }
  }
  if (!left_out(takes ? Kind::kNoChunkAcquire : Kind::kNoCreditAcquire, 0)) {
    memory().acquire(fiber(), flag);
  }
  const Flag seen = memory().read_flag(flag);
  const bool other = takes && seen.epoch == move.chunk + 1 &&
                     seen.check != check_word(message.signature, move.chunk + 1);
  if (!other || left_out(Kind::kNoSignature, 0)) return Outcome::kDone;
  return fail(FailureReason::kMismatch, message.peer, move.chunk + 1, seen);
}

void SimulatedTeam::copy_chunk(std::byte* to, const std::byte* from, std::size_t bytes) const {
  for (std::size_t at = 0; at < bytes; at += 16) {
    std::byte tile[16];
    const std::size_t some = std::min<std::size_t>(16, bytes - at);
    load_bytes(tile, from + at, some);
    store_bytes(to + at, tile, some);
  }
}

void SimulatedTeam::push_marked(std::byte* to, const std::byte* from, std::size_t bytes,
                                std::uint32_t mark) const {
  auto* packet = reinterpret_cast<std::uint64_t*>(to);
  for (std::size_t at = 0; at < bytes; at += 4, ++packet) {
    std::uint32_t data = 0;
    load_bytes(reinterpret_cast<std::byte*>(&data), from + at,
               std::min<std::size_t>(4, bytes - at));
    send_packet(packet, std::uint64_t{mark} << 32 | data);
  }
}

Outcome SimulatedTeam::take_marked(std::byte* to, const std::byte* from, std::size_t bytes,
                                   MarkedFrom source) const {
  const auto* packet = reinterpret_cast<const std::uint64_t*>(from);
  for (std::size_t at = 0; at < bytes; at += 4, ++packet) {
    const auto come = [&] { return *packet >> 32 == source.mark; };
    const bool last = at + 4 >= bytes;
    if (!left_out(Kind::kNoPoll, 0) && !(last && left_out(Kind::kWordNotPolled, 0))) {
      const auto waited = environment_.simulation.wait_until(fiber(), come, &work_.control->poison);
      if (waited == Waited::kCalledOff) {
        return fail(FailureReason::kAborted, source.peer, source.mark, {});
      }
      if (waited == Waited::kTimeIsOver) {
        return fail(FailureReason::kTimeout, source.peer, source.mark, {});
      }
    }
    const auto data = static_cast<std::uint32_t>(*packet);
    store_bytes(to + at, reinterpret_cast<const std::byte*>(&data),
                std::min<std::size_t>(4, bytes - at));
  }
  return Outcome::kDone;
}

// A fence for each thing that is told, but that a chunk in packets has come, as on GPUs.
Outcome SimulatedTeam::pass(const MessageMove& move, Outcome carried) {
  if (carried != Outcome::kDone) return carried;
  const Message& message = work_.messages->at[move.message];
  book_.note(move);
  const bool sends = move.kind == MessageMove::kSend;
  const bool frees = move.kind == MessageMove::kTake && book_.tells_credits(message.peer);
  if (!sends && !frees) return Outcome::kDone;
  const auto moves = static_cast<int>(sends ? sent(kForward) : taken(kForward));
  const bool releases = !(sends && message.in_packets);
  if (releases && !left_out(Kind::kPassNotReleased, moves)) memory().release(fiber());
  memory().send(fiber(), Publish::kEarlierKernels);
  if (frees) tell_taken(message.peer, move.chunk + 1);
  if (sends && !left_out(Kind::kNoChunk, 0)) {
    Flag& flag =
        work_.messages->flags(message.peer, block_, work_.rank).chunks[move.chunk % kChunkSlots];
    memory().store_flag(fiber(), &flag,
                        {move.chunk + 1, check_word(message.signature, move.chunk + 1)});
  }
  return Outcome::kDone;
}

Outcome SimulatedTeam::close_messages() const {
  for (int r = 0; r < work_.ranks; ++r) {
    if (left_out(Kind::kEpochNotKept, 0)) continue;
    work_.messages->counts[block_ * kMaxRanks + r] = book_.now(r);
  }
  return Outcome::kDone;
}

}  // namespace tutti
