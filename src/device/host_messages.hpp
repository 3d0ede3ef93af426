// What the host's teams have in common of messages: which of them can go on, and in which order.
#pragma once

#include "device/messages.hpp"

namespace tutti {

// Where the messages of an operation stand in one lane.
class MessageBook {
 public:
  void open(const Messages& messages, int lane) {
    messages_ = &messages;
    for (int r = 0; r < messages.ranks; ++r) {
      counts_[r] = messages.counts[lane * kMaxRanks + r];
      expected_[r] = counts_[r];
      pending_[r] = {};
    }
    for (int i = 0; i < messages.number; ++i) {
      const Message& message = messages.at[i];
      const std::uint32_t chunks = message.chunks_of(lane);
      left_[i] = chunks_[i] = message.window != 0 && chunks > 0 ? 1 : chunks;
      places_[i] = message.window != 0 ? message.output : nullptr;
      posted_[i] = message.in_packets || message.is_own();
      if (!message.is_own()) count_of(pending_, message) += left_[i];
    }
  }

  // post(message, chunk) for each long message whose turn has come to be taken.
  template <class Post>
  void post_turns(Post&& post) {
    for (int i = 0; i < messages_->number; ++i) {
      const Message& message = messages_->at[i];
      if (posted_[i] || message.is_sent() || left_[i] == 0 || !is_next(i)) continue;
      post(message, count_of(counts_, message));
      posted_[i] = true;
    }
  }
  // f(message) for each that was posted, and has not come whole.
  template <class F>
  void for_each_posted(F&& f) const {
    for (int i = 0; messages_ != nullptr && i < messages_->number; ++i) {
      const Message& message = messages_->at[i];
      const bool is_long = !message.in_packets && !message.is_sent();
      if (is_long && posted_[i] && left_[i] > 0) f(message);
    }
  }
  // Whether the sender knows where to; if not, it asks find(message, chunk, place).
  template <class Find>
  bool is_posted(const Message& message, std::uint64_t chunk, Find&& find) {
    const auto i = &message - messages_->at;
    if (posted_[i] || !message.is_sent()) return true;
    if (!find(message, chunk, places_[i])) return false;
    posted_[i] = true;
    if (places_[i] != nullptr) left_[i] = chunks_[i] = 1;
    return true;
  }

  // Of the messages whose turn it is, the first one behind the last that moved for which
  // `ready(message, chunk)`; or kNothing where all are done. False: none can go on yet.
  template <class Ready>
  bool pick(MessageMove& move, Ready&& ready) {
    bool any = false;
    for (int step = 1; step <= messages_->number; ++step) {
      const int i = (last_ + step) % messages_->number;
      if (left_[i] == 0 || !is_next(i)) continue;
      any = true;
      const Message& message = messages_->at[i];
      const std::uint64_t chunk = message.is_own() ? 0 : count_of(counts_, message);
      if (!message.is_own() && !ready(message, chunk)) continue;
      move = {kind_of(message), i, chunks_[i] - left_[i], chunk, places_[i]};
      last_ = i;
      return true;
    }
    move.kind = MessageMove::kNothing;
    return !any;
  }

  // The message that waits first, and the chunk it waits for.
  const Message& first_waiting(std::uint64_t& chunk) {
    for (int i = 0; i < messages_->number; ++i) {
      if (left_[i] == 0 || !is_next(i)) continue;
      chunk = count_of(counts_, messages_->at[i]);
      return messages_->at[i];
    }
    return messages_->at[0];
  }

  void note(const MessageMove& move) {
    --left_[move.message];
    const Message& message = messages_->at[move.message];
    if (!message.is_own()) ++count_of(counts_, message);
  }

  // Whether the peer may wait, within this operation, to be told that chunks of its are taken; else
  // the next operation that takes from it tells.
  bool tells_credits(int peer) const { return pending_[peer].taken > kPacketSlots; }

  const MessageCounts& at_begin(int peer) const { return expected_[peer]; }
  const MessageCounts& now(int peer) const { return counts_[peer]; }

 private:
  static MessageMove::Kind kind_of(const Message& message) {
    return message.is_own()    ? MessageMove::kOwn
           : message.is_sent() ? MessageMove::kSend
                               : MessageMove::kTake;
  }
  static std::uint64_t& count_of(MessageCounts (&counts)[kMaxRanks], const Message& message) {
    MessageCounts& both = counts[message.peer];
    return message.is_sent() ? both.sent : both.taken;
  }
  bool is_next(int index) const {
    const Message& message = messages_->at[index];
    for (int i = 0; i < index; ++i) {
      const Message& earlier = messages_->at[i];
      if (left_[i] > 0 && earlier.peer == message.peer && earlier.is_sent() == message.is_sent()) {
        return false;
      }
    }
    return true;
  }

  const Messages* messages_ = nullptr;
  std::uint32_t chunks_[kMaxMessages], left_[kMaxMessages];
  std::byte* places_[kMaxMessages];
  bool posted_[kMaxMessages];  // of short ones from the beginning
  MessageCounts expected_[kMaxRanks], counts_[kMaxRanks];
  MessageCounts pending_[kMaxRanks];  // chunks of this operation
  int last_ = kMaxMessages - 1;
};

}  // namespace tutti
