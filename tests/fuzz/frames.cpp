// What a member that has proved itself may send: frames, and what the inbox makes of them. The
// first byte says how they are cut, the second how many descriptors come with them.
#include <optional>

#include "bootstrap/failure_notice.hpp"
#include "bootstrap/frame.hpp"
#include "bootstrap/inbox.hpp"
#include "bootstrap/shrink_message.hpp"
#include "fuzz/fuzz.hpp"
#include "fuzz/scripted_socket.hpp"

namespace tutti::fuzz {
namespace {

constexpr std::uint64_t kGroup = 7;
constexpr std::size_t kMaxQueued = 4;  // messages of one sender, as the inbox promises

struct Heard {
  std::vector<Message> messages;
  StatusCode end = StatusCode::kOk;
};

Heard listen_to(ByteView script, std::size_t cut, std::size_t descriptors) {
  ScriptedSocket socket(script, cut, descriptors);
  FrameReader reader;
  Heard heard;
  for (;;) {
    const auto progress = reader.read(socket, 0, heard.messages);
    heard.end = progress.status().code();
    if (!progress.is_ok() || progress->closed) return heard;
  }
}

bool same(const Heard& a, const Heard& b) {
  const auto equal = [](const Message& one, const Message& other) {
    return one.kind == other.kind && one.group == other.group && one.sequence == other.sequence &&
           *one.payload == *other.payload && one.descriptors.size() == other.descriptors.size();
  };
  return a.end == b.end && std::equal(a.messages.begin(), a.messages.end(), b.messages.begin(),
                                      b.messages.end(), equal);
}

Message copy_of(const Message& message) {
  Message copy{message.kind, message.group, message.sequence, message.payload, {}};
  copy.descriptors.resize(message.descriptors.size());
  return copy;
}

// What was understood is what was said.
void check_written(const Heard& heard, ByteView script) {
  FrameWriter writer;
  for (const Message& message : heard.messages) writer.add(copy_of(message));
  ScriptedSocket socket({}, SIZE_MAX);
  must_hold(writer.flush(socket, 0).is_ok() && writer.empty(), "what was read can be written");
  must_hold(socket.said().size() <= script.size() &&
                std::equal(socket.said().begin(), socket.said().end(), script.begin()),
            "what is written is what was read");
}

// What rank 0 must find after rank 1 has sent all this, and ranks 0 and 2 have made one call.
class Expectation {
 public:
  // False where the inbox must refuse it.
  bool take(const Message& message) {
    if (message.group != kGroup) return true;  // has queues of its own
    if (message.kind == FrameKind::kLeave) {
      left_ = true;
    } else if (message.kind == FrameKind::kFailure) {
      const auto failure = decode_failure(*message.payload, 3);
      if (!failure.is_ok()) return false;
      if (!failure_) failure_ = failure->code;
    } else if (message.kind == FrameKind::kExclude) {
      if (!failure_) failure_ = StatusCode::kPeerFailed;
    } else if (message.kind != FrameKind::kShrink) {
      if (queued_ == kMaxQueued) return false;
      if (queued_++ == 0) {
        fits_ = message.kind == FrameKind::kGather && message.sequence == 1;
      }
    }
    return true;
  }
  void dropped() {
    if (!failure_ && !left_) failure_ = StatusCode::kPeerFailed;
  }
  StatusCode outcome() const {
    if (failure_) return *failure_;
    if (queued_ > 0) return fits_ ? StatusCode::kOk : StatusCode::kMismatch;
    return left_ ? StatusCode::kPeerFailed : StatusCode::kTimeout;
  }

 private:
  std::optional<StatusCode> failure_;
  bool left_ = false, fits_ = false;
  std::size_t queued_ = 0;
};

// Who shrinks the group believes only what could have been written.
void check_shrink_message(const Message& message) {
  const auto understood = decode_shrink_message(*message.payload, 3);
  if (!understood.is_ok()) return;
  must_hold(encode(*understood) == *message.payload, "what is understood is what was said");
}

void check_inbox(const Heard& heard) {
  Inbox inbox(0, 3);
  inbox.open(kGroup, {0, 1, 2}, {});
  Expectation expected;
  for (const Message& message : heard.messages) {
    const bool acceptable = expected.take(message);
    if (message.kind == FrameKind::kShrink) check_shrink_message(message);
    const Status delivered = inbox.deliver(1, copy_of(message));
    must_hold(acceptable || !delivered.is_ok(), "what cannot be right is refused");
    if (delivered.is_ok()) continue;
    must_hold(delivered.code() == StatusCode::kMismatch, "who breaks the protocol is told so");
    expected.dropped();
    inbox.peer_gone(1, delivered.message());
    break;
  }
  for (const int rank : {0, 2}) {
    Message mine;
    mine.group = kGroup;
    mine.sequence = 1;
    must_hold(inbox.deliver(rank, std::move(mine)).is_ok(), "others are not held to account");
  }
  const auto received = inbox.receive({kGroup, 1, FrameKind::kGather}, Deadline({}));
  must_hold(received.status().code() == expected.outcome(), "a call ends as it must");
}

}  // namespace
}  // namespace tutti::fuzz

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace tutti::fuzz;
  tutti::ByteView input = tutti::view_of(text_of(data, size));
  const std::size_t cut = 1 + take_choice(input);
  const std::size_t descriptors = take_choice(input);
  const Heard heard = listen_to(input, cut, descriptors);
  must_hold(same(heard, listen_to(input, SIZE_MAX, descriptors)),
            "how it is cut makes no difference");
  check_written(heard, input);
  check_inbox(heard);
  return 0;
}
