#include "bootstrap/socket_mesh.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "base/try.hpp"
#include "bootstrap/failure_notice.hpp"
#include "bootstrap/identity.hpp"

namespace tutti {
namespace {

Message control_message(FrameKind kind) {
  Message message;
  message.kind = kind;
  return message;
}

}  // namespace

SocketMesh::SocketMesh(Setup setup)
    : setup_(std::move(setup)),
      sockets_(*setup_.sockets),
      inbox_(setup_.rank, static_cast<int>(setup_.connections.size())),
      peers_(setup_.connections.size()) {
  for (std::size_t r = 0; r < peers_.size(); ++r) {
    peers_[r].socket = std::move(setup_.connections[r]);
    peers_[r].open = peers_[r].socket.valid();
  }
}

Result<std::shared_ptr<SocketMesh>> SocketMesh::start(Setup setup) {
  std::shared_ptr<SocketMesh> mesh(new SocketMesh(std::move(setup)));
  TUTTI_ASSIGN(mesh->event_, mesh->sockets_.make_event());
  TUTTI_TRY(mesh->worker_.start([raw = mesh.get()] { raw->run(); }));
  return mesh;
}

SocketMesh::~SocketMesh() {
  if (!worker_.started()) return;
  if (established_) say_goodbye();
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  sockets_.wake(event_.get());
  worker_.join();
}

void SocketMesh::say_goodbye() {
  for (int r = 0; r < size(); ++r) {
    if (r != rank()) send(r, control_message(FrameKind::kGoodbye));
  }
  std::unique_lock lock(mutex_);
  (void)Deadline(kGoodbye).wait(changed_, lock, [&] {
    return std::all_of(peers_.begin(), peers_.end(),
                       [](const Peer& peer) { return !peer.open || peer.saw_goodbye; });
  });
}

void SocketMesh::flush_locked(Peer& peer) {
  if (!peer.open || peer.send_failed) return peer.writer.clear();
  const auto sent = peer.writer.flush(sockets_, peer.socket.get());
  if (sent.is_ok() && !sent->closed) return;
  peer.send_failed = true;
  peer.writer.clear();
  sockets_.wake(event_.get());
}

void SocketMesh::send(int to, Message message) {
  if (to == rank()) {
    const Status delivered = inbox_.deliver(to, std::move(message));
    if (!delivered.is_ok()) inbox_.peer_gone(to, delivered.message());
    return;
  }
  const std::lock_guard lock(mutex_);
  Peer& peer = peers_[to];
  peer.writer.add(std::move(message));
  flush_locked(peer);
  if (!peer.writer.empty()) sockets_.wake(event_.get());  // the thread sends the rest
}

Status SocketMesh::flush(const std::vector<int>& members, Deadline deadline) {
  std::unique_lock lock(mutex_);
  const auto sent = [&](int member) { return peers_[member].writer.empty(); };
  const bool all = deadline.wait(changed_, lock,
                                 [&] { return std::all_of(members.begin(), members.end(), sent); });
  if (all) return Status::ok();
  std::vector<int> blocked;
  for (std::size_t i = 0; i < members.size(); ++i) {
    if (!sent(members[i])) blocked.push_back(static_cast<int>(i));
  }
  return {StatusCode::kTimeout,
          fmt::format("{} did not take what was sent to it in time: stopped, or overloaded",
                      rank_list(blocked))};
}

void SocketMesh::established(const std::vector<PeerIdentity>& identities) {
  const PeerIdentity mine = this_process();
  const std::lock_guard lock(mutex_);
  established_ = true;
  for (std::size_t r = 0; r < peers_.size(); ++r) {
    const PeerIdentity& theirs = identities[r];
    if (!peers_[r].open || theirs.host_id != mine.host_id || theirs.process_id <= 0 ||
        theirs.process_token == mine.process_token) {
      continue;
    }
    if (auto process = sockets_.watch_process(theirs.process_id)) {
      peers_[r].process = std::move(process).value();
    }
  }
  sockets_.wake(event_.get());
}

// Two lines per peer, its socket and its process; then the event.
bool SocketMesh::wait_for_work(std::vector<SocketWait>& waits) {
  waits.assign(2 * peers_.size() + 1, {});
  {
    const std::lock_guard lock(mutex_);
    if (stopping_) return false;
    for (std::size_t r = 0; r < peers_.size(); ++r) {
      const Peer& peer = peers_[r];
      if (!peer.open) continue;
      waits[2 * r] = {.fd = peer.socket.get(), .read = true, .write = !peer.writer.empty()};
      waits[2 * r + 1] = {.fd = peer.process.get(), .read = true};
    }
  }
  waits.back() = {.fd = event_.get(), .read = true};
  const Status waited = sockets_.wait(waits, std::nullopt);
  if (!waited.is_ok()) {
    for (int r = 0; r < size(); ++r) drop(r, waited.message());
    return false;
  }
  if (waits.back().readable) sockets_.clear(event_.get());
  return true;
}

void SocketMesh::run() {
  std::vector<SocketWait> waits;
  while (wait_for_work(waits)) {
    for (int r = 0; r < size(); ++r) {
      if (waits[2 * r].fd >= 0) serve(r, waits[2 * r], waits[2 * r + 1]);
    }
  }
}

void SocketMesh::serve(int r, const SocketWait& socket, const SocketWait& process) {
  bool send_failed = false;
  {
    const std::lock_guard lock(mutex_);
    Peer& peer = peers_[r];
    if (socket.writable) {
      flush_locked(peer);
      if (peer.writer.empty()) changed_.notify_all();
    }
    send_failed = peer.send_failed;
  }
  const bool ended = process.readable || process.hung_up;
  if (!socket.readable && !ended && !send_failed) return;
  // What a peer sent before its end still counts: a leave above all.
  std::string why = ended ? "its process has ended" : "its connection is broken";
  const bool goes_on = read_from(r, ended || send_failed, why);
  if (!goes_on || ended || send_failed) drop(r, why);
}

bool SocketMesh::read_from(int r, bool to_the_end, std::string& why) {
  for (;;) {
    std::vector<Message> messages;
    const auto progress = peers_[r].reader.read(sockets_, peers_[r].socket.get(), messages);
    for (Message& message : messages) {
      if (!take(r, std::move(message), why)) return false;
    }
    if (!progress.is_ok()) {
      why = progress.status().message();
      return false;
    }
    if (progress->closed) {
      why = "its connection was closed, so its process has ended";
      return false;
    }
    if (progress->blocked || !to_the_end) return true;
  }
}

bool SocketMesh::take(int r, Message message, std::string& why) {
  if (message.kind == FrameKind::kGoodbye) {
    {
      const std::lock_guard lock(mutex_);
      peers_[r].said_goodbye = true;
    }
    send(r, control_message(FrameKind::kGoodbyeSeen));
    inbox_.peer_said_goodbye(r);
    return true;
  }
  if (message.kind == FrameKind::kGoodbyeSeen) {
    const std::lock_guard lock(mutex_);
    peers_[r].saw_goodbye = true;
    changed_.notify_all();
    return true;
  }
  const Status delivered = inbox_.deliver(r, std::move(message));
  if (!delivered.is_ok()) why = delivered.message();
  return delivered.is_ok();
}

void SocketMesh::drop(int r, const std::string& why) {
  bool said_goodbye = false;
  {
    const std::lock_guard lock(mutex_);
    Peer& peer = peers_[r];
    if (!peer.open) return;
    peer.open = false;
    peer.socket.reset();
    peer.process.reset();
    peer.writer.clear();
    said_goodbye = peer.said_goodbye;
  }
  changed_.notify_all();
  if (!said_goodbye) inbox_.peer_gone(r, why);
}

}  // namespace tutti
