// What travels between two ranks once each has proved itself: frames of a fixed header, a payload,
// and descriptors that come with the header's first byte.
#pragma once

#include <bit>
#include <cstdint>
#include <deque>
#include <memory>
#include <vector>

#include "base/bytes.hpp"
#include "base/fd.hpp"
#include "drivers/sockets.hpp"

namespace tutti {

static_assert(std::endian::native == std::endian::little, "frames are sent in the host's order");

enum class FrameKind : std::uint16_t {
  kGather = 1,   // one rank's part of an all_gather
  kDescriptors,  // descriptors for the receiver; or a FailureNotice, where the sender has none left
  kFailure,      // a FailureNotice, then its text
  kLeave,        // the sender has left this group
  kAddresses,    // where the ranks listen; only while the connections are made
  kGoodbye,      // the sender has left all groups and is about to close the connection
  kGoodbyeSeen,  // the answer: everything before the goodbye has been read
  kShrink,       // a ShrinkMessage
  kExclude,      // the group, or its sender, has gone on without the receiver
};

// "all_gather", "exchange_descriptors", ...; for texts.
std::string_view to_string(FrameKind kind);

struct FrameHeader {
  static constexpr std::uint32_t kMagic = 0x69747574;  // "tuti"
  static constexpr std::uint16_t kVersion = 1;

  std::uint32_t magic = kMagic;
  std::uint16_t version = kVersion;
  FrameKind kind = FrameKind::kGather;
  std::uint64_t group = 0;
  std::uint64_t sequence = 0;
  std::uint32_t length = 0;
  std::uint32_t descriptors = 0;
};
static_assert(sizeof(FrameHeader) == 32);

using Payload = std::shared_ptr<const Bytes>;  // shared between the ranks it goes to

struct Message {
  FrameKind kind = FrameKind::kGather;
  std::uint64_t group = 0;
  std::uint64_t sequence = 0;
  Payload payload = std::make_shared<const Bytes>();
  std::vector<Fd> descriptors = {};
  bool lost_descriptors = false;  // this process could take none of them
};

// What goes to the receiver in place of `message`, whose descriptors cannot be sent.
Message without_descriptors(const Message& message, const Status& why);

// kMismatch says which field of a received header cannot be right.
Status check_header(const FrameHeader& header);

// One connection's incoming side. Used by one thread.
class FrameReader {
 public:
  struct Progress {
    bool closed = false;   // the other end will send nothing more
    bool blocked = false;  // nothing left to read now
  };
  // Appends complete messages. Reads until nothing is left, a fair share for one turn is read, or
  // there are `limit` messages; never a byte of the one after. A failure is final for the
  // connection.
  Result<Progress> read(SocketDriver& sockets, int socket, std::vector<Message>& messages,
                        std::size_t limit = 1024);

 private:
  static constexpr std::size_t kShareBytes = 4 * 1024 * 1024;
  static constexpr std::size_t kFirstRoomBytes = 4 * 1024;

  std::span<std::byte> missing_part();
  Status after(std::size_t bytes, std::vector<Message>& messages);
  void finish_message(std::vector<Message>& messages);

  FrameHeader header_;
  std::size_t header_bytes_ = 0;
  Bytes payload_;
  std::size_t payload_bytes_ = 0;
  std::vector<Fd> descriptors_;
  bool lost_descriptors_ = false;
};

// One connection's outgoing side: what could not be sent at once is kept in order. The caller
// serialises calls.
class FrameWriter {
 public:
  void add(Message message);
  bool empty() const { return queue_.empty(); }
  void clear() { queue_.clear(); }
  // Sends until nothing is left or the socket would block. A failure, or `closed`, is final; but
  // where the system has no room for a message's descriptors, its receiver is told so instead.
  Result<SocketTransfer> flush(SocketDriver& sockets, int socket);

 private:
  struct Outgoing {
    FrameHeader header;
    Message message;
    std::size_t sent_bytes = 0;
  };
  static Outgoing outgoing(Message message);

  std::deque<Outgoing> queue_;
};

}  // namespace tutti
