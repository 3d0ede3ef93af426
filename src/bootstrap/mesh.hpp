// What carries messages between the ranks that were connected once. Two kinds: sockets between
// processes, and plain calls between the ranks of one process. Groups are views on it.
#pragma once

#include <memory>
#include <vector>

#include "bootstrap/bootstrap.hpp"
#include "bootstrap/frame.hpp"
#include "bootstrap/inbox.hpp"
#include "bootstrap/sha256.hpp"

namespace tutti {

class Mesh {
 public:
  Mesh();
  virtual ~Mesh() = default;

  virtual int rank() const = 0;
  virtual int size() const = 0;
  virtual Inbox& inbox() = 0;

  // Hands a message over for delivery, in order per receiver; to itself too. Never blocks; a peer
  // that is gone is noticed by the inbox.
  virtual void send(int to, Message message) = 0;
  // Waits until what was sent to `members` has left this process. The places in `members` of those
  // that have not taken it by then; none is success.
  virtual std::vector<int> flush(const std::vector<int>& members, Deadline deadline) = 0;

  // Once it returns true the inbox has all that ranks of this host have sent here before the call.
  virtual bool catch_up(Deadline deadline) = 0;

  virtual bool carries_descriptors() const = 0;
  // What both ends of every connection know and no stranger does.
  virtual const Digest& secret() const = 0;
  // True in a forked child: its threads are not there and its connections are the parent's. Nothing
  // may be used, or even destroyed.
  bool lost_in_fork() const;

 private:
  const int owner_;  // the process that made it
};

// The group in which ranks tell each other who they are, or why no group came about.
inline constexpr std::uint64_t kHelloGroup = 1;

// A group of all ranks of `mesh`. Collective: the ranks tell each other who they are. `names`,
// where the mesh is made for a group that came of split().
Result<std::unique_ptr<Bootstrap>> make_root_group(std::shared_ptr<Mesh> mesh, Deadline deadline,
                                                   const RankNames& names = {});

}  // namespace tutti
