#include "status/verdict.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <map>

#include "base/names.hpp"
#include "status/blame.hpp"

namespace tutti::cli {
namespace {

constexpr Name<Activity> kActivities[] = {
    {Activity::kAbsent, "absent"},   {Activity::kIdle, "idle"},     {Activity::kBusy, "busy"},
    {Activity::kWaiting, "waiting"}, {Activity::kFailed, "failed"}, {Activity::kLeft, "left"}};
constexpr Name<Health> kHealths[] = {{Health::kHealthy, "healthy"},
                                     {Health::kIncomplete, "incomplete"},
                                     {Health::kWaiting, "waiting"},
                                     {Health::kFailed, "failed"}};

Activity activity_of(const Snapshot& page) {
  if (page.failure) return Activity::kFailed;
  if (page.closed) return Activity::kLeft;
  const RecordedOperation* operation = page.current();
  if (operation == nullptr || !operation->unfinished()) return Activity::kIdle;
  return page.waits_for.empty() ? Activity::kBusy : Activity::kWaiting;
}

// Since the rank's state has been what it is.
double seconds_in(const Snapshot& page, std::uint64_t now_ns) {
  std::uint64_t since = page.opened_ns;
  if (const RecordedOperation* operation = page.current()) {
    since = operation->ended_ns != 0 ? operation->ended_ns : operation->started_ns;
  }
  return now_ns <= since ? 0 : static_cast<double>(now_ns - since) * 1e-9;
}

Member member_of(const FoundPage& found, std::uint64_t now_ns) {
  Member member{.rank = found.page.rank, .found = found};
  member.activity = activity_of(found.page);
  member.seconds = seconds_in(found.page, now_ns);
  if (member.activity == Activity::kWaiting || member.activity == Activity::kFailed) {
    member.waits_for = found.page.waits_for;
  }
  return member;
}

// Whether a rank has no page that should have one on the hosts whose pages are here. A group that
// has only just been made is still writing its first ones.
bool lacks_pages(std::span<const FoundPage> pages, std::uint64_t now_ns) {
  constexpr std::uint64_t kYoungNs = 5'000'000'000;
  std::map<std::uint64_t, int> ranks_on;  // by host
  bool young = true;
  for (const FoundPage& found : pages) {
    ranks_on[found.page.host_id] = found.page.ranks_here;
    young = young && found.page.operations.empty() && now_ns < found.page.opened_ns + kYoungNs;
  }
  int expected = 0;
  for (const auto& [host, ranks] : ranks_on) expected += ranks;
  return !young && static_cast<int>(pages.size()) < expected;
}

Health health_of(const Verdict& verdict, double patience, bool lacks_pages) {
  Health health = lacks_pages ? Health::kIncomplete : Health::kHealthy;
  for (const Member& member : verdict.members) {
    if (member.activity == Activity::kFailed) return Health::kFailed;
    if (member.is_stopped() || member.is_dead()) health = std::max(health, Health::kIncomplete);
    const bool under_way =
        member.activity == Activity::kBusy || member.activity == Activity::kWaiting;
    if (under_way && member.seconds >= patience) health = Health::kWaiting;
  }
  return health;
}

std::optional<int> first_failed(const std::vector<Member>& members) {
  std::optional<int> first;
  std::uint64_t at = 0;
  for (const Member& member : members) {
    if (!member.found || !member.found->page.failure) continue;
    const std::uint64_t failed_at = member.found->page.failure->at_ns;
    if (first && at <= failed_at) continue;
    first = member.rank;
    at = failed_at;
  }
  return first;
}

Verdict judge_group(std::span<const FoundPage> pages, const Jury& jury) {
  std::uint64_t now_ns = 0;
  for (const FoundPage& found : pages) now_ns = std::max(now_ns, found.page.last_ns);
  now_ns = jury.now_ns.value_or(now_ns);
  Verdict verdict{.group = pages.front().page.group};
  verdict.members.resize(static_cast<std::size_t>(pages.front().page.ranks));
  for (std::size_t r = 0; r < verdict.members.size(); ++r) {
    verdict.members[r].rank = static_cast<int>(r);
  }
  for (const FoundPage& found : pages) {
    const auto r = static_cast<std::size_t>(found.page.rank);
    if (r < verdict.members.size()) verdict.members[r] = member_of(found, now_ns);
  }
  verdict.health = health_of(verdict, std::chrono::duration<double>(jury.patience).count(),
                             lacks_pages(pages, now_ns));
  verdict.first_failed = first_failed(verdict.members);
  if (verdict.health != Health::kHealthy) verdict.culprits = blame(verdict.members);
  return verdict;
}

}  // namespace

std::string_view to_string(Activity activity) { return name_of<Activity>(kActivities, activity); }
std::string_view to_string(Health health) { return name_of<Health>(kHealths, health); }

std::vector<Verdict> judge(const std::vector<FoundPage>& pages, const Jury& jury) {
  std::vector<Verdict> verdicts;
  for (auto first = pages.begin(); first != pages.end();) {
    const auto last = std::find_if(first, pages.end(), [&](const FoundPage& found) {
      return found.page.group != first->page.group;
    });
    verdicts.push_back(judge_group({first, last}, jury));
    first = last;
  }
  return verdicts;
}

}  // namespace tutti::cli
