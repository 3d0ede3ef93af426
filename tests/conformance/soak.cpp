#include "conformance/soak.hpp"

#include <fmt/format.h>

#include "support/check.hpp"
#include "support/lane.hpp"
#include "support/series.hpp"

namespace tutti::test {

std::string run_soak(const GroupSpec& spec, int operations, unsigned seed) {
  return run_group(spec, [&](Rank& rank) {
    Lane symmetric(rank, BufferKind::kSymmetric, Series::kMostBytes);
    Lane plain(rank, BufferKind::kPlain, Series::kMostBytes);
    Series series(seed);
    for (int i = 0; i < operations; ++i) {
      const Trial trial = series.next();
      try {
        (series.plain() ? plain : symmetric).expect_right(trial);
      } catch (const Failure& failure) {
        fail(fmt::format("operation {} ({} x {}, {}, {}): {}", i, trial.count,
                         to_string(trial.dtype), to_string(trial.op), trial.algorithm,
                         failure.what()));
      }
    }
  });
}

}  // namespace tutti::test
