#include "run/pipes.hpp"

#include <fcntl.h>
#include <signal.h>
#include <unistd.h>

#include <array>
#include <cerrno>

namespace tutti::cli {
namespace {

void take_note_of_nothing(int /*signal*/) {}

}  // namespace

bool read_pipe(int pipe, const std::function<void(std::string_view bytes)>& take) {
  constexpr int kMostReads = 16;  // more than a pipe holds; then others are read
  std::array<char, 65536> bytes;
  for (int reads = 0; reads < kMostReads; ++reads) {
    const ssize_t count = ::read(pipe, bytes.data(), bytes.size());
    if (count < 0 && errno == EINTR) continue;
    if (count < 0 && errno == EAGAIN) return true;
    if (count <= 0) return false;
    take(std::string_view(bytes.data(), static_cast<std::size_t>(count)));
  }
  return true;
}

bool Outbox::flush(int pipe) {
  std::size_t written = 0;
  while (written < bytes_.size()) {
    const ssize_t count = ::write(pipe, bytes_.data() + written, bytes_.size() - written);
    if (count < 0 && errno == EINTR) continue;
    if (count < 0 && errno == EAGAIN) break;
    if (count < 0) return false;
    written += static_cast<std::size_t>(count);
  }
  bytes_.erase(0, written);
  return true;
}

void never_block(int descriptor) {
  ::fcntl(descriptor, F_SETFL, ::fcntl(descriptor, F_GETFL) | O_NONBLOCK);
}

void outlive(int signal) {
  struct sigaction action = {};
  action.sa_handler = take_note_of_nothing;
  ::sigaction(signal, &action, nullptr);
}

}  // namespace tutti::cli
