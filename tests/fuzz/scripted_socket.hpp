// A connection whose other end has already said all it will ever say. No system call.
#pragma once

#include <algorithm>
#include <cstring>

#include "drivers/sockets.hpp"
#include "fakes/fake_sockets.hpp"

namespace tutti::fuzz {

class ScriptedSocket final : public FakeSockets {
 public:
  // No transfer moves more than `cut` bytes. So many descriptors come with the first one; none of
  // them is open, which nobody looks at.
  ScriptedSocket(ByteView script, std::size_t cut, std::size_t descriptors = 0)
      : FakeSockets(real_sockets()), rest_(script), cut_(cut), descriptors_(descriptors) {}

  Result<SocketTransfer> send(int, std::span<const ByteView> parts, std::span<const int>) override {
    SocketTransfer sent;
    for (const ByteView part : parts) {
      const ByteView taken = part.first(std::min(part.size(), cut_ - sent.bytes));
      said_.insert(said_.end(), taken.begin(), taken.end());
      sent.bytes += taken.size();
    }
    return sent;
  }

  Result<SocketTransfer> receive(int, std::span<std::byte> into,
                                 std::vector<Fd>& descriptors) override {
    if (rest_.empty()) return SocketTransfer{.closed = true};
    const std::size_t bytes = std::min({into.size(), rest_.size(), cut_});
    std::memcpy(into.data(), rest_.data(), bytes);
    rest_ = rest_.subspan(bytes);
    for (; descriptors_ > 0; --descriptors_) descriptors.emplace_back();
    return SocketTransfer{.bytes = bytes};
  }

  std::size_t unread() const { return rest_.size(); }
  const Bytes& said() const { return said_; }  // to the other end

 private:
  ByteView rest_;
  const std::size_t cut_;
  std::size_t descriptors_;
  Bytes said_;
};

}  // namespace tutti::fuzz
