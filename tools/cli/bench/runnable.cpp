#include "bench/runnable.hpp"

#include <signal.h>

#include <algorithm>
#include <chrono>
#include <thread>

#include "algorithms/catalogue.hpp"
#include "base/knobs.hpp"
#include "base/try.hpp"
#include "group/communicator_impl.hpp"

namespace tutti::cli {
namespace {

// Without the algorithm's name, so that equal reasons have equal texts.
std::string reason_of(const Status& status) {
  constexpr std::string_view kLead = "was requested, but cannot run: ";
  std::string text = status.to_string();
  const auto at = text.find(kLead);
  return at == std::string::npos ? text : text.substr(at + kLead.size());
}

}  // namespace

unsigned RunnableRows::needs_of(std::string_view algorithm) const {
  const auto row = find_algorithm(options_.collective, algorithm);
  return row.is_ok() ? (*row)->needs : kNeedsNothing;
}

Status RunnableRows::open() {
  if (communicator_.backend() != Backend::kCuda) return Status::ok();
  unsigned needs = kNeedsNothing;
  for (const std::string& name : options_.algorithms) {
    needs |= name == kAutoName ? kNeedsNccl : needs_of(name);  // auto may take NCCL
  }
  if ((needs & kNeedsNccl) != 0) nccl_ = communicator_.prepare_nccl();
  needs &= kNeedsAnyWindows;
  if (needs != 0) windows_ = open_windows(needs);
  return communicator_.status();
}

Status RunnableRows::open_windows(unsigned needs) {
  if (options_.wanted_buffers() != BufferKind::kSymmetric) {
    return {StatusCode::kUnsupported,
            "NCCL's windows hold what the communicator allocated: --buffers symmetric"};
  }
  return communicator_.impl().prepare_executor(kNcclExecutor, needs);
}

// Where ranks that are threads share a GPU.
Status RunnableRows::check_graphs(std::string_view algorithm) const {
  const bool threads_share = communicator_.backend() == Backend::kCuda &&
                             options_.launch == LaunchKind::kThreads &&
                             Knobs::process().flag("TUTTI_SHARE_GPUS");
  if (!threads_share || options_.mode != Mode::kGraph) return Status::ok();
  const auto row = find_algorithm(options_.collective, algorithm);
  if (!row.is_ok() || (*row)->program == nullptr) return Status::ok();
  return {
      StatusCode::kUnsupported,
      "before CUDA instantiates a graph with copies it may wait for a running kernel, which may "
      "wait for this rank, since the ranks are threads that share a GPU; --launch processes or "
      "--mode eager measures it"};
}

Result<Plan> RunnableRows::plan(const Communicator::Query& query) const {
  TUTTI_ASSIGN(Plan plan, communicator_.impl().plan(options_.collective, query));
  TUTTI_TRY(check_graphs(plan.algorithm));
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
    TUTTI_TRY(report_(Skipped{algorithm, reason_of(plan.status())}));
  }
  return std::optional<Plan>();
}

Result<std::vector<Runnable>> RunnableRows::all(const Communicator::Query& query) {
  const Result<Plan> chosen = plan(query);
  std::vector<Runnable> rows;
  const auto add = [&](Runnable row) {
    const bool known = std::ranges::any_of(
        rows, [&](const Runnable& other) { return other.algorithm == row.algorithm; });
    if (!known) rows.push_back(std::move(row));
  };
  for (const std::string& name : options_.algorithms) {
    if (name == kAutoName) {
      TUTTI_TRY(chosen.status());
      TUTTI_ASSIGN(const Algorithm* row, find_algorithm(options_.collective, chosen->algorithm));
      add({.algorithm = std::string(row->name()), .plan = *chosen, .chosen = true});
      continue;
    }
    Communicator::Query named = query;
    named.algorithm = name;
    TUTTI_ASSIGN(const std::optional<Plan> plan, plan_or_skip(named));
    if (!plan) continue;
    // What auto takes runs as auto would run it: a table may say how. One rank alone takes no row,
    // and those that are named are rows.
    const bool is_chosen = chosen.is_ok() && !chosen->alone && chosen->algorithm == plan->algorithm;
    add({.algorithm = name, .plan = is_chosen ? *chosen : *plan, .chosen = is_chosen});
  }
  return rows;
}

Status end_as_told(const Injection& injection, int rank, std::string_view algorithm) {
  if (!injection.hits(rank, algorithm)) return Status::ok();
  if (injection.kind == Injection::Kind::kCrash) {
    // The other ranks end what came before: what is lost is then the same each time.
    std::this_thread::sleep_for(std::chrono::milliseconds(200));
    ::raise(SIGKILL);
  }
  if (injection.kind != Injection::Kind::kHang) return Status::ok();
  std::this_thread::sleep_for(std::chrono::minutes(10));
  return {StatusCode::kTimeout, "this rank was told to hang"};
}

}  // namespace tutti::cli
