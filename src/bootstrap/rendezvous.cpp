#include "bootstrap/rendezvous.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "base/log.hpp"
#include "base/try.hpp"
#include "bootstrap/failure_notice.hpp"
#include "bootstrap/frame.hpp"
#include "bootstrap/mesh.hpp"

namespace tutti {
namespace {

using std::chrono::milliseconds;

milliseconds pause_before(std::size_t attempt, const Status& last) {
  if (last.code() == StatusCode::kPermission) return milliseconds(100);
  return milliseconds(
      std::min<std::size_t>(std::size_t{1} << std::min<std::size_t>(attempt, 6), 50));
}

}  // namespace

void tell_all(SocketDriver& sockets, const std::vector<Fd>& connections,
              const GroupFailure& failure) {
  Message notice;
  notice.kind = FrameKind::kFailure;
  notice.group = kHelloGroup;
  notice.payload = std::make_shared<const Bytes>(encode_failure(failure));
  for (const Fd& connection : connections) {
    if (!connection.valid()) continue;
    FrameWriter writer;
    writer.add({notice.kind, notice.group, 0, notice.payload});
    static_cast<void>(writer.flush(sockets, connection.get()));
  }
}

Rendezvous::Rendezvous(Setup setup)
    : setup_(std::move(setup)),
      sockets_(*setup_.sockets),
      connections_(setup_.terms.size),
      ports_(setup_.terms.size) {}

void Rendezvous::dial(int rank, std::vector<SocketAddress> addresses) {
  dials_[rank].addresses = std::move(addresses);
}

Status Rendezvous::run(Deadline deadline) {
  TUTTI_TRY(run_until(deadline, [this] { return dials_.empty() && expected_.empty(); }));
  for (; !visitors_.empty(); visitors_.pop_front()) drop_stranger("the group was complete");
  return Status::ok();
}

Status Rendezvous::reach(Deadline deadline) {
  return run_until(deadline, [this] { return dials_.empty(); });
}

Status Rendezvous::run_until(Deadline deadline, const std::function<bool()>& complete) {
  while (!complete()) {
    TUTTI_TRY(start_dials());
    TUTTI_TRY(wait_and_serve(deadline));
    if (complete()) break;
    TUTTI_TRY(ask_around());
    if (deadline.passed()) return fail(timeout(), missing().front());
  }
  return Status::ok();
}

Status Rendezvous::ask_around() {
  if (const auto failure = setup_.told ? setup_.told() : std::nullopt) {
    return fail(to_status(*failure), failure->rank);
  }
  if (setup_.called_off && setup_.called_off()) {
    return {StatusCode::kUnavailable, "the meeting place has moved"};
  }
  return Status::ok();
}

Rendezvous::Clock::time_point Rendezvous::next_event(Deadline deadline) const {
  Clock::time_point next = Clock::now() + deadline.left();
  for (const Visitor& visitor : visitors_) next = std::min(next, visitor.until);
  for (const auto& [rank, dial] : dials_) {
    if (!dial.socket.valid()) next = std::min(next, dial.not_before);
  }
  if (setup_.called_off || setup_.told) next = std::min(next, Clock::now() + milliseconds(50));
  return next;
}

Status Rendezvous::wait_and_serve(Deadline deadline) {
  std::vector<SocketWait> waits;
  for (const Fd& connection : connections_) waits.push_back({.fd = connection.get()});
  waits.push_back({.fd = listener_.get(), .read = true});
  for (const Visitor& visitor : visitors_) {
    const bool write = visitor.handshake.wants_to_write();
    waits.push_back({.fd = visitor.socket.get(), .read = !write, .write = write});
  }
  for (const auto& [rank, dial] : dials_) {
    const bool write = !dial.handshake || dial.handshake->wants_to_write();
    waits.push_back({.fd = dial.socket.get(), .read = !write, .write = write});
  }
  TUTTI_TRY(sockets_.wait(waits, Deadline(next_event(deadline) - Clock::now())));
  for (std::size_t r = 0; r < connections_.size(); ++r) {
    if (!waits[r].hung_up) continue;
    const GroupFailure failure = reason_of(static_cast<int>(r));
    // Who has lost patience may know less of who is missing than this rank does.
    const bool impatient = failure.code == StatusCode::kTimeout && !missing().empty();
    return impatient ? fail(timeout(), missing().front()) : fail(to_status(failure), failure.rank);
  }
  return serve_all();
}

// Steps cost one system call where nothing has come, so all are tried.
Status Rendezvous::serve_all() {
  TUTTI_TRY(accept_visitors());
  for (auto visitor = visitors_.begin(); visitor != visitors_.end();) {
    const Status served = serve_visitor(*visitor);
    if (!misfit_.is_ok()) return fail(misfit_, setup_.terms.rank);
    if (!served.is_ok()) drop_stranger(served.message());
    const bool finished = !served.is_ok() || !visitor->socket.valid();
    visitor = finished ? visitors_.erase(visitor) : std::next(visitor);
  }
  for (auto dial = dials_.begin(); dial != dials_.end();) {
    TUTTI_TRY(serve_dial(dial->first, dial->second));
    dial = connections_[dial->first].valid() ? dials_.erase(dial) : std::next(dial);
  }
  return Status::ok();
}

Status Rendezvous::accept_visitors() {
  while (listener_.valid()) {
    auto accepted = sockets_.accept(listener_.get());
    if (!accepted.is_ok()) return fail_here(accepted.status());
    Fd socket = std::move(accepted).value();
    if (!socket.valid()) break;
    if (visitors_.size() == kMaxVisitors) {
      drop_stranger("too many were waiting");
      visitors_.pop_front();
    }
    const auto admit = [this](const Handshake::Claim& claim) { return this->admit(claim); };
    visitors_.push_back({std::move(socket), Handshake::acceptor(setup_.terms, admit),
                         Clock::now() + setup_.stranger_deadline});
  }
  return Status::ok();
}

Verdict Rendezvous::admit(const Handshake::Claim& claim) {
  const int size = setup_.terms.size;
  if (claim.size != size) {
    misfit_ = {
        StatusCode::kMismatch,
        fmt::format("rank {} joins a group of {}, this rank {} a group of {}: all ranks must "
                    "give the same size",
                    claim.rank, claim.size, setup_.terms.rank, size)};
    return {VerdictCode::kSizeDiffers, size};
  }
  if (!expected_.contains(claim.rank) || !admitted_.insert(claim.rank).second) {
    return {VerdictCode::kRankTaken, size};
  }
  return {VerdictCode::kWelcome, size};
}

Status Rendezvous::check_user(int socket) {
  if (!setup_.check_user) return Status::ok();
  TUTTI_ASSIGN(const SocketPeer peer, sockets_.peer(socket));
  if (peer.user_id == sockets_.user_id()) return Status::ok();
  return {StatusCode::kPermission, fmt::format("process {} runs as user {}, this rank as user {}",
                                               peer.process_id, peer.user_id, sockets_.user_id())};
}

Status Rendezvous::serve_visitor(Visitor& visitor) {
  TUTTI_TRY(check_user(visitor.socket.get()));
  const Status stepped = visitor.handshake.step(sockets_, visitor.socket.get());
  const Handshake::Claim& claim = visitor.handshake.peer();
  const bool welcome =
      visitor.handshake.proved() && visitor.handshake.verdict().code == VerdictCode::kWelcome;
  if (!stepped.is_ok()) {
    if (welcome) admitted_.erase(claim.rank);
    return stepped;
  }
  if (visitor.handshake.done()) {
    if (!welcome) {
      return {StatusCode::kMismatch,
              fmt::format("it wants to be rank {}, which has joined already", claim.rank)};
    }
    connections_[claim.rank] = std::move(visitor.socket);
    ports_[claim.rank] = claim.port;
    expected_.erase(claim.rank);
    return Status::ok();
  }
  if (Clock::now() < visitor.until) return Status::ok();
  return {StatusCode::kTimeout, "it did not prove itself in time"};
}

void Rendezvous::drop_stranger(const std::string& why) {
  ++strangers_;
  last_stranger_ = why;
  log_once(LogLevel::kWarn, fmt::format("dropped a connection to rank {} at {}: {}",
                                        setup_.terms.rank, setup_.place, why));
}

Status Rendezvous::start_dials() {
  for (auto& [rank, dial] : dials_) {
    if (dial.socket.valid() || Clock::now() < dial.not_before) continue;
    const SocketAddress& address = dial.addresses[dial.attempt++ % dial.addresses.size()];
    dial.handshake.reset();
    auto socket = sockets_.connect(address);
    if (socket.is_ok()) {
      dial.socket = std::move(socket).value();
    } else {
      dial.last = socket.status();
      if (dial.last.code() == StatusCode::kResourceExhausted) return fail_here(dial.last);
      dial.not_before = Clock::now() + pause_before(dial.attempt, dial.last);
    }
  }
  return Status::ok();
}

// Until the system has made the connection there is no handshake.
Status Rendezvous::connect_dial(int rank, Dial& dial) {
  SocketWait wait{.fd = dial.socket.get(), .write = true};
  TUTTI_TRY(sockets_.wait({&wait, 1}, Deadline(milliseconds(0))));
  if (!wait.writable) return Status::ok();
  TUTTI_TRY(sockets_.connected(dial.socket.get()));
  TUTTI_ASSIGN(const SocketAddress here, sockets_.local_address(dial.socket.get()));
  TUTTI_ASSIGN(const SocketAddress there, sockets_.remote_address(dial.socket.get()));
  if (!here.is_unix() && here.text() == there.text()) {
    return {StatusCode::kUnavailable, "nobody listens there yet; the call came back to itself"};
  }
  TUTTI_TRY(check_user(dial.socket.get()));
  dial.handshake = Handshake::initiator(setup_.terms, rank);
  return Status::ok();
}

Status Rendezvous::serve_dial(int rank, Dial& dial) {
  if (!dial.socket.valid()) return Status::ok();
  Status status = dial.handshake ? Status::ok() : connect_dial(rank, dial);
  if (status.is_ok() && dial.handshake) {
    status = dial.handshake->step(sockets_, dial.socket.get());
    if (dial.handshake->done()) {
      connections_[rank] = std::move(dial.socket);
      return Status::ok();
    }
  }
  if (status.is_ok()) return status;
  // A member that has proved itself and turned us down is an answer; a stranger is not.
  if (status.code() == StatusCode::kMismatch) return fail(status, setup_.terms.rank);
  dial.socket.reset();
  dial.last = status;
  dial.not_before = Clock::now() + pause_before(dial.attempt, status);
  return Status::ok();
}

std::vector<int> Rendezvous::missing() const {
  std::vector<int> ranks(expected_.begin(), expected_.end());
  for (const auto& [rank, dial] : dials_) ranks.push_back(rank);
  std::sort(ranks.begin(), ranks.end());
  return ranks;
}

Status Rendezvous::timeout() const {
  const std::chrono::duration<double> waited = Clock::now() - began_;
  std::string text = fmt::format("{} waited {:.3f} s at {} and did not meet {} of {}",
                                 setup_.names.of(setup_.terms.rank), waited.count(), setup_.place,
                                 setup_.names.of(missing()), setup_.terms.size);
  StatusCode code = StatusCode::kTimeout;
  for (const auto& [rank, dial] : dials_) {
    if (dial.last.is_ok()) continue;
    text += fmt::format("; {}: {}", setup_.names.of(rank), dial.last.message());
    if (dial.last.code() == StatusCode::kPermission) code = StatusCode::kPermission;
  }
  if (strangers_ > 0) {
    text += fmt::format("; {} connections were dropped, the last because: {}", strangers_,
                        last_stranger_);
  }
  return {code, text};
}

GroupFailure Rendezvous::reason_of(int rank) {
  FrameReader reader;
  std::vector<Message> messages;
  const auto progress = reader.read(sockets_, connections_[rank].get(), messages);
  for (const Message& message : messages) {
    if (message.kind != FrameKind::kFailure || message.group != kHelloGroup) continue;
    if (auto failure = decode_failure(*message.payload, setup_.terms.size)) return *failure;
  }
  return {rank, StatusCode::kPeerFailed,
          fmt::format("{} ended while the group was being formed", setup_.names.of(rank))};
}

// Who has let this rank in, and waits for it already, is there as well.
void Rendezvous::take_late_verdicts() {
  for (auto& [rank, dial] : dials_) {
    if (!dial.socket.valid() || !dial.handshake) continue;
    const Status stepped = dial.handshake->step(sockets_, dial.socket.get());
    if (stepped.is_ok() && dial.handshake->done()) connections_[rank] = std::move(dial.socket);
  }
}

Status Rendezvous::fail(const Status& status, int rank) {
  take_late_verdicts();
  give_up({rank, status.code(), status.message()});
  return status;
}

void Rendezvous::turn_away(const Status& status, Deadline deadline) {
  for (Fd& told : connections_) told.reset();
  while (!expected_.empty() && !deadline.passed() && wait_and_serve(deadline).is_ok()) {
    give_up({-1, status.code(), status.message()});
    for (Fd& told : connections_) told.reset();
  }
}

Status Rendezvous::fail_here(const Status& status) {
  const int rank = setup_.terms.rank;
  const Status named = status.with_context(setup_.names.of(rank));
  // First: whoever hears of it takes down what was left for him.
  if (setup_.leave_word && status.code() == StatusCode::kResourceExhausted) {
    setup_.leave_word(missing(), {rank, named.code(), named.message()});
  }
  return fail(named, rank);
}

}  // namespace tutti
