// What a rank does for `tutti bench put` and `tutti bench get`: all ranks at once put into the next
// one's memory, or get from it. A put has ended when its signal was waited for.
#pragma once

#include "bench/one_sided/options.hpp"
#include "bench/rank.hpp"

namespace tutti::cli {

// `options` must outlive the work. Reports a Measurement for each size and mover.
RankWork one_sided_work(const OneSidedOptions& options);

}  // namespace tutti::cli
