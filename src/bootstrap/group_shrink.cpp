// Of a group, the ranks that are left: runs a ShrinkAgreement over the connections that there are.
#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <utility>

#include "base/guard.hpp"
#include "base/try.hpp"
#include "bootstrap/group_view.hpp"
#include "bootstrap/identity.hpp"
#include "bootstrap/shrink_agreement.hpp"

namespace tutti {
namespace {

// Every member derives the same id; of no other proposal, as its nonce is random.
std::uint64_t survivors_group_id(std::uint64_t parent, const ShrinkBallot& ballot,
                                 const std::vector<std::int32_t>& members) {
  Sha256 hash;
  hash.add(view_of("tutti survivors")).add(view_of(parent));
  hash.add(view_of(ballot.round)).add(view_of(ballot.coordinator)).add(view_of(ballot.nonce));
  hash.add(std::as_bytes(std::span(members)));
  return first_word(hash.finish());
}

}  // namespace

// One call of shrink().
class GroupShrink {
 public:
  GroupShrink(GroupView& group, const Bootstrap::ShrinkLimits& limits,
              const Bootstrap::ShrinkCreate& create, std::uint64_t nonce)
      : group_(group),
        create_(create),
        patience_(limits.patience),
        agreement_({.self = group.rank_,
                    .size = group.size(),
                    .within = limits.within,
                    .patience = limits.patience,
                    .round = group.shrink_round_,
                    .nonce = nonce},
                   Deadline::Clock::now()) {
    for (const int rank : group.shrink_excluded_) agreement_.has_excluded(rank);
  }

  Result<std::vector<int>> run() {
    using Step = ShrinkAgreement::Step;
    Status broken;
    for (Step step = look(); step != Step::kDone && broken.is_ok(); step = look()) {
      if (step == Step::kWait) wait();
      if (step == Step::kFence) broken = fence();
      if (step == Step::kCreate) broken = create();
    }
    if (!broken.is_ok()) {
      agreement_.give_up({broken.code(), broken.message()});
      send();
    }
    group_.shrink_round_ = agreement_.round();
    const Status ended = broken.is_ok() ? outcome() : broken;
    if (!ended.is_ok()) {
      abandon();
      return ended;
    }
    std::vector<int> missing;
    const auto& members = agreement_.members();
    for (int rank = 0; rank < group_.size(); ++rank) {
      if (!std::binary_search(members.begin(), members.end(), rank)) missing.push_back(rank);
    }
    return missing;
  }

 private:
  Mesh& mesh() const { return *group_.mesh_; }
  int member(int rank) const { return group_.members_.ranks[static_cast<std::size_t>(rank)]; }

  ShrinkAgreement::Step look() {
    take_news();
    const auto step = agreement_.look(Deadline::Clock::now());
    send();
    return step;
  }

  void take_news() {
    const auto news = mesh().inbox().take_shrink_news(group_.members_.group);
    const auto now = Deadline::Clock::now();
    for (const auto& [from, payload] : news.messages) {
      const auto message = decode_shrink_message(*payload, group_.size());
      if (message.is_ok()) agreement_.take(from, *message, now);
      if (!message.is_ok()) agreement_.lost(from);  // it is no tutti
    }
    for (const int rank : news.lost) {
      if (rank != group_.rank_) agreement_.lost(rank);
    }
    lost_ = news.lost.size();
    if (news.excluded_by >= 0) agreement_.was_excluded();
  }

  void send() {
    for (const auto& [to, excludes, message] : agreement_.take_outgoing()) {
      Message frame = group_.message(excludes ? FrameKind::kExclude : FrameKind::kShrink);
      if (excludes) {
        group_.shrink_excluded_.push_back(to);
        told_.push_back(to);
      } else {
        frame.payload = std::make_shared<const Bytes>(encode(message));
      }
      mesh().send(member(to), std::move(frame));
    }
  }

  void wait() const {
    const auto left = agreement_.until() - Deadline::Clock::now();
    mesh().inbox().await_shrink_news(group_.members_.group, lost_, Deadline(left));
  }

  bool on_this_host(int rank) const {
    const auto& identities = group_.members_.identities;
    return identities[static_cast<std::size_t>(rank)].host_id ==
           identities[static_cast<std::size_t>(group_.rank_)].host_id;
  }

  Status meet_what_was_sent(const std::vector<int>& told, const std::vector<int>& ranks) {
    const Deadline deadline(patience_);
    std::vector<int> blocked;
    for (const int i : mesh().flush(told, deadline)) {
      blocked.push_back(ranks[static_cast<std::size_t>(i)]);
    }
    if (!blocked.empty()) {
      return {StatusCode::kTimeout,
              fmt::format("shrink: {} did not answer, and cannot be told that the group goes on "
                          "without it, since nothing that was sent to it is read: end that "
                          "process, and call again",
                          group_.names().of(blocked))};
    }
    if (mesh().catch_up(deadline)) return Status::ok();
    return {StatusCode::kTimeout, "shrink: this process did not read its connections in time"};
  }

  // On one host what was sent has arrived: of two ranks that exclude each other, one sees it here.
  Status fence() {
    std::vector<int> told;  // here, and yet to be reached
    std::vector<int> ranks;
    for (const int rank : std::exchange(told_, {})) {
      if (!on_this_host(rank)) continue;
      told.push_back(member(rank));
      ranks.push_back(rank);
    }
    if (!told.empty()) TUTTI_TRY(meet_what_was_sent(told, ranks));
    take_news();
    agreement_.fenced();
    send();
    return Status::ok();
  }

  Status create() {
    abandon();
    GroupView::Members survivors{
        survivors_group_id(group_.members_.group, agreement_.ballot(), agreement_.members()),
        {},
        {}};
    std::vector<int> ranks;
    for (const int rank : agreement_.members()) {
      ranks.push_back(rank);
      survivors.ranks.push_back(member(rank));
      survivors.identities.push_back(group_.members_.identities[static_cast<std::size_t>(rank)]);
    }
    survivors.names = group_.names().split(ranks);
    created_ = survivors;
    auto view = std::make_unique<GroupView>(group_.mesh_, std::move(survivors));
    mesh().inbox().watch_creation(group_.members_.group, created_->group);
    const Status made = guarded([&] { return create_(std::move(view)); });
    mesh().inbox().watch_creation(group_.members_.group, 0);
    take_news();
    agreement_.created({made.code(), made.message()}, Deadline::Clock::now());
    send();
    return Status::ok();
  }

  // Who has returned with that group, since it missed what made the others leave it, learns that
  // they have gone on.
  void abandon() {
    if (!created_) return;
    for (const int other : created_->ranks) {
      if (other == mesh().rank()) continue;
      mesh().send(other, {.kind = FrameKind::kExclude, .group = created_->group});
    }
    created_.reset();
  }

  Status outcome() const {
    const auto& [code, text] = agreement_.outcome();
    if (code == StatusCode::kOk || !text.empty()) return {code, text};
    return mesh().inbox().exclusion(group_.members_.group);
  }

  GroupView& group_;
  const Bootstrap::ShrinkCreate& create_;
  const std::chrono::nanoseconds patience_;
  ShrinkAgreement agreement_;
  std::size_t lost_ = 0;
  std::vector<int> told_;  // that they are excluded
  std::optional<GroupView::Members> created_;
};

Result<std::vector<int>> GroupView::shrink(const ShrinkLimits& limits, const ShrinkCreate& create) {
  TUTTI_ASSIGN(const Digest random, random_digest());
  return GroupShrink(*this, limits, create, first_word(random)).run();
}

}  // namespace tutti
