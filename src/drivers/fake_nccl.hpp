// NCCL for tests: keeps count of communicators, records what was asked, fails on request, moves no
// data.
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <mutex>
#include <string>
#include <vector>

#include "drivers/nccl.hpp"

namespace tutti {

class FakeNccl : public NcclDriver {
 public:
  struct Call {
    std::string name;  // "create", "all_reduce", ...
    int rank = -1;     // of the communicator; -1 where none is involved
    NcclAllReduce all_reduce;
  };

  Result<std::string> version() override { return version_text; }
  Result<NcclId> unique_id() override;
  // Does not wait for the other ranks. Refuses a rank that is there already, or out of range.
  Result<NcclComm> create(const NcclId& id, int rank, int size, Deadline deadline) override;
  Status destroy(NcclComm comm) override;
  Status abort(NcclComm comm) override;
  Status async_error(NcclComm comm) override;
  Status all_reduce(NcclComm comm, const NcclAllReduce& call) override;
  Status group_start() override;
  Status group_end() override;

  // The next call of this name returns `failure`, once.
  void fail_next(const std::string& name, Status failure);
  std::vector<Call> calls() const;
  int open_communicators() const;
  int group_depth() const;

  std::string version_text = "2.28.9";

 private:
  struct Member {  // a communicator is the address of one
    NcclId id;
    int rank = -1;
    bool open = true;
  };
  Member* member_of(NcclComm comm);
  // Records the call. The failure that was asked for, or that `comm` is none that is open.
  Status begin(const std::string& name, NcclComm comm = nullptr, const NcclAllReduce& call = {});
  Status close(const std::string& name, NcclComm comm);

  mutable std::mutex mutex_;
  std::uint64_t next_ = 1;
  int group_depth_ = 0;
  std::deque<Member> members_;  // closed ones stay, so that no address comes back
  std::map<std::string, Status> failures_;
  std::vector<Call> calls_;
};

}  // namespace tutti
