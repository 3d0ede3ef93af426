// join_group() with what tests and the launchers' variables need to set.
#pragma once

#include <chrono>
#include <functional>
#include <string>

#include "bootstrap/bootstrap.hpp"
#include "drivers/sockets.hpp"

namespace tutti {

struct JoinOptions {
  SocketDriver* sockets = &real_sockets();
  // Where local groups meet; empty: runtime_directory().
  std::string runtime_directory;
  // False: the group's directory must be there (kUnavailable), made by whoever made the id.
  bool create_directory = true;
  // Asked now and then while ranks are awaited; true ends the call with kUnavailable.
  std::function<bool()> called_off;
  std::chrono::milliseconds stranger_deadline{5000};  // for a connection to prove itself
  bool check_proofs = true;  // tests turn it off, to see that they would notice
  int* strangers = nullptr;  // counts the connections that were dropped
  RankNames names = {};      // where the ranks are those of a group that came of split()
};

// How many descriptors a rank opens at most while it joins `size` ranks over UNIX sockets: one for
// each of the others, and a few.
constexpr std::size_t descriptors_to_join(int size) { return static_cast<std::size_t>(size) + 4; }

Result<std::unique_ptr<Bootstrap>> join_group_with(const GroupId& id, int rank, int size,
                                                   Deadline deadline, const JoinOptions& options);

// One call of join_group_with(), for the two kinds of meeting place.
struct JoinRequest {
  const GroupId& id;
  int rank, size;
  Deadline deadline;
  const JoinOptions& options;
};
Result<std::unique_ptr<Bootstrap>> join_local(const JoinRequest& request);
Result<std::unique_ptr<Bootstrap>> join_tcp(const JoinRequest& request);

// Makes the mesh of proved connections, and its first group.
Result<std::unique_ptr<Bootstrap>> make_socket_group(const JoinRequest& request,
                                                     std::vector<Fd> connections);

}  // namespace tutti
