#include "conformance/session.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <map>
#include <memory>

#include "algorithms/catalogue.hpp"
#include "conformance/cell_runner.hpp"
#include "support/children.hpp"
#include "support/group.hpp"

namespace tutti::test {
namespace {

// Lines of a session: "P 12" passed on one rank, "F 12 text" failed, "S 12 text" skipped,
// "X text" the group came to an end.
struct Line {
  char what = 0;
  std::size_t cell = 0;
  std::string text;
};

Line parse(const std::string& line) {
  Line parsed;
  parsed.what = line.empty() ? 'X' : line[0];
  if (parsed.what == 'X' || line.size() < 3)
    return {'X', 0, line.substr(std::min<std::size_t>(2, line.size()))};
  const char* const end = line.data() + line.size();
  const auto number = std::from_chars(line.data() + 2, end, parsed.cell);
  parsed.text = std::string(number.ptr, end);
  return parsed;
}

// What one attempt has shown so far.
class Score {
 public:
  Score(std::size_t cells, int ranks) : passed_(cells), outcomes_(cells), ranks_(ranks) {}

  void take(const Line& line) {
    if (line.what == 'X' || line.cell >= outcomes_.size()) {
      end_ += line.text;
      return;
    }
    CellOutcome& outcome = outcomes_[line.cell];
    if (line.what == 'P') {
      ++passed_[line.cell];
    } else {
      outcome.text += outcome.text.empty() ? line.text : "\n   " + line.text;
      if (line.what == 'S') skipped_ = true;
      if (line.what == 'F') failed_.push_back(line.cell);
      ++passed_[line.cell];
    }
  }

  // Cells that every rank has come to the end of, from the first on.
  std::size_t finished() const {
    const auto open =
        std::find_if(passed_.begin(), passed_.end(), [this](int count) { return count < ranks_; });
    return static_cast<std::size_t>(open - passed_.begin());
  }

  CellOutcome outcome(std::size_t cell) const {
    CellOutcome outcome = outcomes_[cell];
    const bool failed = std::find(failed_.begin(), failed_.end(), cell) != failed_.end();
    outcome.verdict = failed                 ? Verdict::kFailed
                      : outcome.text.empty() ? Verdict::kPassed
                                             : Verdict::kSkipped;
    return outcome;
  }

  const std::string& end() const { return end_; }

 private:
  std::vector<int> passed_;  // by how many ranks
  std::vector<CellOutcome> outcomes_;
  std::vector<std::size_t> failed_;
  int ranks_;
  bool skipped_ = false;
  std::string end_;
};

void run_cells(Rank& rank, const std::vector<Cell>& cells, Wire& parent) {
  CellRunner runner(rank, cells);
  for (std::size_t k = 0; k < cells.size(); ++k) {
    const std::string why_not = runner.why_not(cells[k]);
    if (!why_not.empty()) {
      parent.say(fmt::format("S {} {}", k, why_not));
      continue;
    }
    const std::string text = runner.run(cells[k]);
    parent.say(text.empty() ? fmt::format("P {}", k)
                            : fmt::format("F {} rank {}: {}", k, rank.number(), text));
  }
}

Score attempt(Backend backend, const std::vector<Cell>& cells, std::chrono::seconds silence) {
  constexpr std::chrono::hours kForever{24};
  const GroupSpec spec{.backend = backend,
                       .kind = cells.front().kind,
                       .ranks = cells.front().ranks,
                       .timeout = silence / 2,
                       .limit = kForever};
  Children session(1, [&](int, Wire& parent) {
    const std::string failures =
        run_group(spec, [&](Rank& rank) { run_cells(rank, cells, parent); });
    if (!failures.empty()) parent.say("X " + failures);
  });
  Score score(cells.size(), spec.ranks);
  const Children::Child& child = session.finish(kForever, silence).front();
  for (const std::string& line : child.lines) score.take(parse(line));
  if (!child.succeeded()) score.take({'X', 0, "the session " + child.describe_end()});
  return score;
}

}  // namespace

std::vector<CellOutcome> run_session(Backend backend, const std::vector<Cell>& cells,
                                     std::chrono::seconds silence) {
  constexpr int kAttempts = 4;
  std::vector<CellOutcome> outcomes;
  std::vector<Cell> left = cells;
  for (int k = 0; k < kAttempts && !left.empty(); ++k) {
    const Score score = attempt(backend, left, silence);
    const std::size_t finished = score.finished();
    for (std::size_t c = 0; c < finished; ++c) outcomes.push_back(score.outcome(c));
    left.erase(left.begin(), left.begin() + static_cast<std::ptrdiff_t>(finished));
    if (left.empty()) {
      // All cells are done, and yet the group did not end well: that is the last one's failure.
      if (!score.end().empty()) outcomes.back() = {Verdict::kFailed, score.end()};
      return outcomes;
    }
    outcomes.push_back({Verdict::kFailed, score.end().empty() ? "not finished" : score.end()});
    left.erase(left.begin());
  }
  for (std::size_t k = 0; k < left.size(); ++k) {
    outcomes.push_back({Verdict::kFailed, "not run: the group broke down too often"});
  }
  return outcomes;
}

}  // namespace tutti::test
