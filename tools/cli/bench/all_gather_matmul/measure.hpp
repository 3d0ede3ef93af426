// The measurement of one setting: all arms in turn, their C compared bit for bit, and the times
// compared with what is predicted.
#pragma once

#include <string>

#include "bench/all_gather_matmul/arms.hpp"
#include "bench/matmul/measure.hpp"

namespace tutti::cli {

// `tile`: forced; empty: chosen by shape.
Result<MeasuredMatmul> measure_gated(const GatedPlace& place, const AllGatherMatmulOptions& options,
                                     const MatmulSetting& setting, const std::string& tile);

// Makes rows of this benchmark of those of a matmul: names, ratios over the own matmul, bounds and
// predictions. Of the two rows of the own matmul the last one goes.
void tell_arrivals(const GatedSetting& setting, const AllGatherMatmulOptions& options,
                   MeasuredMatmul& measured);

}  // namespace tutti::cli
