// How the ranks of one group exchange bytes and descriptors before (and beside) any collective, and
// how each learns that a peer is gone.
//
// A Bootstrap is a group's view of connections that are made once: split() gives a sub-group the
// same connections under another group id. Calls marked "collective" are made by every member, in
// the same order. A call from two threads at once on one Bootstrap is an error of the caller; use
// of different groups over the same connections from different threads is fine.
//
// Failures are final: once a member is gone, has announced a failure, or a collective call of this
// rank has failed, every later one returns that failure (but for a lack of descriptors, see there).
// A call refused with kInvalidArgument did nothing and changes nothing. Destroying a Bootstrap
// leaves its group.
#pragma once

#include <array>
#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/bytes.hpp"
#include "base/deadline.hpp"
#include "base/fd.hpp"
#include "bootstrap/rank_names.hpp"
#include "bootstrap/sha256.hpp"
#include "tutti/status.hpp"

namespace tutti {

// What a peer is to this rank; fixed when the group is made.
struct PeerIdentity {
  std::uint64_t host_id = 0;  // equal where two ranks share a kernel (boot id + namespace)
  std::int64_t process_id = 0;
  std::uint64_t process_token = 0;  // random per process: equal only for ranks of one process
  // Of the folder where ranks of one host meet: equal where two ranks see the same one.
  std::uint64_t folder_id = 0;
  // In clock ticks since the host's boot: tells apart two processes of one number. 0: unknown.
  std::uint64_t process_start = 0;
  // What its host calls itself, for texts: cut, and ended by a zero.
  std::array<char, 64> host = {};
};

// A failure as it is told to the group: who it is about, and rule 5's text.
struct GroupFailure {
  int rank = -1;  // the rank that failed (not the one that noticed)
  StatusCode code = StatusCode::kPeerFailed;
  std::string text;
};

class Bootstrap {
 public:
  using FailureHandler = std::function<void(const GroupFailure&)>;

  virtual ~Bootstrap() = default;

  virtual int rank() const = 0;
  virtual int size() const = 0;
  virtual const std::vector<PeerIdentity>& identities() const = 0;

  // What proves a statement to be of this group: ranks compute it alike, and no stranger can, who
  // does not know the secret. In one process nobody else has to be kept out: the statement itself
  // has to be secret there.
  virtual Digest prove(ByteView statement) const = 0;

  // For every text that names a rank of this group.
  virtual RankNames names() const = 0;
  // To be called once nothing can fail any more that belongs to the split() this group came of: its
  // texts have the numbers of the group that was split until then, and its own ones afterwards.
  virtual void found() = 0;

  // Collective. Element r of the answer is what rank r gave; lengths may differ, at most
  // kMaxMessageBytes each. kTimeout names the ranks that were not heard from.
  virtual Result<std::vector<Bytes>> all_gather(ByteView mine, Deadline deadline) = 0;

  // Collective. Rank r receives what every rank addressed to r: `outgoing[r]` goes to rank r (any
  // of them may be empty). Only among ranks of one host; descriptors are duplicated, the caller
  // keeps its own. At most kMaxDescriptors from one rank to one other. Element r of the answer is
  // what rank r sent here. kUnsupported where passes_descriptors() is false. kResourceExhausted
  // names a rank that may open no more: one that could send none on every rank, one that could take
  // none on that rank alone, which tells the others. The group goes on.
  virtual Result<std::vector<std::vector<Fd>>> exchange_descriptors(
      const std::vector<std::vector<int>>& outgoing, Deadline deadline) = 0;

  // Whether every rank can send descriptors to every other: not from host to host, nor over TCP
  // between containers that share no folder. The same on every rank.
  virtual bool passes_descriptors() const = 0;

  // Collective. Groups by colour, ordered by (key, rank). A negative colour takes part and gets
  // null.
  virtual Result<std::unique_ptr<Bootstrap>> split(int color, int key, Deadline deadline) = 0;

  // Of the ranks that are left, typically once the group has failed: they agree on who goes on, and
  // make a group of them (protocols.md, "Who survives"). `create` is called with the group, maybe
  // several times, each time with another one: ranks may be lost meanwhile. It says whether what
  // belongs to the group could be made of it; what it made of the one before is of no use any more.
  // Whoever returns success may rely on the last one: all members have made theirs. The answer is
  // who is missing, ascending.
  //
  // kPeerFailed: others have gone on without this rank, now or before. Any other failure is that of
  // `create`, or of this rank alone; the ranks may try again. Not collective: this group's own
  // failure does not matter, and a rank that does not call in time is missing.
  struct ShrinkLimits {
    std::chrono::nanoseconds within;    // for ranks to answer
    std::chrono::nanoseconds patience;  // for a step of a rank that has; `create` is one
  };
  using ShrinkCreate = std::function<Status(std::unique_ptr<Bootstrap> survivors)>;
  virtual Result<std::vector<int>> shrink(const ShrinkLimits& limits,
                                          const ShrinkCreate& create) = 0;

