#include "bootstrap/frame.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "base/try.hpp"
#include "bootstrap/bootstrap.hpp"
#include "bootstrap/failure_notice.hpp"

namespace tutti {

Message without_descriptors(const Message& message, const Status& why) {
  Message notice;
  notice.kind = message.kind;
  notice.group = message.group;
  notice.sequence = message.sequence;
  notice.payload = std::make_shared<const Bytes>(encode_failure({-1, why.code(), why.message()}));
  return notice;
}

std::string_view to_string(FrameKind kind) {
  switch (kind) {
    case FrameKind::kGather:
      return "all_gather";
    case FrameKind::kDescriptors:
      return "exchange_descriptors";
    case FrameKind::kFailure:
      return "failure";
    case FrameKind::kLeave:
      return "leave";
    case FrameKind::kAddresses:
      return "addresses";
    case FrameKind::kGoodbye:
      return "goodbye";
    case FrameKind::kGoodbyeSeen:
      return "goodbye seen";
    case FrameKind::kShrink:
      return "shrink";
    case FrameKind::kExclude:
      return "exclude";
  }
  return "unknown";
}

Status check_header(const FrameHeader& header) {
  const auto wrong = [](std::string_view field, std::uint64_t value) {
    return Status(StatusCode::kMismatch,
                  fmt::format("a frame with {} {} cannot be right", field, value));
  };
  if (header.magic != FrameHeader::kMagic) return wrong("magic", header.magic);
  if (header.version != FrameHeader::kVersion) return wrong("version", header.version);
  if (to_string(header.kind) == "unknown") {
    return wrong("kind", static_cast<std::uint16_t>(header.kind));
  }
  if (header.length > Bootstrap::kMaxMessageBytes) return wrong("length", header.length);
  const bool may_carry = header.kind == FrameKind::kDescriptors;
  if (header.descriptors > (may_carry ? SocketDriver::kMaxDescriptors : 0)) {
    return wrong("descriptor count", header.descriptors);
  }
  return Status::ok();
}

std::span<std::byte> FrameReader::missing_part() {
  if (header_bytes_ < sizeof header_) {
    return std::as_writable_bytes(std::span(&header_, 1)).subspan(header_bytes_);
  }
  // Room grows with what has come: a header alone takes none.
  if (payload_bytes_ == payload_.size()) {
    const std::size_t room = std::max(kFirstRoomBytes, 2 * payload_bytes_);
    payload_.resize(std::min<std::size_t>(header_.length, room));
  }
  return std::span(payload_).subspan(payload_bytes_);
}

void FrameReader::finish_message(std::vector<Message>& messages) {
  messages.push_back({header_.kind, header_.group, header_.sequence,
                      std::make_shared<const Bytes>(std::move(payload_)), std::move(descriptors_),
                      lost_descriptors_});
  header_bytes_ = payload_bytes_ = 0;
  lost_descriptors_ = false;
  payload_.clear();
  descriptors_.clear();
}

Status FrameReader::after(std::size_t bytes, std::vector<Message>& messages) {
  if (header_bytes_ < sizeof header_) {
    header_bytes_ += bytes;
    if (header_bytes_ < sizeof header_) return Status::ok();
    TUTTI_TRY(check_header(header_));
    const bool lost = lost_descriptors_ && descriptors_.empty() && header_.descriptors > 0;
    if (!lost && descriptors_.size() != header_.descriptors) {
      return {StatusCode::kMismatch, fmt::format("a frame announced {} descriptors and brought {}",
                                                 header_.descriptors, descriptors_.size())};
    }
  } else {
    payload_bytes_ += bytes;
  }
  if (payload_bytes_ == header_.length) finish_message(messages);
  return Status::ok();
}

Result<FrameReader::Progress> FrameReader::read(SocketDriver& sockets, int socket,
                                                std::vector<Message>& messages, std::size_t limit) {
  std::size_t total = 0;
  while (total < kShareBytes && messages.size() < limit) {
    TUTTI_ASSIGN(const SocketTransfer got, sockets.receive(socket, missing_part(), descriptors_));
    if (got.closed) return Progress{.closed = true};
    if (got.bytes == 0) return Progress{.blocked = true};
    lost_descriptors_ |= got.lost_descriptors;
    TUTTI_TRY(after(got.bytes, messages));
    total += got.bytes;
  }
  return Progress{};
}

FrameWriter::Outgoing FrameWriter::outgoing(Message message) {
  FrameHeader header;
  header.kind = message.kind;
  header.group = message.group;
  header.sequence = message.sequence;
  header.length = static_cast<std::uint32_t>(message.payload->size());
  header.descriptors = static_cast<std::uint32_t>(message.descriptors.size());
  return {header, std::move(message), 0};
}

void FrameWriter::add(Message message) { queue_.push_back(outgoing(std::move(message))); }

Result<SocketTransfer> FrameWriter::flush(SocketDriver& sockets, int socket) {
  while (!queue_.empty()) {
    Outgoing& front = queue_.front();
    const ByteView header = view_of(front.header), payload = *front.message.payload;
    const std::size_t of_header = std::min(front.sent_bytes, header.size());
    const std::array<ByteView, 2> parts{header.subspan(of_header),
                                        payload.subspan(front.sent_bytes - of_header)};
    std::vector<int> descriptors;
    for (const Fd& fd : front.message.descriptors) descriptors.push_back(fd.get());
    const auto sent = sockets.send(socket, parts, descriptors);
    if (sent.status().code() == StatusCode::kResourceExhausted && !descriptors.empty()) {
      front = outgoing(without_descriptors(front.message, sent.status()));
      continue;
    }
    TUTTI_TRY(sent.status());
    if (sent->closed || sent->bytes == 0) return sent;
    front.sent_bytes += sent->bytes;
    front.message.descriptors.clear();  // they went with the first byte
    if (front.sent_bytes == header.size() + payload.size()) queue_.pop_front();
  }
  return SocketTransfer{};
}

}  // namespace tutti
