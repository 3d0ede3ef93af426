// A group over TCP: all dial rank 0 at the id's address, and say where they listen; rank 0 tells
// everyone where the others are; then each dials the ranks below it.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <thread>

#include "base/try.hpp"
#include "bootstrap/failure_notice.hpp"
#include "bootstrap/frame.hpp"
#include "bootstrap/held_ports.hpp"
#include "bootstrap/join.hpp"
#include "bootstrap/mesh.hpp"
#include "bootstrap/rendezvous.hpp"

namespace tutti {
namespace {

// Where a rank listens, as rank 0 tells it.
struct AddressEntry {
  std::uint16_t port = 0;
  // Numeric. Empty: on rank 0's host, so by the address at which the reader has reached rank 0.
  std::array<char, 62> host{};
};
static_assert(sizeof(AddressEntry) == 64);

class TcpJoin {
 public:
  TcpJoin(const JoinRequest& request, HostPort root)
      : request_(request),
        sockets_(*request.options.sockets),
        root_(std::move(root)),
        loopback_only_(is_loopback_name(root_.host)) {}

  Result<std::unique_ptr<Bootstrap>> run() {
    TUTTI_ASSIGN(addresses_, resolve_root());
    const Status room = sockets_.reserve(descriptors_to_join(request_.size));
    if (!room.is_ok() && request_.rank > 0) return tell_root(of_this_rank(room));
    auto listening = request_.rank == 0 ? listen_as_root() : listen_anywhere();
    if (listening.status().code() == StatusCode::kResourceExhausted) {
      return tell_root(of_this_rank(listening.status()));
    }
    TUTTI_ASSIGN(Fd listener, std::move(listening));
    std::uint16_t port = 0;
    if (listener.valid()) {
      TUTTI_ASSIGN(const SocketAddress here, sockets_.local_address(listener.get()));
      port = here.port();
    }
    Rendezvous rendezvous(setup(port));
    rendezvous.listen_at(std::move(listener));
    if (!room.is_ok()) return turn_all_away(rendezvous, of_this_rank(room));
    const Status met = request_.rank == 0 ? meet_as_root(rendezvous) : meet(rendezvous);
    if (request_.options.strangers != nullptr) {
      *request_.options.strangers += rendezvous.strangers();
    }
    if (met.code() == StatusCode::kResourceExhausted && request_.rank == 0) {
      rendezvous.turn_away(met, within(kLateRanks));
    }
    const bool is_alone = request_.rank > 0 && rendezvous.socket(0) < 0;
    if (met.code() == StatusCode::kResourceExhausted && is_alone) return tell_root(met);
    TUTTI_TRY(met);
    rendezvous.close_listener();
    return make_socket_group(request_, rendezvous.take_connections());
  }

 private:
  // So long rank 0 waits to tell a failure to those who have not come yet.
  static constexpr std::chrono::seconds kLateRanks{10};

  Rendezvous::Setup setup(std::uint16_t port) const {
    const JoinOptions& options = request_.options;
    Rendezvous::Setup setup;
    setup.sockets = options.sockets;
    setup.terms = {request_.rank, request_.size, request_.id.secret(), port, options.check_proofs};
    setup.place = request_.id.address();
    setup.stranger_deadline = options.stranger_deadline;
    setup.called_off = options.called_off;
    return setup;
  }

  Status of_this_rank(const Status& status) const {
    return status.with_context(request_.options.names.of(request_.rank));
  }

  // Rank 0 without descriptors for all connections at once still has those for one at a time.
  Status turn_all_away(Rendezvous& rendezvous, const Status& failed) {
    for (int r = 1; r < request_.size; ++r) rendezvous.expect(r);
    rendezvous.turn_away(failed, within(kLateRanks));
    return failed;
  }

  Deadline within(Deadline::Clock::duration limit) const {
    return Deadline(std::min(limit, request_.deadline.left()));
  }

  // One descriptor is enough to tell rank 0, which tells everyone.
  Status tell_root(const Status& failed) {
    const int rank = request_.rank;
    if (rank == 0) return failed;
    Rendezvous rendezvous(setup(0));
    rendezvous.dial(0, addresses_);
    if (rendezvous.reach(request_.deadline).is_ok()) {
      rendezvous.give_up({rank, failed.code(), failed.message()});
    }
    return failed;
  }

  // A name may become known only while its machine comes up.
  Result<std::vector<SocketAddress>> resolve_root() {
    for (;;) {
      auto found = sockets_.resolve(root_.host, root_.port, request_.deadline);
      const bool again = found.status().code() == StatusCode::kUnavailable;
      if (found.is_ok() || !again || request_.deadline.passed()) return found;
      std::this_thread::sleep_for(Deadline::kBetweenLooks);
    }
  }

  Result<Fd> listen_as_root() {
    SocketAddress here = listening_address(addresses_.front(), loopback_only_);
    const Deadline in_use = within(std::chrono::seconds(2));
    for (;;) {
      auto listener = sockets_.listen(here);
      if (listener.is_ok()) {
        let_go_of_port(root_.host, root_.port);
        return listener;
      }
      if (listener.status().code() == StatusCode::kUnavailable) {
        if (in_use.passed()) {
          return Status(StatusCode::kUnavailable,
                        fmt::format("rank 0: {}; choose another port, or end what uses this one",
                                    listener.status().message()));
        }
        std::this_thread::sleep_for(std::chrono::milliseconds(20));
      } else if (!loopback_only_ && here.text() != here.wildcard().text()) {
        here = here.wildcard();  // no address of this machine's own: behind a translation
      } else {
        return listener;
      }
    }
  }

