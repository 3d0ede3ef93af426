#include "bootstrap/socket_mesh.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <optional>

#include "base/guard.hpp"
#include "base/try.hpp"
#include "bootstrap/identity.hpp"
#include "bootstrap/rendezvous.hpp"
#include "drivers/processes.hpp"

namespace tutti {
namespace {

constexpr char kEnded[] = "its process has ended";

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
  const Status started = mesh->start_thread();
  if (started.is_ok()) return mesh;
  // The others have met this rank, and would take the end of its connections for the end of it.
  const int rank = mesh->rank();
  const Status told = started.with_context(fmt::format("rank {}", rank));
  std::vector<Fd> connections;
  for (Peer& peer : mesh->peers_) connections.push_back(std::move(peer.socket));
  tell_all(mesh->sockets_, connections, {rank, told.code(), told.message()});
  return told;
}

Status SocketMesh::start_thread() {
  TUTTI_ASSIGN(event_, sockets_.make_event());
  return worker_.start([this] { run(); });
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

std::vector<int> SocketMesh::flush(const std::vector<int>& members, Deadline deadline) {
  std::unique_lock lock(mutex_);
  const auto sent = [&](int member) { return peers_[member].writer.empty(); };
  (void)deadline.wait(changed_, lock,
                      [&] { return std::all_of(members.begin(), members.end(), sent); });
  std::vector<int> blocked;
  for (std::size_t i = 0; i < members.size(); ++i) {
    if (!sent(members[i])) blocked.push_back(static_cast<int>(i));
  }
  return blocked;
}

bool SocketMesh::catch_up(Deadline deadline) {
  std::unique_lock lock(mutex_);
  const std::uint64_t mine = ++asked_to_read_;
  sockets_.wake(event_.get());
  return deadline.wait(changed_, lock, [&] { return has_read_ >= mine; });
}

void SocketMesh::read_all_if_asked() {
  std::vector<int> open;
  std::uint64_t asked = 0;
  {
    const std::lock_guard lock(mutex_);
    asked = asked_to_read_;
    if (asked == has_read_) return;
    for (int r = 0; r < size(); ++r) {
      if (peers_[r].open) open.push_back(r);
    }
  }
  for (const int r : open) {
    std::string why;
    if (!read_from(r, true, why)) drop(r, why);
  }
  const std::lock_guard lock(mutex_);
  has_read_ = asked;
  changed_.notify_all();
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
    watch_locked(peers_[r], theirs);
  }
  sockets_.wake(event_.get());
}

// What cannot be seen in /proc to begin with is not looked for there.
void SocketMesh::watch_locked(Peer& peer, const PeerIdentity& identity) {
  if (auto process = sockets_.watch_process(identity.process_id)) {
    peer.process = std::move(process).value();
    return;
  }
  const auto facts = process_facts(static_cast<pid_t>(identity.process_id));
  if (!facts || facts->start != identity.process_start) return;
  peer.looked_for = identity;
  looks_ = true;
}

void SocketMesh::look_for_ended() {
  const auto now = Deadline::Clock::now();
  if (now - looked_ < kBetweenLooks) return;
  looked_ = now;
  std::vector<std::pair<int, PeerIdentity>> looked_for;
  {
    const std::lock_guard lock(mutex_);
    for (int r = 0; r < size(); ++r) {
      const Peer& peer = peers_[r];
      if (peer.open && peer.looked_for.process_id > 0) looked_for.emplace_back(r, peer.looked_for);
    }
  }
  for (const auto& [r, who] : looked_for) {
    if (has_ended(static_cast<pid_t>(who.process_id), who.process_start)) lose(r, kEnded);
  }
}

// Two lines per peer, its socket and its process; then the event.
bool SocketMesh::wait_for_work(std::vector<SocketWait>& waits) {
  waits.assign(2 * peers_.size() + 1, {});
  std::optional<Deadline> until;  // else it is woken
  {
    const std::lock_guard lock(mutex_);
    if (stopping_) return false;
    if (looks_) until = Deadline(kBetweenLooks);
    for (std::size_t r = 0; r < peers_.size(); ++r) {
      const Peer& peer = peers_[r];
      if (!peer.open) continue;
      waits[2 * r] = {.fd = peer.socket.get(), .read = true, .write = !peer.writer.empty()};
      waits[2 * r + 1] = {.fd = peer.process.get(), .read = true};
    }
  }
  waits.back() = {.fd = event_.get(), .read = true};
  const Status waited = sockets_.wait(waits, until);
  if (!waited.is_ok()) {
    for (int r = 0; r < size(); ++r) drop(r, waited.message());
    return false;
  }
  if (waits.back().readable) sockets_.clear(event_.get());
  return true;
}

// Where the thread breaks off nobody is heard any more: better all connections end, too.
void SocketMesh::run() {
  guarded_by([this] { serve_until_stopped(); },
             [this](const Status& failure) {
               for (int r = 0; r < size(); ++r) drop(r, failure.message());
             });
}

void SocketMesh::serve_until_stopped() {
  std::vector<SocketWait> waits;
  while (wait_for_work(waits)) {
    for (int r = 0; r < size(); ++r) {
      if (waits[2 * r].fd >= 0) serve(r, waits[2 * r], waits[2 * r + 1]);
    }
    look_for_ended();
    read_all_if_asked();
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
  if (ended || send_failed) return lose(r, ended ? kEnded : "its connection is broken");
  std::string why;
  if (socket.readable && !read_from(r, false, why)) drop(r, why);
}

// What a peer sent before its end still counts: a leave above all.
void SocketMesh::lose(int r, std::string why) {
  read_from(r, true, why);
  drop(r, why);
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
