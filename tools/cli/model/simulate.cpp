#include "model/simulate.hpp"

#include <fmt/format.h>

#include <cmath>
#include <string>
#include <string_view>
#include <utility>

#include "base/try.hpp"
#include "model/cluster_program.hpp"
#include "model/fold.hpp"
#include "model/simulation.hpp"

namespace tutti::model {
namespace {

Status invalid(std::string text) { return {StatusCode::kInvalidArgument, std::move(text)}; }

bool is_positive(double value) { return std::isfinite(value) && value > 0; }
bool is_not_negative(double value) { return std::isfinite(value) && value >= 0; }

Status check_link(const Link& link, std::string_view name) {
  if (!is_positive(link.gbit_per_s)) {
    return invalid(fmt::format("the rate of the link {} is {} Gbit/s: it must be positive", name,
                               link.gbit_per_s));
  }
  if (!is_positive(link.payload_part) || link.payload_part > 1) {
    return invalid(
        fmt::format("of the bytes on the link {} the part {} is payload: it must be "
                    "above 0, and at most 1",
                    name, link.payload_part));
  }
  for (const double value : {link.delay_us, link.message_bytes, link.burst_bytes}) {
    if (is_not_negative(value)) continue;
    return invalid(
        fmt::format("the link {} has a delay, bytes with each message, or a burst of "
                    "{}: it must not be negative",
                    name, value));
  }
  return Status::ok();
}

Status check_cluster(const ClusterModel& cluster) {
  if (cluster.nodes < 1 || cluster.ranks_per_node < 1 || cluster.ranks() < 2) {
    return invalid(
        fmt::format("a cluster of {} nodes with {} ranks each: it must have 2 ranks or "
                    "more",
                    cluster.nodes, cluster.ranks_per_node));
  }
  if (cluster.nodes > 1) TUTTI_TRY(check_link(cluster.between, "between nodes"));
  if (cluster.ranks_per_node > 1) TUTTI_TRY(check_link(cluster.within, "within nodes"));
  for (const double rail : cluster.rails) {
    if (!is_positive(rail)) {
      return invalid(fmt::format("a rail has {} of the link's speed: it must be positive", rail));
    }
  }
  const Processor& processor = cluster.processor;
  for (const double value :
       {processor.start_us, processor.send_us, processor.receive_us, processor.local_us,
        processor.copy_gb_per_s, processor.sum_gb_per_s, static_cast<double>(processor.shared)}) {
    if (is_not_negative(value)) continue;
    return invalid(
        fmt::format("a processor has {}: its times, rates and number must not be "
                    "negative",
                    value));
  }
  return Status::ok();
}

Status check_operation(const SimulatedOperation& operation, int ranks) {
  if (operation.schedule == nullptr) {
    return invalid("the algorithm has no program of messages: simulate one of the network's");
  }
  if (operation.element_bytes == 0 || operation.chunk_bytes == 0 ||
      operation.most_scratch_bytes == 0) {
    return invalid("elements, chunks and the scratch of a partition must have a byte or more");
  }
  if (operation.root < 0 || operation.root >= ranks) {
    return invalid(fmt::format("the root is rank {} of {}", operation.root, ranks));
  }
  if (operation.slots < 0) {
    return invalid(fmt::format("{} slots: they must not be negative; 0 is any number of them",
                               operation.slots));
  }
  return Status::ok();
}

}  // namespace

Result<SimulatedTime> simulate(const SimulatedOperation& operation, const ClusterModel& cluster,
                               Folding folding) {
  TUTTI_TRY(check_cluster(cluster));
  TUTTI_TRY(check_operation(operation, cluster.ranks()));
  TUTTI_ASSIGN(auto program,
               ClusterProgram::make(operation, cluster, ClusterProgram::Form::kExact));
  TUTTI_ASSIGN(const Fold fold, folding == Folding::kNever ? unfolded(*program)
                                                           : fold_of(operation, cluster, program));
  return Simulation(*program, fold, operation.slots).run();
}

}  // namespace tutti::model