  Result<Fd> listen_anywhere() {
    if (request_.rank + 1 == request_.size) return Fd();  // nobody dials the last rank
    const SocketAddress root = addresses_.front().with_port(0);
    return sockets_.listen(loopback_only_ ? root : root.wildcard());
  }

  Status meet_as_root(Rendezvous& rendezvous) {
    for (int r = 1; r < request_.size; ++r) rendezvous.expect(r);
    TUTTI_TRY(rendezvous.run(roots_deadline()));
    TUTTI_ASSIGN(const Bytes table, address_table(rendezvous));
    const auto payload = std::make_shared<const Bytes>(table);
    for (int r = 1; r < request_.size; ++r) TUTTI_TRY(send_table(rendezvous.socket(r), payload));
    return Status::ok();
  }

  // Only rank 0 knows who is missing: it gives up a little earlier, so that the others hear it.
  Deadline roots_deadline() const {
    const auto left = request_.deadline.left();
    const Deadline::Clock::duration slack = std::chrono::milliseconds(250);
    return Deadline(left - std::min(slack, left / 10));
  }

  Result<Bytes> address_table(const Rendezvous& rendezvous) {
    Bytes table;
    for (int r = 0; r < request_.size; ++r) {
      AddressEntry entry;
      if (r > 0) {
        TUTTI_ASSIGN(const SocketAddress seen, sockets_.remote_address(rendezvous.socket(r)));
        const std::string host = seen.is_loopback() ? "" : seen.host();
        std::copy(host.begin(), host.end(), entry.host.begin());
        entry.port = rendezvous.listen_port(r);
      }
      const ByteView bytes = view_of(entry);
      table.insert(table.end(), bytes.begin(), bytes.end());
    }
    return table;
  }

  Status send_table(int socket, const Payload& payload) {
    FrameWriter writer;
    writer.add({FrameKind::kAddresses, kHelloGroup, 0, payload, {}});
    for (;;) {
      TUTTI_ASSIGN(const SocketTransfer sent, writer.flush(sockets_, socket));
      if (writer.empty()) return Status::ok();
      if (sent.closed || request_.deadline.passed()) {
        return {StatusCode::kPeerFailed, "a rank ended while the group was being formed"};
      }
      SocketWait wait{.fd = socket, .write = true};
      TUTTI_TRY(sockets_.wait({&wait, 1}, request_.deadline));
    }
  }

  Status meet(Rendezvous& rendezvous) {
    rendezvous.dial(0, addresses_);
    // Who has the table before us may dial us before we have it.
    for (int r = request_.rank + 1; r < request_.size; ++r) rendezvous.expect(r);
    TUTTI_TRY(rendezvous.reach(request_.deadline));
    const auto table = receive_table(rendezvous);
    if (!table.is_ok()) {
      rendezvous.give_up({0, table.status().code(), table.status().message()});
      return table.status();
    }
    TUTTI_ASSIGN(const SocketAddress root, sockets_.remote_address(rendezvous.socket(0)));
    for (int r = 1; r < request_.rank; ++r) {
      const AddressEntry& entry = (*table)[r];
      const std::string host(entry.host.data(), strnlen(entry.host.data(), entry.host.size()));
      TUTTI_ASSIGN(const SocketAddress address,
                   SocketAddress::tcp(host.empty() ? root.host() : host, entry.port));
      rendezvous.dial(r, {address});
    }
    return rendezvous.run(request_.deadline);
  }

  // Rank 0 answers once all have come, so this is where most of the waiting is done.
  Result<std::vector<AddressEntry>> receive_table(Rendezvous& rendezvous) {
    FrameReader reader;
    std::vector<Message> messages;
    const int socket = rendezvous.socket(0);
    while (messages.empty()) {
      SocketWait wait{.fd = socket, .read = true};
      TUTTI_TRY(sockets_.wait({&wait, 1}, request_.deadline));
      if (request_.deadline.passed()) {
        return Status(StatusCode::kTimeout,
                      fmt::format("rank {} met rank 0 at {}, which still waits for others: start "
                                  "all {} ranks",
                                  request_.rank, root_.host, request_.size));
      }
      TUTTI_ASSIGN(const auto progress, reader.read(sockets_, socket, messages, 1));
      if (progress.closed) {
        return Status(StatusCode::kPeerFailed, "rank 0 ended while the group was being formed");
      }
    }
    return decode_table(messages.front());
  }

  Result<std::vector<AddressEntry>> decode_table(const Message& message) {
    if (message.kind == FrameKind::kFailure) {
      TUTTI_ASSIGN(const GroupFailure failure, decode_failure(*message.payload, request_.size));
      return to_status(failure);
    }
    const Bytes& bytes = *message.payload;
    if (message.kind != FrameKind::kAddresses ||
        bytes.size() != sizeof(AddressEntry) * request_.size) {
      return Status(StatusCode::kMismatch, "rank 0 sent no table of addresses");
    }
    std::vector<AddressEntry> table(request_.size);
    std::memcpy(table.data(), bytes.data(), bytes.size());
    return table;
  }

  const JoinRequest& request_;
  SocketDriver& sockets_;
  const HostPort root_;
  const bool loopback_only_;
  std::vector<SocketAddress> addresses_;
};

}  // namespace

Result<std::unique_ptr<Bootstrap>> join_tcp(const JoinRequest& request) {
  TUTTI_ASSIGN(HostPort root, parse_host_port(request.id.address()));
  return TcpJoin(request, std::move(root)).run();
}

}  // namespace tutti
