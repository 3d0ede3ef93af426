#include "bootstrap/failure_notice.hpp"

#include <cstdint>

namespace tutti {
namespace {

constexpr std::size_t kMaxNoticeBytes = 4096;

struct Head {
  std::int32_t rank = -1;
  std::uint32_t code = 0;
};

}  // namespace

Bytes encode_failure(const GroupFailure& failure) {
  const Head head{failure.rank, static_cast<std::uint32_t>(failure.code)};
  const ByteView text = view_of(std::string_view(failure.text).substr(0, kMaxNoticeBytes));
  Bytes bytes = to_bytes(view_of(head));
  bytes.insert(bytes.end(), text.begin(), text.end());
  return bytes;
}

Result<GroupFailure> decode_failure(ByteView bytes, int group_size) {
  const Status wrong(StatusCode::kMismatch, "a failure notice that cannot be right");
  if (bytes.size() < sizeof(Head) || bytes.size() > sizeof(Head) + kMaxNoticeBytes) return wrong;
  const auto head = from_bytes<Head>(bytes.first(sizeof(Head)));
  const bool known_code = head.code != static_cast<std::uint32_t>(StatusCode::kOk) &&
                          head.code <= static_cast<std::uint32_t>(StatusCode::kInternal);
  if (!known_code || head.rank < -1 || head.rank >= group_size) return wrong;
  const ByteView text = bytes.subspan(sizeof head);
  return GroupFailure{head.rank, static_cast<StatusCode>(head.code),
                      std::string(reinterpret_cast<const char*>(text.data()), text.size())};
}

Bytes encode_last_words(std::string_view last) {
  return to_bytes(view_of(last.substr(0, kMaxNoticeBytes)));
}

Result<std::string> decode_last_words(ByteView bytes) {
  if (bytes.size() > kMaxNoticeBytes) {
    return Status(StatusCode::kMismatch, "last words that cannot be right");
  }
  return std::string(reinterpret_cast<const char*>(bytes.data()), bytes.size());
}

Status to_status(const GroupFailure& failure) { return {failure.code, failure.text}; }

}  // namespace tutti
