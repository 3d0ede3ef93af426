// A Bootstrap that pretends: ranks on threads say that they live in several processes, exchanges
// are counted, and one of them can be delayed, or lie.
#pragma once

#include <functional>
#include <memory>
#include <utility>
#include <vector>

#include "bootstrap/bootstrap.hpp"

namespace tutti::test {

class BootstrapShim final : public Bootstrap {
 public:
  // `process_of[r]`: which process rank r says it lives in.
  BootstrapShim(std::unique_ptr<Bootstrap> inner, const std::vector<int>& process_of)
      : inner_(std::move(inner)), identities_(inner_->identities()) {
    for (std::size_t rank = 0; rank < identities_.size(); ++rank) {
      identities_[rank].process_token = 1000 + process_of[rank];
      identities_[rank].process_id = 1000 + process_of[rank];
    }
  }

  int exchanges = 0;                // all_gather and exchange_descriptors so far
  std::function<void(int)> before;  // called with the number of the exchange that starts
  // Called before this rank is told of a failure. To be set before its communicator is made.
  std::function<void()> before_failure;
  bool descriptors = true;  // whether the group can pass them
  // What this rank sends instead of what it should. Empty: the truth.
  std::function<Bytes(Bytes)> instead_of;
  std::function<void(std::vector<int>&)> instead_of_descriptors;
  std::vector<PeerIdentity>& pretended() { return identities_; }

  int rank() const override { return inner_->rank(); }
  int size() const override { return inner_->size(); }
  const std::vector<PeerIdentity>& identities() const override { return identities_; }
  Digest prove(ByteView statement) const override { return inner_->prove(statement); }
  RankNames names() const override { return inner_->names(); }
  void found() override { inner_->found(); }
  Result<std::vector<Bytes>> all_gather(ByteView mine, Deadline deadline) override {
    count();
    if (!instead_of) return inner_->all_gather(mine, deadline);
    return inner_->all_gather(instead_of(to_bytes(mine)), deadline);
  }
  Result<std::vector<std::vector<Fd>>> exchange_descriptors(
      const std::vector<std::vector<int>>& outgoing, Deadline deadline) override {
    count();
    if (!descriptors) return Status(StatusCode::kUnsupported, "pretends to pass no descriptors");
    std::vector<std::vector<int>> sent = outgoing;
    for (auto& to_one : sent) {
      if (instead_of_descriptors) instead_of_descriptors(to_one);
    }
    return inner_->exchange_descriptors(sent, deadline);
  }
  bool passes_descriptors() const override { return descriptors && inner_->passes_descriptors(); }
  Result<std::unique_ptr<Bootstrap>> split(int color, int key, Deadline deadline) override {
    return inner_->split(color, key, deadline);
  }
  Result<std::vector<int>> shrink(const ShrinkLimits& limits, const ShrinkCreate& create) override {
    return inner_->shrink(limits, create);
  }
  void set_failure_handler(FailureHandler handler) override {
    if (!handler || !before_failure) return inner_->set_failure_handler(std::move(handler));
    inner_->set_failure_handler([=, this](const GroupFailure& failure) {
      before_failure();
      handler(failure);
    });
  }
  std::optional<GroupFailure> first_failure() const override { return inner_->first_failure(); }
  void announce_failure(const GroupFailure& failure) override { inner_->announce_failure(failure); }
  void leave(std::string_view last) override { inner_->leave(last); }
  void set_leave_handler(LeaveHandler handler) override {
    inner_->set_leave_handler(std::move(handler));
  }
  int departed() const override { return inner_->departed(); }

 private:
  void count() {
    if (before) before(exchanges);
    ++exchanges;
  }

  std::unique_ptr<Bootstrap> inner_;
  std::vector<PeerIdentity> identities_;
};

}  // namespace tutti::test
