#include "fakes/fake_sockets.hpp"

#include <algorithm>

namespace tutti {
namespace {

bool reaches_zero(std::atomic<int>& countdown) {
  return countdown.load() >= 0 && countdown.fetch_sub(1) == 0;
}

Status no_descriptors() {
  return {StatusCode::kResourceExhausted, "no more descriptors: made to fail"};
}

}  // namespace

Result<std::vector<SocketAddress>> FakeSockets::resolve(const std::string& host, std::uint16_t port,
                                                        Deadline deadline) {
  return inner_.resolve(host, port, deadline);
}

bool FakeSockets::exhausted() { return reaches_zero(exhaust_at); }

Result<Fd> FakeSockets::listen(const SocketAddress& address) {
  if (exhausted()) return no_descriptors();
  return inner_.listen(address);
}

// Only where somebody waits: else no descriptor would be opened.
Result<Fd> FakeSockets::accept(int listener) {
  auto socket = inner_.accept(listener);
  if (socket.is_ok() && socket->valid() && exhausted()) return no_descriptors();
  return socket;
}

Status FakeSockets::reserve(std::size_t descriptors) {
  if (exhausted()) return no_descriptors();
  return inner_.reserve(descriptors);
}

Result<Fd> FakeSockets::connect(const SocketAddress& address) {
  if (exhausted()) return no_descriptors();
  if (reaches_zero(fail_connect_at)) {
    return Status(StatusCode::kUnavailable, "cannot connect: made to fail");
  }
  return inner_.connect(address);
}

Status FakeSockets::connected(int socket) { return inner_.connected(socket); }

Result<SocketAddress> FakeSockets::local_address(int socket) {
  return inner_.local_address(socket);
}

Result<SocketAddress> FakeSockets::remote_address(int socket) {
  return inner_.remote_address(socket);
}

Result<SocketPeer> FakeSockets::peer(int socket) {
  auto peer = inner_.peer(socket);
  if (peer.is_ok() && foreign_user_id != 0) peer->user_id = foreign_user_id;
  return peer;
}

Result<SocketTransfer> FakeSockets::send(int socket, std::span<const ByteView> parts,
                                         std::span<const int> descriptors) {
  if (refuse_descriptors && !descriptors.empty()) return no_descriptors();
  if (reaches_zero(fail_send_at)) return Status(StatusCode::kSystem, "cannot send: made to fail");
  std::vector<ByteView> cut;
  std::size_t left = max_transfer_bytes;
  for (const ByteView part : parts) {
    cut.push_back(part.first(std::min(left, part.size())));
    left -= cut.back().size();
  }
  return inner_.send(socket, cut, descriptors);
}

Result<SocketTransfer> FakeSockets::receive(int socket, std::span<std::byte> into,
                                            std::vector<Fd>& descriptors) {
  if (reaches_zero(fail_receive_at)) {
    return Status(StatusCode::kSystem, "cannot receive: made to fail");
  }
  const std::size_t before = descriptors.size();
  auto result = inner_.receive(socket, into.first(std::min(max_transfer_bytes.load(), into.size())),
                               descriptors);
  if (result.is_ok() && descriptors.size() > before && (lose_descriptors || exhausted())) {
    descriptors.resize(before);
    result->lost_descriptors = true;
  }
  return result;
}

Status FakeSockets::wait(std::span<SocketWait> waits, std::optional<Deadline> deadline) {
  return inner_.wait(waits, deadline);
}

Result<Fd> FakeSockets::make_event() {
  if (exhausted()) return no_descriptors();
  return inner_.make_event();
}

void FakeSockets::wake(int event) { inner_.wake(event); }

void FakeSockets::clear(int event) { inner_.clear(event); }

Result<Fd> FakeSockets::watch_process(std::int64_t process_id) {
  if (!can_watch_processes || exhausted())
    return Status(StatusCode::kUnavailable, "an old kernel: made to fail");
  return inner_.watch_process(process_id);
}

}  // namespace tutti
