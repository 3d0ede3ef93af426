#include "simulator/simulation.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <limits>

namespace tutti::simulated {
namespace {

bool arrived(const Flag& flag, std::uint64_t epoch) {
  if (epoch == 0) return true;  // for nothing
  return flag.epoch >= epoch && is_whole(flag);
}

}  // namespace

Simulation::Simulation(int ranks, int blocks)
    : ranks_(ranks), blocks_(blocks), memory_(ranks * blocks) {
  places_.resize(static_cast<std::size_t>(ranks) * static_cast<std::size_t>(blocks));
  for (Place& place : places_) place.fiber = std::make_unique<Fiber>();
}

bool Simulation::run(Schedule& schedule, const std::function<void(int, int)>& body) {
  schedule_ = &schedule;
  violation_ = {};
  memory_.reset();
  for (int f = 0; f < ranks_ * blocks_; ++f) {
    Place& place = places_[static_cast<std::size_t>(f)];
    place.condition = {};
    place.flag = -1;
    place.expired = false;
    place.acted = true;
    place.fiber->start([&body, this, f] { body(f / blocks_, f % blocks_); });
  }
  while (violation().breach == Breach::kNone && !all_finished()) {
    collect(schedule.is_coarse());
    if (possible_.empty()) {
      end_without_progress();
      continue;
    }
    const auto next = schedule.choose(possible_);
    if (!next) return false;
    take(possible_[*next], schedule.is_coarse());
  }
  return true;
}

// --- what may happen next ---

bool Simulation::met(int fiber) const {
  const Condition& wanted = places_[static_cast<std::size_t>(fiber)].condition;
  if (wanted.flag != nullptr || wanted.packet != nullptr || wanted.come != nullptr) {
    if (wanted.poison != nullptr && *wanted.poison != 0) return true;
    if (places_[static_cast<std::size_t>(fiber)].expired) return true;
    if (wanted.come != nullptr) return (*wanted.come)();
    if (wanted.packet != nullptr) return *wanted.packet != 0;
    return arrived(memory_.read_flag(wanted.flag), wanted.epoch);
  }
  if (wanted.delivered) return memory_.pending(fiber).empty();
  return wanted.count == nullptr || *wanted.count >= wanted.at_least;
}

void Simulation::collect(bool coarse) {
  possible_.clear();
  for (int f = 0; f < ranks_ * blocks_; ++f) {
    Place& place = places_[static_cast<std::size_t>(f)];
    const auto rank = static_cast<std::uint8_t>(f / blocks_);
    const bool stopped = rank == stopped_rank_ && steps_left_ <= 0;
    if (!place.fiber->finished() && !stopped && met(f)) {
      possible_.push_back({Action::Kind::kRun, static_cast<std::uint8_t>(f), rank, place.flag,
                           place.condition.epoch, memory_.stores_of(f), 0});
    }
    if (place.acted) collect_deliveries(f, coarse);
    possible_.insert(possible_.end(), place.deliveries.begin(), place.deliveries.end());
  }
}

void Simulation::collect_deliveries(int fiber, bool coarse) {
  Place& place = places_[static_cast<std::size_t>(fiber)];
  const auto pending = memory_.pending(fiber);
  memory_.find_deliverable(fiber, may_be_delivered_);
  place.acted = false;
  place.deliveries.clear();
  for (std::size_t i = 0; i < pending.size(); ++i) {
    const bool whole = coarse && pending[i].flag >= 0;
    const bool chosen = !coarse || whole || pending[i].packet >= 0;
    if (!chosen && !place.condition.delivered) continue;  // comes along, or at the end
    if (!(whole ? memory_.flag_deliverable(fiber, i) : may_be_delivered_[i])) continue;
    const std::int32_t signal = std::max(pending[i].flag, pending[i].packet);
    place.deliveries.push_back({Action::Kind::kDeliver, static_cast<std::uint8_t>(fiber),
                                static_cast<std::uint8_t>(fiber / blocks_), signal,
                                memory_.epoch_of(pending[i]), pending[i].id, pending[i].release});
  }
}

void Simulation::take(const Action& action, bool coarse) {
  if (story_ != nullptr) story_->push_back(in_words(action));
  places_[action.fiber].acted = true;
  if (action.kind == Action::Kind::kDeliver) {
    const auto pending = memory_.pending(action.fiber);
    const auto entry = std::find_if(pending.begin(), pending.end(),
                                    [&](const Pending& store) { return store.id == action.store; });
    const auto index = static_cast<std::size_t>(entry - pending.begin());
    if (coarse && entry->flag >= 0) return memory_.deliver_flag(action.fiber, index);
    return memory_.deliver(action.fiber, index);
  }
  if (action.rank == stopped_rank_) --steps_left_;
  Place& place = places_[action.fiber];
  place.condition = {};
  place.flag = -1;
  place.expired = false;
  place.fiber->resume();
}

std::string Simulation::in_words(const Action& action) const {
  const std::string who = fmt::format("rank {} block {}", action.rank, action.fiber % blocks_);
  const std::string flag =
      action.flag < 0 ? std::string() : fmt::format(" flag {} epoch {}", action.flag, action.epoch);
  if (action.kind == Action::Kind::kRun) {
    return who + (flag.empty() ? " goes on" : " has waited for" + flag);
  }
  return fmt::format("{}: its store {}{} is delivered", who, action.store, flag);
}

bool Simulation::all_finished() const {
  return std::all_of(places_.begin(), places_.end(),
                     [](const Place& place) { return place.fiber->finished(); });
}

// Nobody can go on.
void Simulation::end_without_progress() {
  if (stopped_rank_ >= 0 && expire_waits()) return;
  if (stopped_rank_ >= 0 && steps_left_ <= 0) {
    steps_left_ = std::numeric_limits<int>::max();
    if (on_wake_) on_wake_();
    return;
  }
  report(Breach::kDeadlock, who_waits());
}

// Ends the waits that are under way. False if there are none.
bool Simulation::expire_waits() {
  bool any = false;
  for (int f = 0; f < ranks_ * blocks_; ++f) {
    Place& place = places_[static_cast<std::size_t>(f)];
    const bool stopped = f / blocks_ == stopped_rank_ && steps_left_ <= 0;
    const Condition& condition = place.condition;
    const bool waits =
        condition.flag != nullptr || condition.packet != nullptr || condition.come != nullptr;
    if (place.fiber->finished() || stopped || !waits) continue;
    place.expired = any = true;
  }
  return any;
}

void Simulation::stop(int rank, int steps, std::function<void()> on_wake) {
  stopped_rank_ = rank;
  steps_left_ = steps;
  on_wake_ = std::move(on_wake);
}

std::string Simulation::who_waits() const {
  std::string text = "all wait:";
  for (std::size_t f = 0; f < places_.size(); ++f) {
    const Place& place = places_[f];
    if (place.fiber->finished()) continue;
    const int fiber = static_cast<int>(f);
    text += fmt::format(" rank {} block {}", fiber / blocks_, fiber % blocks_);
    if (place.condition.flag != nullptr) {
      const Flag seen = memory_.read_flag(place.condition.flag);
      text += fmt::format(" for flag {} (epoch {} expected, {} seen)", place.flag,
                          place.condition.epoch, seen.epoch);
    }
    if (place.condition.come != nullptr) text += " for messages";
    if (place.condition.packet != nullptr) {
      text += fmt::format(" for packet {} (epoch {})", place.flag, place.condition.epoch);
    }
    text += ';';
  }
  return text;
}

// --- what bodies call ---

void Simulation::pause(int fiber, const Condition& condition) {
  Place& place = places_[static_cast<std::size_t>(fiber)];
  place.condition = condition;
  place.flag = condition.flag != nullptr     ? memory_.flag_index(condition.flag)
               : condition.packet != nullptr ? memory_.packet_index(condition.packet)
                                             : -1;
  place.fiber->pause();
}

void Simulation::interrupt(int fiber) {
  if (schedule_->interrupts()) pause(fiber, {});
}

Waited Simulation::wait_for_flag(int fiber, const Flag* flag, std::uint64_t epoch,
                                 const std::uint32_t* poison) {
  pause(fiber, {.flag = flag, .epoch = epoch, .poison = poison});
  if (poison != nullptr && *poison != 0) return Waited::kCalledOff;
  return arrived(memory_.read_flag(flag), epoch) ? Waited::kArrived : Waited::kTimeIsOver;
}

Waited Simulation::wait_for_packet(int fiber, const std::uint64_t* packet, std::uint64_t epoch,
                                   const std::uint32_t* poison) {
  pause(fiber, {.packet = packet, .epoch = epoch, .poison = poison});
  if (poison != nullptr && *poison != 0) return Waited::kCalledOff;
  return *packet != 0 ? Waited::kArrived : Waited::kTimeIsOver;
}

Waited Simulation::wait_until(int fiber, const std::function<bool()>& come,
                              const std::uint32_t* poison) {
  pause(fiber, {.come = &come, .poison = poison});
  if (poison != nullptr && *poison != 0) return Waited::kCalledOff;
  return come() ? Waited::kArrived : Waited::kTimeIsOver;
}

void Simulation::wait_until_delivered(int fiber) { pause(fiber, {.delivered = true}); }

void Simulation::wait_for_count(int fiber, const int& count, int at_least) {
  if (count < at_least) pause(fiber, {.count = &count, .at_least = at_least});
}

void Simulation::report(Breach breach, std::string text) {
  if (violation().breach == Breach::kNone) violation_ = {breach, std::move(text)};
}

const Violation& Simulation::violation() const {
  return violation_.breach != Breach::kNone ? violation_ : memory_.violation();
}

}  // namespace tutti::simulated
