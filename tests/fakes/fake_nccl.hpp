// NCCL for tests: keeps count of communicators, records what was asked, fails on request, moves no
// data. Operations may take their time: until every rank has called them, or for ever.
#pragma once

#include <atomic>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
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
    NcclReduction reduction;
    NcclAllGather all_gather;
    NcclBroadcast broadcast;
    NcclExchange exchange;
    NcclPieces pieces;
    NcclMover mover = NcclMover::kKernels;  // of the communicator
    bool in_windows = false;  // both buffers, so that NCCL takes its symmetric kernels
  };

  Result<std::string> version() override { return version_text; }
  int version_number() override { return version_code; }
  Result<NcclId> unique_id() override;
  // Refuses a rank that is there already, or out of range.
  Result<NcclComm> create(const NcclMember& member, Deadline deadline,
                          const GiveUp& give_up = nullptr) override;
  Status destroy(NcclComm comm) override;
  Status abort(NcclComm comm) override;
  Status interrupt(NcclComm comm) override;
  Status async_error(NcclComm comm) override;
  Status all_reduce(NcclComm comm, const NcclReduction& call) override;
  Status all_gather(NcclComm comm, const NcclAllGather& call) override;
  Status reduce_scatter(NcclComm comm, const NcclReduction& call) override;
  Status reduce(NcclComm comm, const NcclReduction& call) override;
  Status broadcast(NcclComm comm, const NcclBroadcast& call) override;
  Status exchange(NcclComm comm, const NcclExchange& call) override;
  Status move_pieces(NcclComm comm, const NcclPieces& call) override;
  // Returns when every rank has called as often: hangs where one has failed, as the real one does.
  Result<NcclWindow> register_window(NcclComm comm, std::byte* base, std::size_t bytes) override;
  Status deregister_window(NcclComm comm, NcclWindow window) override;
  Status group_start() override;
  Status group_end() override;

  // The next call of this name (of this rank; -1: of any) returns `failure`, once.
  void fail_next(const std::string& name, Status failure, int rank = -1);
  std::vector<Call> calls() const;
  int open_communicators() const;
  int group_depth() const;

  // Communicators that were ended while another call with them was under way.
  int ended_in_use() const;

  int open_windows() const;
  // Those that were still there when their communicator was destroyed (abort() takes them along).
  int windows_left_behind() const;

  std::string version_text = "2.29.7";
  std::atomic<int> version_code{22907};
  // Asked about each window that is about to end.
  std::function<void(const std::byte* base)> on_deregister;
  // Where operations run: each is put on its stream as something that has ended once the gate is
  // true. Unset: they end at once.
  using Gate = std::shared_ptr<std::atomic<bool>>;
  std::function<void(Stream, Gate)> on_stream;
  std::atomic<bool> hold_create{false};   // create() waits for ranks that do not come
  std::atomic<bool> hold_calls{false};    // operations block until they are interrupted
  std::atomic<bool> hold_endings{false};  // destroy() and abort() block, with the device at peace
  std::atomic<bool> can_interrupt{true};

 private:
  struct Window {
    NcclWindow handle;
    const std::byte* base;
    std::size_t bytes;
  };
  struct Member : NcclMember {  // a communicator is the address of one
    bool open = true;
    bool interrupted = false;
    int under_way = 0;        // calls
    std::vector<Gate> gates;  // of its operations, in order
    std::vector<Window> windows;
    int registrations = 0;  // begun
  };
  Member* member_of(NcclComm comm);
  // Records the call. The failure that was asked for, or that `comm` is none that is open.
  // `rank`: whose call it is, where there is no communicator yet.
  Status begin(const std::string& name, NcclComm comm = nullptr, const NcclReduction& call = {},
               int rank = -1);
  Status close(const std::string& name, NcclComm comm);
  // What operations have in common, once they are recorded.
  Status run(std::unique_lock<std::mutex>& lock, const std::string& name, NcclComm comm,
             Stream stream);
  void enqueue(Member& member, Stream stream);
  bool all_register(const Member& member, int count) const;
  static bool in_windows(const Member& member, const void* input, const void* output);
  static void end_operations(Member& member);

  mutable std::mutex mutex_;
  std::uint64_t next_ = 1;
  int group_depth_ = 0;
  int ended_in_use_ = 0;
  int windows_left_behind_ = 0;
  std::deque<char> handles_;    // of windows, by address
  std::deque<Member> members_;  // closed ones stay, so that no address comes back
  std::map<std::pair<std::string, int>, Status> failures_;  // by name and rank
  std::vector<Call> calls_;
};

}  // namespace tutti
