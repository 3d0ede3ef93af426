#include "planning/plan.hpp"

#include <fmt/core.h>

#include "base/guard.hpp"
#include "base/units.hpp"
#include "tutti/tuning.hpp"

namespace tutti {

std::string_view to_string(PlanSource source) {
  switch (source) {
    case PlanSource::kCall:
      return "call";
    case PlanSource::kOverride:
      return "override";
    case PlanSource::kUserFile:
      return "user_file";
    case PlanSource::kUserCache:
      return "user_cache";
    case PlanSource::kShipped:
      return "shipped";
    case PlanSource::kPublished:
      return "published";
    case PlanSource::kModel:
      return "model";
  }
  return "?";
}

Plan describe(const OperationPlan& plan) {
  return {.algorithm = std::string(plan.algorithm->id),
          .blocks = plan.blocks,
          .threads = plan.threads,
          .chunk_bytes = plan.chunk_bytes,
          .source = plan.source,
          .emulated = plan.emulated,
          .alone = plan.alone,
          .stream_barrier = plan.stream_barrier};
}

std::string to_string(const Plan& plan) {
  return guarded_text([&] {
    std::string text = plan.algorithm;
    const auto source = to_string(plan.source);
    if (plan.alone) return text + fmt::format(": one rank alone, a copy ({})", source);
    if (plan.blocks > 0) text += fmt::format(", {} x {} threads", plan.blocks, plan.threads);
    if (plan.chunk_bytes > 0) text += fmt::format(", chunks of {}", format_bytes(plan.chunk_bytes));
    if (plan.emulated) text += ", emulated";
    if (plan.stream_barrier) text += ", ranks meet by stream memory operations";
    return text + fmt::format(" ({})", source);
  });
}

}  // namespace tutti
