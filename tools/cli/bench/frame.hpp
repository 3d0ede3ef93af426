// Messages from a rank to the launcher over a pipe: a length, then so many bytes.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

#include "tutti/status.hpp"

namespace tutti::cli {

inline constexpr std::size_t kMaxFrameBytes = 16 * 1024 * 1024;

// The bytes of a frame. kInternal where the payload is longer than kMaxFrameBytes.
Result<std::string> to_frame(std::string_view payload);

// Blocks while the pipe is full; kPeerFailed where its reader is gone (SIGPIPE must be ignored).
Status write_frame(int fd, std::string_view payload);

// Puts frames together from whatever a non-blocking descriptor has. A length is checked before it
// is believed.
class FrameReader {
 public:
  // Takes in what is there. kMismatch where a frame is longer than kMaxFrameBytes.
  Status read_from(int fd);
  // The next whole frame.
  std::optional<std::string> next();
  bool at_end() const { return at_end_; }           // the writer has closed
  bool has_rest() const { return !data_.empty(); }  // bytes of a frame that never became whole

 private:
  std::string data_;
  bool at_end_ = false;
};

}  // namespace tutti::cli
