#include "status/blame.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <limits>

namespace tutti::cli {
namespace {

using Ranks = std::vector<int>;

bool in_operation(const RecordedOperation& operation) {
  return operation.unfinished() || operation.state == OperationState::kFailed;
}

// How far a rank has come: twice the number of the operation it is in or comes to next, and one
// more if it is in it.
std::uint64_t position(const Member& member) {
  const RecordedOperation* operation = member.operation();
  if (operation == nullptr) return 2;
  return in_operation(*operation) ? 2 * operation->sequence + 1 : 2 * operation->sequence + 2;
}

bool is_stopped(const Member& member) { return member.is_stopped(); }
bool is_dead(const Member& member) { return member.is_dead(); }
bool is_absent(const Member& member) { return !member.found; }

bool is_told_of_an_end(const Member& member) {
  return member.found && member.found->page.failure &&
         member.found->page.failure->code == StatusCode::kPeerFailed;
}

const RecordedOperation* operation_at(const Member& member, std::uint64_t sequence) {
  if (!member.found) return nullptr;
  const auto& all = member.found->page.operations;
  const auto at = std::find_if(all.begin(), all.end(),
                               [&](const auto& each) { return each.sequence == sequence; });
  return at == all.end() ? nullptr : &*at;
}

bool same_call(const RecordedOperation& a, const RecordedOperation& b) {
  return a.row == b.row && a.count == b.count && a.dtype == b.dtype && a.op == b.op &&
         a.signature == b.signature;
}

class Inquiry {
 public:
  explicit Inquiry(const std::vector<Member>& members) : members_(members) {}

  Ranks suspects() const {
    // The others may have been told of an end while they waited for somebody else.
    const bool told = std::any_of(members_.begin(), members_.end(), is_told_of_an_end);
    Ranks named = those([&](const Member& m) {
      return !waiters_of(m.rank).empty() || is_dead(m) || (told && !m.found);
    });
    if (named.empty()) named = those(is_absent);
    // Who is absent may have given up on one that is stopped, and ended; its record went with it.
    const bool only_absent =
        std::all_of(named.begin(), named.end(), [&](int r) { return is_absent(at(r)); });
    if (Ranks stopped = those(is_stopped); only_absent && !stopped.empty()) return stopped;
    if (!named.empty()) return named;
    std::uint64_t furthest = 0;
    for (const Member& member : members_) furthest = std::max(furthest, position(member));
    return those([&](const Member& m) { return position(m) < furthest; });
  }

  Ranks convict(Ranks suspects) const {
    narrow(suspects, [](const Member& m) { return !m.found || is_stopped(m) || is_dead(m); });
    narrow(suspects, [&](const Member& m) { return odd_call(m) != nullptr; });
    narrow(suspects, [](const Member& m) { return m.waits_for.empty(); });
    std::uint64_t least = std::numeric_limits<std::uint64_t>::max();
    for (const int r : suspects) least = std::min(least, position(at(r)));
    narrow(suspects, [&](const Member& m) { return position(m) == least; });
    std::size_t most = 0;
    for (const int r : suspects) most = std::max(most, waiters_of(r).size());
    narrow(suspects, [&](const Member& m) { return waiters_of(m.rank).size() == most; });
    return suspects;
  }

  Culprit explain(int rank) const {
    const Member& member = at(rank);
    Culprit culprit{.rank = rank, .why = {}};
    auto& why = culprit.why;
    if (!member.found)
      why.emplace_back("there is no record of it: it has ended, or runs elsewhere");
    if (is_stopped(member)) {
      why.push_back(fmt::format("its process ({}) is stopped, SIGCONT wakes it",
                                member.found->page.process_id));
    }
    if (is_dead(member)) {
      why.push_back(
          fmt::format("its process ({}) has ended without a word", member.found->page.process_id));
    }
    if (const RecordedOperation* usual = odd_call(member)) {
      const RecordedOperation* own = operation_at(member, usual->sequence);
      why.push_back(fmt::format("it runs {} ({:08x}), others run {} ({:08x})", to_string(*own),
                                own->signature, to_string(*usual), usual->signature));
    }
    if (member.found) why.push_back(describe_position(member));
    if (const Ranks waiters = waiters_of(rank); !waiters.empty()) {
      why.push_back(fmt::format("waited for by {}", fmt::join(waiters, ", ")));
    }
    return culprit;
  }

 private:
  const Member& at(int rank) const { return members_[static_cast<std::size_t>(rank)]; }

  template <class F>
  Ranks those(F&& holds) const {
    Ranks ranks;
    for (const Member& member : members_) {
      if (holds(member)) ranks.push_back(member.rank);
    }
    return ranks;
  }

  // Keeps those for whom it holds, if there are any.
  template <class F>
  void narrow(Ranks& suspects, F&& holds) const {
    Ranks left;
    for (const int r : suspects) {
      if (holds(at(r))) left.push_back(r);
    }
    if (!left.empty()) suspects = std::move(left);
  }

  Ranks waiters_of(int rank) const {
    return those([&](const Member& m) {
      return m.rank != rank && std::count(m.waits_for.begin(), m.waits_for.end(), rank) > 0;
    });
  }

  // Another rank's call of the same number as this one's last, if more ranks differ from it than
  // agree with it.
  const RecordedOperation* odd_call(const Member& member) const {
    const RecordedOperation* own = member.operation();
    if (own == nullptr) return nullptr;
    int agree = 0, differ = 0;
    const RecordedOperation* other = nullptr;
    for (const Member& peer : members_) {
      const RecordedOperation* theirs = operation_at(peer, own->sequence);
      if (peer.rank == member.rank || theirs == nullptr) continue;
      if (same_call(*own, *theirs)) {
        ++agree;
      } else {
        ++differ;
        other = theirs;
      }
    }
    return differ > agree ? other : nullptr;
  }

  std::string describe_position(const Member& member) const {
    const RecordedOperation* operation = member.operation();
    std::uint64_t furthest = 0;
    for (const Member& peer : members_) furthest = std::max(furthest, position(peer));
    const std::string others =
        position(member) < furthest ? fmt::format(", others have come to #{}", furthest / 2) : "";
    if (operation == nullptr) return "it has begun no operation" + others;
    if (!in_operation(*operation)) {
      return fmt::format("it has not begun #{}{}", operation->sequence + 1, others);
    }
    return fmt::format(
        "it is in #{} and waits for {}{}", operation->sequence,
        member.waits_for.empty() ? "nobody" : fmt::format("{}", fmt::join(member.waits_for, ", ")),
        others);
  }

  const std::vector<Member>& members_;
};

}  // namespace

std::vector<Culprit> blame(const std::vector<Member>& members) {
  const Inquiry inquiry(members);
  std::vector<Culprit> culprits;
  for (const int rank : inquiry.convict(inquiry.suspects())) {
    culprits.push_back(inquiry.explain(rank));
  }
  return culprits;
}

}  // namespace tutti::cli
