#include "bootstrap/shrink_message.hpp"

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstring>
#include <functional>
#include <span>
#include <string_view>

namespace tutti {
namespace {

using Kind = ShrinkMessage::Kind;

constexpr std::size_t kMaxShrinkTextBytes = 4096;
constexpr std::uint32_t kMaxRound = 1U << 30;  // so that there is always a next one

struct ShrinkHead {
  ShrinkBallot ballot;
  std::int64_t left_ns = 0;
  std::int32_t follows = -1;
  std::uint32_t members = 0;
  std::uint8_t kind = 0, code = 0;
  std::array<std::uint8_t, 6> unused = {};
};
static_assert(sizeof(ShrinkHead) == 40);

bool is_rank(std::int32_t rank, int group_size) { return rank >= 0 && rank < group_size; }

// Ascending, so that no rank comes twice.
bool are_members(const std::vector<std::int32_t>& members, int group_size) {
  const auto wrong = std::adjacent_find(members.begin(), members.end(), std::greater_equal<>());
  return wrong == members.end() &&
         std::all_of(members.begin(), members.end(),
                     [&](std::int32_t rank) { return is_rank(rank, group_size); });
}

bool is_sound(const ShrinkMessage& message, int group_size) {
  const bool has_ballot = is_rank(message.ballot.coordinator, group_size);
  if (message.ballot.round > kMaxRound) return false;
  if (message.ballot.coordinator != -1 && !has_ballot) return false;
  switch (message.kind) {
    case Kind::kJoin:
      return is_rank(message.follows, group_size) && message.members.empty();
    case Kind::kPropose:
      return has_ballot && !message.members.empty() && are_members(message.members, group_size);
    case Kind::kReady:
    case Kind::kCommit:
      return has_ballot && message.members.empty();
    case Kind::kGiveUp:
      return message.members.empty();
  }
  return false;
}

}  // namespace

Bytes encode(const ShrinkMessage& message) {
  const ShrinkHead head{.ballot = message.ballot,
                        .left_ns = message.left_ns,
                        .follows = message.follows,
                        .members = static_cast<std::uint32_t>(message.members.size()),
                        .kind = static_cast<std::uint8_t>(message.kind),
                        .code = static_cast<std::uint8_t>(message.code)};
  Bytes bytes = to_bytes(view_of(head));
  const ByteView members = std::as_bytes(std::span(message.members));
  const ByteView text = view_of(std::string_view(message.text).substr(0, kMaxShrinkTextBytes));
  for (const ByteView part : {members, text}) bytes.insert(bytes.end(), part.begin(), part.end());
  return bytes;
}

Result<ShrinkMessage> decode_shrink_message(ByteView bytes, int group_size) {
  const Status wrong(StatusCode::kMismatch, "a message of shrink() that cannot be right");
  if (bytes.size() < sizeof(ShrinkHead)) return wrong;
  const auto head = from_bytes<ShrinkHead>(bytes.first(sizeof(ShrinkHead)));
  ByteView rest = bytes.subspan(sizeof head);
  const bool known = head.kind <= static_cast<std::uint8_t>(Kind::kGiveUp) &&
                     head.code <= static_cast<std::uint8_t>(StatusCode::kInternal) &&
                     head.unused == decltype(head.unused){};
  if (!known || head.members > static_cast<std::uint32_t>(group_size)) return wrong;
  const std::size_t member_bytes = head.members * sizeof(std::int32_t);
  if (rest.size() < member_bytes || rest.size() > member_bytes + kMaxShrinkTextBytes) return wrong;
  ShrinkMessage message{.kind = static_cast<Kind>(head.kind),
                        .ballot = head.ballot,
                        .follows = head.follows,
                        .left_ns = head.left_ns,
                        .members = std::vector<std::int32_t>(head.members),
                        .code = static_cast<StatusCode>(head.code),
                        .text = {}};
  if (member_bytes > 0) std::memcpy(message.members.data(), rest.data(), member_bytes);
  rest = rest.subspan(member_bytes);
  message.text.assign(reinterpret_cast<const char*>(rest.data()), rest.size());
  if (!is_sound(message, group_size)) return wrong;
  return message;
}

}  // namespace tutti
