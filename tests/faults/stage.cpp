#include "faults/stage.hpp"

#include <fmt/format.h>

#include <csignal>
#include <stdlib.h>

#include "support/check.hpp"

namespace tutti::test {

using std::chrono::milliseconds;

Stage::Stage(int ranks, const Part& part)
    : id_(make_id(traces_)),
      children_(ranks, [&](int number, Wire& parent) { part(id_, number, parent); }) {}

UniqueId Stage::make_id(const Traces& traces) {
  listen_for_the_fate();
  ::setenv("TUTTI_RUNTIME_DIR", traces.directory().c_str(), 1);
  return take(UniqueId::create());
}

void Stage::complain(int rank, std::string_view what) {
  complaints_ += fmt::format("   rank {}: {}\n", rank, what);
}

void Stage::expect_within(int rank, const Ending& ending, milliseconds limit) {
  if (!times_count) return;
  const auto took = std::chrono::duration_cast<milliseconds>(ending.at - marked_at_);
  if (took <= limit + slack()) return;
  complain(rank, fmt::format("{} ms to the error, {} ms are allowed:{}", took.count(),
                             limit.count(), ending.text));
}

void Stage::expect_parts(int rank, const Ending& ending, const std::vector<std::string>& parts) {
  for (const std::string& part : parts) {
    if (ending.text.find(part) != std::string::npos) continue;
    complain(rank, fmt::format("'{}' is missing in:{}", part, ending.text));
  }
}

void Stage::expect_late_failure(int rank, Clock::duration limit) {
  children_.signal(rank, SIGCONT);
  children_.listen([&] { return result_line(child(rank)) != nullptr; }, limit);
  const std::string* const line = result_line(child(rank));
  if (line == nullptr) return complain(rank, "woke up and said nothing");
  if (from_line(*line).code == StatusCode::kOk) complain(rank, "woke up late and saw no failure");
}

void Stage::expect_nothing_left() {
  const std::string left = traces_.left();
  if (!left.empty()) complaints_ += "   left behind: " + left + "\n";
}

std::vector<std::string> parts_of_a_timeout(std::string_view algorithm) {
  if (algorithm == "nccl") return {"all_reduce/nccl", "#", "waited", "in NCCL"};
  return {"all_reduce/", "#", "waited", "for rank", "expected flag", "seen"};
}

}  // namespace tutti::test
