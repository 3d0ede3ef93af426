// The ranks of one process: a message goes straight into the receiver's inbox.
#include "bootstrap/group_view.hpp"
#include "bootstrap/identity.hpp"

namespace tutti {
namespace {

class InProcessMesh final : public Mesh {
 public:
  using Inboxes = std::vector<std::shared_ptr<Inbox>>;

  InProcessMesh(Inboxes inboxes, int rank) : inboxes_(std::move(inboxes)), rank_(rank) {}

  int rank() const override { return rank_; }
  int size() const override { return static_cast<int>(inboxes_.size()); }
  Inbox& inbox() override { return *inboxes_[rank_]; }

  void send(int to, Message message) override {
    const Status delivered = inboxes_[to]->deliver(rank_, std::move(message));
    if (!delivered.is_ok()) inboxes_[to]->peer_gone(rank_, delivered.message());
  }

  std::vector<int> flush(const std::vector<int>&, Deadline) override { return {}; }
  bool catch_up(Deadline) override { return true; }
  bool carries_descriptors() const override { return true; }
  const Digest& secret() const override { return secret_; }

 private:
  const Inboxes inboxes_;  // of all ranks; they outlive the ranks
  const int rank_;
  const Digest secret_{};  // nobody else can reach this memory
};

}  // namespace

std::vector<std::unique_ptr<Bootstrap>> make_in_process_group(int size) {
  InProcessMesh::Inboxes inboxes;
  GroupView::Members members{kHelloGroup + 1, {}, std::vector<PeerIdentity>(size, this_process())};
  members.ranks.reserve(size);
  for (int r = 0; r < size; ++r) {
    inboxes.push_back(std::make_shared<Inbox>(r, size));
    members.ranks.push_back(r);
  }
  std::vector<std::unique_ptr<Bootstrap>> group;
  group.reserve(size);
  for (int r = 0; r < size; ++r) {
    group.push_back(
        std::make_unique<GroupView>(std::make_shared<InProcessMesh>(inboxes, r), members));
  }
  return group;
}

}  // namespace tutti
