#include "bench/frame.hpp"

#include <unistd.h>

#include <fmt/core.h>

#include <array>
#include <cerrno>
#include <cstdint>
#include <cstring>

#include "base/try.hpp"
#include "base/write_all.hpp"

namespace tutti::cli {
namespace {

using Length = std::uint32_t;

Length length_at(std::string_view data) {
  Length length = 0;
  std::memcpy(&length, data.data(), sizeof length);
  return length;
}

}  // namespace

Result<std::string> to_frame(std::string_view payload) {
  if (payload.size() > kMaxFrameBytes) {
    return Status(StatusCode::kInternal,
                  fmt::format("a frame of {} bytes is too long", payload.size()));
  }
  const auto length = static_cast<Length>(payload.size());
  std::string frame(reinterpret_cast<const char*>(&length), sizeof length);
  return frame += payload;
}

Status write_frame(int fd, std::string_view payload) {
  TUTTI_ASSIGN(const std::string frame, to_frame(payload));
  const int error = write_all(fd, frame);
  if (error == 0) return Status::ok();
  return {StatusCode::kPeerFailed,
          fmt::format("the launcher does not read any more: {}", std::strerror(error))};
}

Status FrameReader::read_from(int fd) {
  std::array<char, 65536> chunk;
  while (true) {
    const ssize_t got = ::read(fd, chunk.data(), chunk.size());
    if (got < 0 && errno == EINTR) continue;
    if (got < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) break;
    if (got <= 0) {
      at_end_ = true;
      break;
    }
    data_.append(chunk.data(), static_cast<std::size_t>(got));
    if (data_.size() > kMaxFrameBytes) break;  // look at the frames before reading on
  }
  if (data_.size() >= sizeof(Length) && length_at(data_) > kMaxFrameBytes) {
    return {StatusCode::kMismatch, fmt::format("a frame claims {} bytes", length_at(data_))};
  }
  return Status::ok();
}

std::optional<std::string> FrameReader::next() {
  if (data_.size() < sizeof(Length)) return std::nullopt;
  const std::size_t length = length_at(data_);
  if (length > kMaxFrameBytes || data_.size() < sizeof(Length) + length) return std::nullopt;
  std::string payload = data_.substr(sizeof(Length), length);
  data_.erase(0, sizeof(Length) + length);
  return payload;
}

}  // namespace tutti::cli
