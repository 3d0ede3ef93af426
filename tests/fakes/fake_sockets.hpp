// The real sockets, with faults on request.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "drivers/sockets.hpp"

namespace tutti {

// Passes everything on to `inner`, which must outlive it; transfers can be cut short and calls can
// be made to fail. Settings may be changed at any time, from any thread.
class FakeSockets : public SocketDriver {
 public:
  explicit FakeSockets(SocketDriver& inner) : inner_(inner) {}

  // No transfer moves more than so many bytes.
  std::atomic<std::size_t> max_transfer_bytes{std::numeric_limits<std::size_t>::max()};
  // Count down; the call that reaches 0 fails as if the connection had broken.
  std::atomic<int> fail_send_at{-1}, fail_receive_at{-1};
  std::atomic<int> fail_connect_at{-1};       // as if nobody listened
  std::atomic<bool> lose_descriptors{false};  // receive() loses them as if no more could be opened
  std::atomic<bool> refuse_descriptors{false};  // send() with some fails: too many on their way
  // Counts down; the call that reaches 0 finds that this process may open no more descriptors.
  std::atomic<int> exhaust_at{-1};
  std::atomic<bool> can_watch_processes{true};    // false: an old kernel
  std::atomic<std::uint32_t> foreign_user_id{0};  // not 0: what peer() says

  Result<std::vector<SocketAddress>> resolve(const std::string& host, std::uint16_t port,
                                             Deadline deadline) override;
  Result<Fd> listen(const SocketAddress& address) override;
  Result<Fd> hold_port(const SocketAddress& address) override { return inner_.hold_port(address); }
  Result<Fd> accept(int listener) override;
  Result<Fd> connect(const SocketAddress& address) override;
  Status connected(int socket) override;
  Result<SocketAddress> local_address(int socket) override;
  Result<SocketAddress> remote_address(int socket) override;
  Result<SocketPeer> peer(int socket) override;
  std::uint32_t user_id() override { return inner_.user_id(); }
  Result<SocketTransfer> send(int socket, std::span<const ByteView> parts,
                              std::span<const int> descriptors) override;
  Result<SocketTransfer> receive(int socket, std::span<std::byte> into,
                                 std::vector<Fd>& descriptors) override;
  Status wait(std::span<SocketWait> waits, std::optional<Deadline> deadline) override;
  Status reserve(std::size_t descriptors) override;
  Result<Fd> make_event() override;
  void wake(int event) override;
  void clear(int event) override;
  Result<Fd> watch_process(std::int64_t process_id) override;

 private:
  bool exhausted();

  SocketDriver& inner_;
};

}  // namespace tutti
