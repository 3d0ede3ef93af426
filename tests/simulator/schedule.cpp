#include "simulator/schedule.hpp"

#include <algorithm>

namespace tutti::simulated {
namespace {

constexpr unsigned kOften = 230, kSometimes = 64, kSeldom = 4;  // of 256

}  // namespace

bool independent(const Action& a, const Action& b) {
  const bool runs = a.kind == Action::Kind::kRun && b.kind == Action::Kind::kRun;
  // Blocks of a rank meet where they wait for no flag: at the ends of its kernels.
  if (runs) return a.rank != b.rank || a.flag >= 0 || b.flag >= 0;
  if (a.fiber == b.fiber) return true;
  // Flags have one writer; packets have two, who fills them and who empties them.
  if (a.kind == b.kind && a.flag < kFirstPacket) return true;
  return a.flag < 0 || a.flag != b.flag;
}

// --- random ---

RandomSchedule::RandomSchedule(std::uint64_t seed, int ranks) : state_(seed) {
  constexpr unsigned kTempers[] = {kOften, kSometimes, kSeldom, 0};
  eagerness_ = kTempers[below(4)];
  turns_ = kTempers[below(3)];
  interruption_ = kTempers[1 + below(3)];
  slow_rank_ = coin(128) ? static_cast<int>(below(static_cast<std::size_t>(ranks))) : -1;
}

// SplitMix64.
std::uint64_t RandomSchedule::draw() {
  std::uint64_t z = state_ += 0x9e3779b97f4a7c15u;
  z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
  z = (z ^ z >> 27) * 0x94d049bb133111ebu;
  return z ^ z >> 31;
}

std::optional<std::size_t> RandomSchedule::choose(std::span<const Action> possible) {
  runs_.clear();
  deliveries_.clear();
  std::optional<std::size_t> same;
  for (std::size_t i = 0; i < possible.size(); ++i) {
    const Action& action = possible[i];
    if (action.rank == slow_rank_ && !coin(kSeldom)) continue;
    if (action.kind == Action::Kind::kRun) {
      if (action.fiber == last_fiber_) same = i;
      runs_.push_back(i);
    } else {
      deliveries_.push_back(i);
    }
  }
  if (runs_.empty() && deliveries_.empty()) return below(possible.size());
  if (!deliveries_.empty() && (runs_.empty() || coin(eagerness_))) {
    return deliveries_[below(deliveries_.size())];
  }
  const std::size_t next = same && !coin(turns_) ? *same : runs_[below(runs_.size())];
  last_fiber_ = possible[next].fiber;
  return next;
}

// --- exhaustive ---

bool ExhaustiveSchedule::contains(const std::vector<Action>& actions, const Action& action) {
  return std::any_of(actions.begin(), actions.end(),
                     [&](const Action& other) { return other.is_same_as(action); });
}

std::optional<std::size_t> ExhaustiveSchedule::first_awake(const Step& step, bool only_worth_it) {
  for (std::size_t i = 0; i < step.possible.size(); ++i) {
    if (only_worth_it && !step.worth_it[i]) continue;
    if (!contains(step.asleep, step.possible[i])) return i;
  }
  return std::nullopt;
}

std::optional<std::size_t> ExhaustiveSchedule::choose(std::span<const Action> possible) {
  if (depth_ == steps_.size()) {
    if (depth_ == kMaxSteps) return std::nullopt;
    Step step{{possible.begin(), possible.end()}, {}, std::vector<bool>(possible.size()), 0, {}};
    if (depth_ > 0) {
      const Step& before = steps_[depth_ - 1];
      std::copy_if(before.asleep.begin(), before.asleep.end(), std::back_inserter(step.asleep),
                   [&](const Action& action) { return independent(action, before.action()); });
    }
    const auto first = first_awake(step, false);
    if (!first) return std::nullopt;
    step.taken = *first;
    step.worth_it[*first] = true;
    steps_.push_back(std::move(step));
  }
  if (depth_ + 1 == steps_.size()) look_back(depth_);
  return steps_[depth_++].taken;
}

bool ExhaustiveSchedule::ordered(std::size_t early, std::size_t late) const {
  const Action& a = steps_[early].action();
  const Action& b = steps_[late].action();
  const bool a_runs = a.kind == Action::Kind::kRun, b_runs = b.kind == Action::Kind::kRun;
  if (a_runs && b_runs) return a.fiber == b.fiber || !independent(a, b);
  if (a_runs && a.fiber == b.fiber) return a.store <= b.store;  // the run may have made the store
  if (b_runs && a.fiber == b.fiber) return b.flag < 0;  // the end of a kernel waits for its stores
  if (a.fiber == b.fiber) return a.flag == b.flag || a.release < b.release;
  return a.flag >= 0 && a.flag == b.flag;
}

bool ExhaustiveSchedule::reversible(const Action& early, const Action& late) {
  if (early.fiber == late.fiber || early.flag != late.flag || early.flag < 0) return false;
  if (early.kind == late.kind) {
    return early.kind == Action::Kind::kDeliver && early.flag >= kFirstPacket;
  }
  // A flag that brought what was waited for had to come first.
  return early.kind == Action::Kind::kRun || late.epoch < early.epoch;
}

// Which earlier steps could have come after this one instead?
void ExhaustiveSchedule::look_back(std::size_t depth) {
  Step& step = steps_[depth];
  step.before.reset();
  for (std::size_t i = depth; i-- > 0;) {
    if (step.before.test(i)) continue;  // through one in between
    if (!ordered(i, depth)) continue;
    if (reversible(steps_[i].action(), step.action())) try_earlier(i, depth);
    step.before |= steps_[i].before;
    step.before.set(i);
  }
}

// At `early`, tries what leads to `late` without the step that was taken there.
void ExhaustiveSchedule::try_earlier(std::size_t early, std::size_t late) {
  Step& step = steps_[early];
  const StepSet& needed = steps_[late].before;
  std::optional<std::size_t> way;
  for (std::size_t i = 0; i < step.possible.size(); ++i) {
    bool leads = step.possible[i].is_same_as(steps_[late].action());
    for (std::size_t k = early + 1; k < late && !leads; ++k) {
      leads = needed.test(k) && step.possible[i].is_same_as(steps_[k].action());
    }
    if (!leads) continue;
    if (step.worth_it[i]) return;  // will be, or was, tried
    if (!way) way = i;
  }
  if (way) {
    step.worth_it[*way] = true;
  } else {
    step.worth_it.assign(step.possible.size(), true);
  }
}

bool ExhaustiveSchedule::advance() {
  depth_ = 0;
  while (!steps_.empty()) {
    Step& last = steps_.back();
    last.asleep.push_back(last.action());
    if (const auto next = first_awake(last, true)) {
      last.taken = *next;
      return true;
    }
    steps_.pop_back();
  }
  return false;
}

}  // namespace tutti::simulated
