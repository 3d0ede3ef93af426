#include "base/write_all.hpp"

#include <unistd.h>

#include <cerrno>

namespace tutti {

int write_all(int fd, std::string_view text) {
  while (!text.empty()) {
    const ssize_t written = ::write(fd, text.data(), text.size());
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) return errno;
    if (written == 0) return EIO;  // else this would go on for ever
    text.remove_prefix(static_cast<std::size_t>(written));
  }
  return 0;
}

}  // namespace tutti
