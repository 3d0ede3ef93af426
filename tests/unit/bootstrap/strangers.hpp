// Who knocks at a group's door without being asked: connections made by hand, and a member that has
// proved itself and then says whatever it wants.
#pragma once

#include <sys/socket.h>

#include <gtest/gtest.h>

#include <future>
#include <map>
#include <thread>
#include <utility>

#include "bootstrap/frame.hpp"
#include "bootstrap/handshake.hpp"
#include "bootstrap/identity.hpp"
#include "bootstrap/mesh.hpp"
#include "unit/bootstrap/groups.hpp"

namespace tutti::testing {

using JoinResult = Result<std::unique_ptr<Bootstrap>>;

inline std::future<JoinResult> join_later(const GroupId& id, int rank, int size, Deadline deadline,
                                          JoinOptions options) {
  return std::async(std::launch::async,
                    [=] { return join_group_with(id, rank, size, deadline, options); });
}

inline GroupId with_other_secret(const GroupId& id) {
  auto secret = id.secret();
  secret[0] ^= std::byte{1};
  return *group_id_from(id.is_local(), id.address(), secret);
}

// Where a rank of a local group listens; of another, where rank 0 does.
inline SocketAddress address_of(const GroupId& id, const TemporaryDirectory& directory, int rank) {
  if (id.is_local()) {
    return *SocketAddress::unix_path(directory.path() + "/" + id.address() + "/r" +
                                     std::to_string(rank));
  }
  const auto root = parse_host_port(id.address());
  return *SocketAddress::tcp(root->host, root->port);
}

// A connection as a stranger makes it, once somebody listens.
inline Fd dial(const SocketAddress& address) {
  const Deadline deadline = soon();
  while (!deadline.passed()) {
    auto socket = real_sockets().connect(address);
    if (socket.is_ok()) {
      SocketWait wait{.fd = socket->get(), .write = true};
      EXPECT_TRUE(real_sockets().wait({&wait, 1}, deadline).is_ok());
      if (real_sockets().connected(socket->get()).is_ok()) return std::move(socket).value();
    }
    std::this_thread::sleep_for(2ms);
  }
  ADD_FAILURE() << "nobody listened at " << address.text();
  return Fd();
}

inline Fd dial_root(const GroupId& id, const TemporaryDirectory& directory) {
  return dial(address_of(id, directory, 0));
}

inline HandshakeTerms terms_of(const GroupId& id, int rank, int size) {
  HandshakeTerms terms;
  terms.rank = rank;
  terms.size = size;
  terms.secret = id.secret();
  return terms;
}

// Goes through the whole of it, or fails.
inline Status shake_hands(Handshake& handshake, SocketDriver& sockets, int socket) {
  const Deadline deadline = soon();
  while (!handshake.done()) {
    const bool write = handshake.wants_to_write();
    SocketWait wait{.fd = socket, .read = !write, .write = write};
    Status status = sockets.wait({&wait, 1}, deadline);
    if (status.is_ok()) status = handshake.step(sockets, socket);
    if (!status.is_ok()) return status;
    if (deadline.passed()) return {StatusCode::kTimeout, "the handshake does not end"};
  }
  return Status::ok();
}

// True once the other end has closed the connection.
inline bool is_hung_up_on(int socket, std::chrono::milliseconds within = kPatience) {
  const Deadline deadline(within);
  std::array<char, 256> rest{};
  while (!deadline.passed()) {
    const ssize_t got = ::recv(socket, rest.data(), rest.size(), MSG_DONTWAIT);
    if (got == 0 || (got < 0 && errno == ECONNRESET)) return true;
    std::this_thread::sleep_for(2ms);
  }
  return false;
}

// The last rank of a local group: a member by its secret, and no friend.
class Rogue {
 public:
  Rogue(const GroupId& id, const TemporaryDirectory& directory, int size)
      : rank_(size - 1), size_(size) {
    for (int peer = 0; peer < rank_; ++peer) {
      Fd socket = dial(address_of(id, directory, peer));
      Handshake handshake = Handshake::initiator(terms_of(id, rank_, size_), peer);
      const Status met = shake_hands(handshake, real_sockets(), socket.get());
      EXPECT_TRUE(met.is_ok()) << met.to_string();
      sockets_.push_back(std::move(socket));
    }
  }

  // One rank's part of the first call that every group makes.
  void introduce_itself() {
    PeerIdentity identity = this_process();
    identity.process_token ^= 1;
    say(kHelloGroup, 1, to_bytes(view_of(identity)));
  }

  static Bytes frame(FrameKind kind, std::uint64_t group, std::uint64_t sequence,
                     const Bytes& payload) {
    FrameHeader header;
    header.kind = kind;
    header.group = group;
    header.sequence = sequence;
    header.length = static_cast<std::uint32_t>(payload.size());
    Bytes whole = to_bytes(view_of(header));
    whole.insert(whole.end(), payload.begin(), payload.end());
    return whole;
  }

  // Its part of an all_gather.
  void say(std::uint64_t group, std::uint64_t sequence, const Bytes& payload) {
    say(frame(FrameKind::kGather, group, sequence, payload));
  }

  void say(ByteView bytes, const std::vector<int>& descriptors = {}) {
    for (const Fd& socket : sockets_) {
      const auto sent = real_sockets().send(socket.get(), {&bytes, 1}, descriptors);
      EXPECT_TRUE(sent.is_ok() && sent->bytes == bytes.size());
    }
  }

  const std::vector<Fd>& sockets() const { return sockets_; }

 private:
  const int rank_, size_;
  std::vector<Fd> sockets_;  // to the ranks below it
};

}  // namespace tutti::testing
