#include "bench/runnable.hpp"

#include <signal.h>

#include <algorithm>
#include <chrono>
#include <thread>

#include "algorithms/catalogue.hpp"
#include "base/try.hpp"
#include "group/communicator_impl.hpp"

namespace tutti::cli {

unsigned RunnableRows::needs_of(std::string_view algorithm) const {
  const auto row = find_algorithm(options_.collective, algorithm);
  return row.is_ok() ? (*row)->needs : kNeedsNothing;
}

Status RunnableRows::open() {
  if (communicator_.backend() != Backend::kCuda) return Status::ok();
  unsigned needs = options_.choice == Choice::kAuto ? kNeedsNccl : kNeedsNothing;
  for (const std::string& name : options_.algorithms) needs |= needs_of(name);
  if ((needs & kNeedsNccl) != 0) nccl_ = communicator_.prepare_nccl();
  needs &= kNeedsAnyWindows;
  if (needs != 0) windows_ = open_windows(needs);
  return communicator_.status();
}

Status RunnableRows::open_windows(unsigned needs) {
  if (options_.buffers != BufferKind::kSymmetric) {
    return {StatusCode::kUnsupported,
            "NCCL's windows hold what the communicator allocated: --buffers symmetric"};
  }
  return communicator_.impl().prepare_executor(kNcclExecutor, needs);
}

Result<Plan> RunnableRows::plan(const Communicator::Query& query) const {
  TUTTI_ASSIGN(Plan plan, communicator_.impl().plan(options_.collective, query));
  const unsigned needs = needs_of(query.algorithm);
  if ((needs & kNeedsNccl) != 0) TUTTI_TRY(nccl_);
  if ((needs & kNeedsAnyWindows) != 0) TUTTI_TRY(windows_);
  return plan;
}

Result<std::optional<Plan>> RunnableRows::plan_or_skip(const Communicator::Query& query) {
  const Result<Plan> plan = this->plan(query);
  if (plan.is_ok()) return std::optional<Plan>(*plan);
  const std::string algorithm(query.algorithm);
  if (std::count(skipped_.begin(), skipped_.end(), algorithm) == 0) {
    skipped_.push_back(algorithm);
    TUTTI_TRY(report_(Skipped{algorithm, plan.status().to_string()}));
  }
  return std::optional<Plan>();
}

Result<std::vector<Runnable>> RunnableRows::all(const Communicator::Query& query) {
  const Result<Plan> chosen = plan(query);
  std::vector<std::string> names = options_.algorithms;
  if (options_.choice == Choice::kAuto) {
    TUTTI_TRY(chosen.status());
    TUTTI_ASSIGN(const Algorithm* row, find_algorithm(options_.collective, chosen->algorithm));
    names = {std::string(row->name())};
  }
  std::vector<Runnable> rows;
  for (const std::string& name : names) {
    Communicator::Query named = query;
    named.algorithm = name;
    TUTTI_ASSIGN(const std::optional<Plan> plan, plan_or_skip(named));
    if (!plan) continue;
    // What auto takes runs as auto would run it: a table may say how.
    // One rank alone takes no row, and those that are named are rows.
    const bool takes_row = chosen.is_ok() && (!chosen->alone || options_.choice == Choice::kAuto);
    const bool is_chosen = takes_row && chosen->algorithm == plan->algorithm;
    rows.push_back({.algorithm = name, .plan = is_chosen ? *chosen : *plan, .chosen = is_chosen});
  }
  return rows;
}

Status end_as_told(const Injection& injection, int rank, std::string_view algorithm) {
  if (!injection.hits(rank, algorithm)) return Status::ok();
  if (injection.kind == Injection::Kind::kCrash) ::raise(SIGKILL);
  if (injection.kind != Injection::Kind::kHang) return Status::ok();
  std::this_thread::sleep_for(std::chrono::minutes(10));
  return {StatusCode::kTimeout, "this rank was told to hang"};
}

}  // namespace tutti::cli