  // Called from a thread of the bootstrap, one call at a time, when a member's process ends without
  // leave(), and for what members announce: the first is the group's failure, later ones are other
  // members' accounts of it. Set before the first operation; the handler must not call back into
  // this Bootstrap. After clear (nullptr) no call is in progress.
  virtual void set_failure_handler(FailureHandler handler) = 0;

  // The first of them, as soon as it ends collectives of this group: those that wait may end before
  // the handler has been called.
  virtual std::optional<GroupFailure> first_failure() const = 0;

  // Tells every other member; never blocks longer than a second; safe from any thread.
  virtual void announce_failure(const GroupFailure& failure) = 0;

  // Says goodbye: the end of this process is no failure of this group any more. Never blocks.
  // `last` tells the others when that was ("after all_reduce/ring #41 (...)", at most 4 KiB), and
  // that everything this rank will ever send has been sent; empty: nothing is said of that.
  virtual void leave(std::string_view last) = 0;

  // Called like the failure handler, behind failures that were told before, for each member that
  // leaves and says when.
  using LeaveHandler = std::function<void(int rank, const std::string& last)>;
  virtual void set_leave_handler(LeaveHandler handler) = 0;

  // The lowest member that has said goodbye, or -1.
  virtual int departed() const = 0;

  static constexpr std::size_t kMaxMessageBytes = 16 * 1024 * 1024;
  static constexpr std::size_t kMaxDescriptors = 253;

  // Collective, from all_gather.
  Status barrier(Deadline deadline) { return all_gather({}, deadline).status(); }
};

// What a group is made from. Travels as text through a file, a pipe, or MPI.
// Layout is private to bootstrap; `secret` proves membership and is never logged.
class GroupId {
 public:
  static Result<GroupId> local();  // one host; UNIX sockets only
  // Port 0: a free one of this machine, which is held until rank 0 listens there (held_ports.hpp).
  static Result<GroupId> tcp(std::string host, std::uint16_t port);
  static Result<GroupId> from_text(std::string_view text);
  std::string to_text() const;  // printable ASCII, at most 127 characters

  bool is_local() const { return is_local_; }
  const std::string& address() const { return address_; }  // directory name, or host:port
  const std::array<std::byte, 32>& secret() const { return secret_; }

 private:
  friend Result<GroupId> group_id_from(bool, std::string, std::array<std::byte, 32>);
  bool is_local_ = true;
  std::string address_;
  std::array<std::byte, 32> secret_{};
};
Result<GroupId> group_id_from(bool is_local, std::string address, std::array<std::byte, 32> secret);

// Collective over the `size` ranks that hold the same id.
Result<std::unique_ptr<Bootstrap>> join_group(const GroupId& id, int rank, int size,
                                              Deadline deadline);

// All ranks of a group that lives in one process, without sockets. Element r is rank r's.
std::vector<std::unique_ptr<Bootstrap>> make_in_process_group(int size);

// Rank, size and rendezvous as a launcher's variables give them (torchrun, Open MPI, SLURM, PMI,
// tutti's own). kUnavailable lists what was looked for.
struct LaunchEnvironment {
  std::string launcher;  // "torchrun", "openmpi", "slurm", "pmi", "tutti"
  int rank = 0, size = 1;
  int local_rank = 0, local_size = 1;
  std::string job;  // distinguishes jobs of one user on one host
  // For texts: the variables that hold the numbers above, "RANK", "WORLD_SIZE", "LOCAL_WORLD_SIZE",
  // and what the job is known by: "MASTER_ADDR:MASTER_PORT (127.0.0.1:29500)", empty where nothing.
  std::string rank_variable, size_variable, local_size_variable, job_variables;
  bool single_host() const { return local_size == size; }
};
Result<LaunchEnvironment> read_launch_environment(const std::vector<std::string>& environment);
Result<std::unique_ptr<Bootstrap>> join_group_from_environment(const LaunchEnvironment&,
                                                               Deadline deadline);

// The launcher's side of `tutti bench --ranks N`: an inherited descriptor that holds a group id.
Result<Fd> group_id_descriptor(const GroupId& id);  // a sealed memfd
Result<GroupId> group_id_from_descriptor(int fd);

}  // namespace tutti
