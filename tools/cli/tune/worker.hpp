// One rank of a sweep: finds the best candidate of each size, together with the others.
#pragma once

#include "bench/rank.hpp"
#include "tune/options.hpp"

namespace tutti::cli {

// Reports what it is Trying, what is Dropped, and a Tuned for each size that has a right candidate.
// `options` must outlive it.
RankWork tune_work(const TuneOptions& options);

}  // namespace tutti::cli
