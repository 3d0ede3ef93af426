// A bootstrap that counts what it exchanges. The groups it is split into count nothing.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <utility>

#include "bootstrap/bootstrap.hpp"

namespace tutti {

class CountedBootstrap final : public Bootstrap {
 public:
  // `exchanges` outlives this.
  CountedBootstrap(std::unique_ptr<Bootstrap> counted, std::atomic<std::uint64_t>& exchanges)
      : counted_(std::move(counted)), exchanges_(exchanges) {}

  int rank() const override { return counted_->rank(); }
  int size() const override { return counted_->size(); }
  const std::vector<PeerIdentity>& identities() const override { return counted_->identities(); }
  Digest prove(ByteView statement) const override { return counted_->prove(statement); }
  RankNames names() const override { return counted_->names(); }
  void found() override { counted_->found(); }

  Result<std::vector<Bytes>> all_gather(ByteView mine, Deadline deadline) override {
    ++exchanges_;
    return counted_->all_gather(mine, deadline);
  }
  Result<std::vector<std::vector<Fd>>> exchange_descriptors(
      const std::vector<std::vector<int>>& outgoing, Deadline deadline) override {
    ++exchanges_;
    return counted_->exchange_descriptors(outgoing, deadline);
  }
  Result<std::unique_ptr<Bootstrap>> split(int color, int key, Deadline deadline) override {
    ++exchanges_;
    return counted_->split(color, key, deadline);
  }

  Result<std::vector<int>> shrink(const ShrinkLimits& limits, const ShrinkCreate& create) override {
    ++exchanges_;
    return counted_->shrink(limits, create);
  }

  bool passes_descriptors() const override { return counted_->passes_descriptors(); }
  void set_failure_handler(FailureHandler handler) override {
    counted_->set_failure_handler(std::move(handler));
  }
  std::optional<GroupFailure> first_failure() const override { return counted_->first_failure(); }
  void announce_failure(const GroupFailure& failure) override {
    counted_->announce_failure(failure);
  }
  void leave(std::string_view last) override { counted_->leave(last); }
  void set_leave_handler(LeaveHandler handler) override {
    counted_->set_leave_handler(std::move(handler));
  }
  int departed() const override { return counted_->departed(); }

 private:
  std::unique_ptr<Bootstrap> counted_;
  std::atomic<std::uint64_t>& exchanges_;
};

}  // namespace tutti
