// A Bootstrap over a mesh: its members, its group id, and the number of its next call. All kinds of
// groups are this one class; what differs is the mesh below.
#pragma once

#include <atomic>
#include <memory>
#include <vector>

#include "bootstrap/mesh.hpp"

namespace tutti {

class GroupView final : public Bootstrap {
 public:
  struct Members {
    std::uint64_t group = 0;
    std::vector<int> ranks;                // of the mesh, by rank of the group
    std::vector<PeerIdentity> identities;  // by rank of the group
    RankNames names = {};
    std::uint64_t split_from = 0;  // a group; 0: none
  };
  GroupView(std::shared_ptr<Mesh> mesh, Members members);
  ~GroupView() override;

  int rank() const override { return rank_; }
  int size() const override { return static_cast<int>(members_.ranks.size()); }
  const std::vector<PeerIdentity>& identities() const override { return members_.identities; }
  Digest prove(ByteView statement) const override;
  RankNames names() const override { return mesh_->inbox().names(members_.group); }
  void found() override;

  Result<std::vector<Bytes>> all_gather(ByteView mine, Deadline deadline) override;
  Result<std::vector<std::vector<Fd>>> exchange_descriptors(
      const std::vector<std::vector<int>>& outgoing, Deadline deadline) override;
  bool passes_descriptors() const override;
  Result<std::unique_ptr<Bootstrap>> split(int color, int key, Deadline deadline) override;
  Result<std::vector<int>> shrink(const ShrinkLimits& limits, const ShrinkCreate& create) override;
  void set_failure_handler(FailureHandler handler) override;
  std::optional<GroupFailure> first_failure() const override;
  void announce_failure(const GroupFailure& failure) override;
  void leave(std::string_view last) override;
  void set_leave_handler(LeaveHandler handler) override;
  int departed() const override;

 private:
  friend class GroupShrink;

  Message message(FrameKind kind) const;
  // Ends a collective call: its messages, or the failure that this group has from now on.
  Result<std::vector<Message>> finish(FrameKind kind, Deadline deadline);
  Result<std::vector<std::vector<Fd>>> exchange_beside(
      const std::vector<std::vector<int>>& outgoing, Deadline deadline);
  Result<Bytes> agree_on_place(Deadline deadline);
  Status open_side_group(ByteView address, Deadline deadline);

  const std::shared_ptr<Mesh> mesh_;
  const Members members_;
  int rank_ = -1;
  std::uint64_t sequence_ = 0, splits_ = 0;
  std::uint32_t shrink_round_ = 0;    // the highest that was seen
  std::vector<int> shrink_excluded_;  // by this rank, for good
  Status broken_;                     // of the first collective call that failed
  std::atomic<bool> left_ = false;
  // UNIX connections between the same ranks, where those of the mesh carry no descriptors.
  std::unique_ptr<Bootstrap> side_;
};

}  // namespace tutti
