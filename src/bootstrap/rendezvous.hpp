// Makes the connections of one rank: dials the ranks it is told to, lets in those it expects, has
// every end prove itself, and throws out strangers without waiting for them.
#pragma once

#include <chrono>
#include <functional>
#include <list>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "bootstrap/bootstrap.hpp"
#include "bootstrap/handshake.hpp"

namespace tutti {

// Tells the other ends that no group will come about. Best effort: whoever misses it sees the
// connection end.
void tell_all(SocketDriver& sockets, const std::vector<Fd>& connections,
              const GroupFailure& failure);

class Rendezvous {
 public:
  struct Setup {
    SocketDriver* sockets = nullptr;
    HandshakeTerms terms;
    std::string place;                                  // for texts: a directory, or host:port
    bool check_user = false;                            // UNIX: the other end must run as this user
    std::chrono::milliseconds stranger_deadline{5000};  // to prove oneself
    std::function<bool()> called_off;  // asked now and then until rank 0 is met; may be empty
    RankNames names = {};
    // Both may be empty. Asked now and then: the failure of a rank that could not even connect.
    std::function<std::optional<GroupFailure>()> told;
    // Leaves that to ranks that are not connected, where this rank is the one.
    std::function<void(const std::vector<int>& absent, const GroupFailure&)> leave_word;
  };
  explicit Rendezvous(Setup setup);

  void listen_at(Fd listener) { listener_ = std::move(listener); }
  void close_listener() { listener_.reset(); }
  void dial(int rank, std::vector<SocketAddress> addresses);
  void expect(int rank) { expected_.insert(rank); }

  // Until everyone dialled or expected is there. On failure all who are there are told, so that
  // they fail too, with the same text. kTimeout names the ranks that did not come.
  Status run(Deadline deadline);
  // The same until everyone dialled is there; who is expected may come meanwhile or later.
  Status reach(Deadline deadline);
  // Tells everyone who is there that no group will come about.
  void give_up(const GroupFailure& failure) { tell_all(sockets_, connections_, failure); }
  // This rank has no descriptors, say: all others are told, those too that are not here yet.
  Status fail_here(const Status& status);
  // After a failure: lets in everyone who is still expected, tells each, and closes the connection,
  // until all have come.
  void turn_away(const Status& status, Deadline deadline);
  // The failure a peer told us, if that is why its connection ended.
  GroupFailure reason_of(int rank);

  int socket(int rank) const { return connections_[rank].get(); }
  std::uint16_t listen_port(int rank) const { return ports_[rank]; }
  std::vector<Fd> take_connections() { return std::move(connections_); }
  int strangers() const { return strangers_; }

 private:
  using Clock = Deadline::Clock;

  struct Visitor {  // has connected here, and has not proved itself yet
    Fd socket;
    Handshake handshake;
    Clock::time_point until;
  };
  struct Dial {  // not yet let in there
    std::vector<SocketAddress> addresses;
    std::size_t attempt = 0;
    Fd socket;
    std::optional<Handshake> handshake;  // once connected
    Clock::time_point not_before = Clock::now();
    Status last;  // why the attempt before ended
  };

  Status run_until(Deadline deadline, const std::function<bool()>& complete);
  Clock::time_point next_event(Deadline deadline) const;
  Status wait_and_serve(Deadline deadline);
  Status accept_visitors();
  Status serve_visitor(Visitor& visitor);
  Verdict admit(const Handshake::Claim& claim);
  void drop_stranger(const std::string& why);
  Status start_dials();
  Status ask_around();
  Status serve_dial(int rank, Dial& dial);
  Status connect_dial(int rank, Dial& dial);
  Status check_user(int socket);
  Status serve_all();
  Status timeout() const;
  std::vector<int> missing() const;
  void take_late_verdicts();
  Status fail(const Status& status, int rank);

  Setup setup_;
  SocketDriver& sockets_;
  const Clock::time_point began_ = Clock::now();
  Fd listener_;
  static constexpr std::size_t kMaxVisitors = 128;

  std::list<Visitor> visitors_;
  std::map<int, Dial> dials_;
  std::set<int> expected_, admitted_;
  Status misfit_;  // a member of this group whose settings differ
  std::vector<Fd> connections_;
  std::vector<std::uint16_t> ports_;
  int strangers_ = 0;
  std::string last_stranger_;
};

}  // namespace tutti
