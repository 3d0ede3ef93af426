// How the engine notices that an operation is late, and whom it names.
#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <vector>

#include "executors/network/engine_impl.hpp"

namespace tutti {
namespace {

std::string ranks_text(const std::vector<int>& ranks, const std::function<std::string(int)>& name) {
  std::string text;
  for (const int rank : ranks) text += fmt::format("{}{}", text.empty() ? "" : ", ", name(rank));
  return text;
}

double seconds(LifeSigns::Clock::duration duration) {
  return std::chrono::duration<double>(duration).count();
}

}  // namespace

const RunningOperation* NetworkEngine::Impl::oldest() const {
  return operations_.empty() ? nullptr : operations_.front().get();
}

// Of the oldest operation: a short deadline needs signs of life sooner.
NetworkEngine::Clock::duration NetworkEngine::Impl::life_interval() const {
  using std::chrono::milliseconds;
  const RunningOperation* operation = oldest();
  if (operation == nullptr) return kSignOfLife;
  const auto time = operation->what().deadline - operation->began_at;
  return std::clamp<Clock::duration>(time / 16, milliseconds(1), kSignOfLife);
}

void NetworkEngine::Impl::ask_for_life() {
  const RunningOperation* operation = oldest();
  if (operation == nullptr || now_ < next_question_) return;
  const Clock::duration interval = life_interval();
  next_question_ = now_ + interval;
  if (now_ - operation->began_at < interval) {
    next_question_ = operation->began_at + interval;
    return;
  }
  NetworkMessage question;
  question.kind = NetworkMessage::Kind::kAlive;
  question.chunk = NetworkMessage::Sign::kQuestion;
  for (int rank = 0; rank < group_.ranks; ++rank) {
    if (rank == group_.rank || peer(rank).is_lost || has_left(rank)) continue;
    if (!life_.is_due(rank, now_, interval)) continue;
    WireTicket ticket = 0;
    post(rank, question, {}, ticket);
    life_.asked(rank, now_);
  }
}

void NetworkEngine::Impl::check_lost() {
  for (int rank = 0; rank < group_.ranks; ++rank) {
    if (!peer(rank).is_lost) continue;
    const bool left = has_left(rank);
    if (group_.has_left && !left && now_ < peer(rank).lost_at + kLossGrace) continue;
    for (const auto& operation : operations_) {
      if (!operation || !operation->needs(rank)) continue;
      const std::string why = left ? "left the group: every rank must make the same calls before "
                                     "it destroys its communicator"
                                   : "is lost: " + peer(rank).why_lost.message();
      fail(
          {StatusCode::kPeerFailed, fmt::format("{}: {} needs {}, which {}", operation->what().text,
                                                group_.name(group_.rank), group_.name(rank), why)},
          rank);
      return;
    }
  }
}

// What has come is looked at first, but not for ever.
void NetworkEngine::Impl::check_deadlines(bool did) {
  if (now_ < first_deadline_ || (did && now_ < first_deadline_ + kSignOfLife)) return;
  first_deadline_ = Clock::time_point::max();
  for (const auto& operation : operations_) {
    if (!operation) continue;
    first_deadline_ = std::min(first_deadline_, operation->what().deadline);
    if (operation->what().deadline > now_) continue;
    fail({StatusCode::kTimeout,
          fmt::format("{}: {} {} until the deadline; {}", operation->what().text,
                      group_.name(group_.rank), waits_text(*operation), silence_text())},
         awaited_by(*operation));
    return;
  }
}

int NetworkEngine::Impl::awaited_by(const RunningOperation& operation) {
  if (operation.opened() == 0) return -1;
  const auto waits = operation.waits();
  if (!waits.to_send.empty()) return waits.to_send.front();
  return waits.to_receive.empty() ? -1 : waits.to_receive.front();
}

std::string NetworkEngine::Impl::waits_text(const RunningOperation& operation) const {
  if (operation.opened() == 0) return "waited for earlier operations to free memory";
  const auto waits = operation.waits();
  std::string text;
  if (!waits.to_send.empty()) {
    text = fmt::format("waited for data of {}", ranks_text(waits.to_send, group_.name));
  }
  if (!waits.to_receive.empty()) {
    text += fmt::format("{}data to be received by {}", text.empty() ? "waited for " : ", and for ",
                        ranks_text(waits.to_receive, group_.name));
  }
  return text.empty() ? "was not called in time" : text;
}

std::string NetworkEngine::Impl::silence_text() const {
  std::string text;
  for (int rank = 0; rank < group_.ranks; ++rank) {
    const auto silence = life_.silence(rank, now_);
    if (silence < 2 * life_interval() || has_left(rank)) continue;
    text += fmt::format("{}{} gave no sign of life for {:.1f} s", text.empty() ? "" : ", ",
                        group_.name(rank), seconds(silence));
  }
  if (!text.empty()) return text;
  return "all other ranks give signs of life: one of them may not have made this call, and tutti "
         "status shows where each rank is";
}

NetworkEngine::Clock::time_point NetworkEngine::Impl::next_event() const {
  return std::min(first_deadline_, next_question_);
}

std::string NetworkEngine::Impl::position() const {
  const RunningOperation* operation = oldest();
  if (operation == nullptr) return {};
  return fmt::format("{} {}", operation->what().text, waits_text(*operation));
}

}  // namespace tutti
