#include "bench/all_gather_matmul/measure.hpp"

#include <fmt/core.h>

#include <algorithm>

#include "base/try.hpp"
#include "bench/matmul/print.hpp"

namespace tutti::cli {
namespace {

std::string trace_text(const ArrivalTrace& trace) {
  if (!trace.model) return fmt::format("measured: {}", trace.machine);
  const ArrivalModel& model = *trace.model;
  std::string text = fmt::format(
      "modelled: {}, start {:g} us, {:g} us per operation, {:g} GB/s, jitter {:g} %, seed {}",
      trace.machine, model.start_us, model.operation_us, model.gigabytes_per_second,
      100 * model.jitter, model.seed);
  if (model.straggler >= 0) {
    text += fmt::format(", shard {} {:g} us late", model.straggler, model.straggler_us);
  }
  return text;
}

PredictedParts parts_of(const GatedPrediction& said) {
  return {.forecast_us = said.forecast_us,
          .clock_us = said.clock_us,
          .deficit_us = said.deficit_us,
          .order_us = said.order_us,
          .gating_us = said.gating_us,
          .contention_us = said.contention_us};
}

class ArrivalRows {
 public:
  // `own`: the row of the own matmul alone, and its samples.
  // `last_us`: when the last chunk has come; 0: all are there beforehand.
  ArrivalRows(const GatedSetting& setting, const AllGatherMatmulOptions& options, const Row& own,
              const std::vector<double>& samples_us, double last_us)
      : setting_(setting),
        options_(options),
        last_us_(last_us),
        own_us_(own.time_us.p50),
        own_samples_us_(samples_us) {
    model_.contention_us_per_megabyte = 0;  // flags alone arrive
    if (own.matmul->megahertz > 0) model_.megahertz = own.matmul->megahertz;
    model_.tile_factor = tile_factor_of(setting.alone, model_.megahertz, own_us_);
  }

  void tell(Row& row, const std::vector<double>& samples_us) const {
    row.collective = kAllGatherMatmulName;
    if (row.algorithm == kPeerRow) row.algorithm = kCublasLtAloneRow;
    ArrivalRow told{.ranks = options_.ranks,
                    .chunks = options_.chunks,
                    .k_groups = options_.k_groups,
                    .pullers = options_.pullers,
                    .arrival = options_.arrival_text,
                    .trace = setting_.trace ? trace_text(*setting_.trace) : "",
                    .over_own = noise_of(samples_us, own_samples_us_).p50};
    for (const ArrivalOrder order : setting_.orders) {
      if (row.algorithm == row_of_order(order)) tell_gated(order, row.time_us.p50, told);
    }
    row.matmul->arrival = std::move(told);
  }

 private:
  void tell_gated(ArrivalOrder order, double us, ArrivalRow& told) const {
    told.order = to_string(order);
    if (!setting_.from_host) predict(order, us, told);
    if (last_us_ <= 0) return;
    told.last_us = last_us_;
    told.bound_us = std::max(told.last_us, own_us_);
    if (told.bound_us > 0) told.over_bound = us / told.bound_us;
  }

  void predict(ArrivalOrder order, double us, ArrivalRow& told) const {
    GatedCall call = setting_.call;
    call.plan.order = order;
    const GatedPrediction said =
        predict_gated(call, setting_.trace ? &*setting_.trace : nullptr, model_);
    told.parts = parts_of(said);
    told.predicted_us = said.total_us();
    if (us > 0) told.predicted_error = told.predicted_us / us - 1;
  }

  const GatedSetting& setting_;
  const AllGatherMatmulOptions& options_;
  double last_us_, own_us_;
  const std::vector<double>& own_samples_us_;
  GatedModel model_;
};

// 0: all are there beforehand.
double last_arrival_of(const GatedSetting& setting, const MeasuredMatmul& measured) {
  if (setting.trace) return setting.trace->last_us();
  const auto row = std::ranges::find_if(
      measured.rows, [](const Row& each) { return each.algorithm == kArrivalAloneRow; });
  return row == measured.rows.end() ? 0 : row->time_us.p50;
}

}  // namespace

void tell_arrivals(const GatedSetting& setting, const AllGatherMatmulOptions& options,
                   MeasuredMatmul& measured) {
  const auto is_own = [](const Row& row) { return row.algorithm == kOwnAloneRow; };
  const auto own = std::ranges::find_if(measured.rows, is_own);
  const auto again = std::find_if(measured.rows.rbegin(), measured.rows.rend(), is_own);
  if (own == measured.rows.end()) return;
  const auto first = static_cast<std::size_t>(own - measured.rows.begin());
  const auto last = static_cast<std::size_t>(measured.rows.rend() - again) - 1;
  const std::vector<double> own_us = measured.samples_us[first];
  const ArrivalRows rows(setting, options, *own, own_us, last_arrival_of(setting, measured));
  for (std::size_t k = 0; k < measured.rows.size(); ++k) {
    rows.tell(measured.rows[k], measured.samples_us[k]);
  }
  if (first == last) return;
  own->matmul->noise = noise_of(measured.samples_us[last], own_us);
  own->wrong = own->wrong ? std::optional(*own->wrong + again->wrong.value_or(0)) : std::nullopt;
  measured.rows.erase(measured.rows.begin() + static_cast<std::ptrdiff_t>(last));
  measured.samples_us.erase(measured.samples_us.begin() + static_cast<std::ptrdiff_t>(last));
}

Result<MeasuredMatmul> measure_gated(const GatedPlace& place, const AllGatherMatmulOptions& options,
                                     const MatmulSetting& setting, const std::string& tile) {
  TUTTI_ASSIGN(MatmulSets sets, MatmulSets::make(place.device, setting));
  TUTTI_ASSIGN(const GatedSetting gated, gated_setting(place, options, sets, tile));
  TUTTI_ASSIGN(MatmulArms arms, make_gated_arms(place, gated, sets));
  TUTTI_ASSIGN(MeasuredMatmul measured, measure_arms(place.device, options.matmul, sets, arms));
  tell_arrivals(gated, options, measured);
  return measured;
}

}  // namespace tutti::cli
