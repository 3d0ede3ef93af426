// Reads rank and size from the variables of the launchers there are.
#include <fmt/format.h>

#include <algorithm>
#include <charconv>

#include "base/try.hpp"
#include "bootstrap/environment.hpp"

namespace tutti {
namespace {

using Names = std::vector<std::string_view>;

// One launcher's variables. The first name of a list that is set counts.
struct LauncherVariables {
  std::string_view launcher;
  Names rank, size, local_rank, local_size;
  Names job;  // those that are set, joined by '.'
};

const std::vector<LauncherVariables>& known_launchers() {
  static const std::vector<LauncherVariables> launchers{
      {"tutti", {"TUTTI_RANK"}, {"TUTTI_SIZE"}, {}, {}, {"TUTTI_GROUP_FD"}},
      {"torchrun",
       {"RANK"},
       {"WORLD_SIZE"},
       {"LOCAL_RANK"},
       {"LOCAL_WORLD_SIZE"},
       {"TORCHELASTIC_RUN_ID", "TORCHELASTIC_RESTART_COUNT", "MASTER_PORT"}},
      {"openmpi",
       {"OMPI_COMM_WORLD_RANK"},
       {"OMPI_COMM_WORLD_SIZE"},
       {"OMPI_COMM_WORLD_LOCAL_RANK"},
       {"OMPI_COMM_WORLD_LOCAL_SIZE"},
       {"PMIX_NAMESPACE", "OMPI_MCA_ess_base_jobid"}},
      {"pmi",
       {"PMI_RANK"},
       {"PMI_SIZE"},
       {"MPI_LOCALRANKID", "PMI_LOCAL_RANK"},
       {"MPI_LOCALNRANKS", "PMI_LOCAL_SIZE"},
       {"PMI_JOBID", "PMI_PORT", "SLURM_JOB_ID", "SLURM_STEP_ID"}},
      {"slurm",
       {"SLURM_PROCID"},
       {"SLURM_STEP_NUM_TASKS", "SLURM_NTASKS", "SLURM_NPROCS"},
       {"SLURM_LOCALID"},
       {},
       {"SLURM_JOB_ID", "SLURM_STEP_ID"}},
  };
  return launchers;
}

Status malformed(std::string_view name, std::string_view value, std::string_view expected) {
  return {StatusCode::kInvalidArgument,
          fmt::format("{} is \"{}\"; expected a {}", name, value, expected)};
}

// SLURM lists tasks per node run by run: "8(x3),4" is 8, 8, 8, 4.
Result<int> slurm_tasks_on_node(std::string_view name, std::string_view list, int node) {
  const std::string_view whole = list;
  const int asked = node;
  while (!list.empty()) {
    const std::string_view run = list.substr(0, list.find(','));
    list.remove_prefix(std::min(list.size(), run.size() + 1));
    int tasks = 0, nodes = 1;
    const char* const end = run.data() + run.size();
    auto parsed = std::from_chars(run.data(), end, tasks);
    bool good = parsed.ec == std::errc{} && tasks > 0;
    if (good && parsed.ptr != end) {
      const std::string_view repeat(parsed.ptr, static_cast<std::size_t>(end - parsed.ptr));
      good = repeat.starts_with("(x") && repeat.ends_with(")");
      if (good) {
        parsed = std::from_chars(repeat.data() + 2, end - 1, nodes);
        good = parsed.ec == std::errc{} && parsed.ptr == end - 1 && nodes > 0;
      }
    }
    if (!good) return malformed(name, whole, "list of tasks per node");
    if (node < nodes) return tasks;
    node -= nodes;
  }
  return malformed(name, whole, fmt::format("list of tasks for node {}", asked));
}

Result<std::optional<int>> slurm_local_size(const EnvironmentView& environment, int size) {
  TUTTI_ASSIGN(const auto nodes,
               environment.first_number({"SLURM_STEP_NUM_NODES", "SLURM_NNODES"}, 1));
  if (nodes == 1) return std::optional<int>(size);
  TUTTI_ASSIGN(const auto node, environment.number("SLURM_NODEID", 0));
  for (const std::string_view name : {"SLURM_STEP_TASKS_PER_NODE", "SLURM_TASKS_PER_NODE"}) {
    const auto list = environment.text(name);
    if (!list) continue;
    TUTTI_ASSIGN(const int tasks, slurm_tasks_on_node(name, *list, node.value_or(0)));
    return std::optional<int>(tasks);
  }
  return std::optional<int>();
}

// Who sets RANK and WORLD_SIZE by hand and says nothing of hosts: one host if the master is here.
int assumed_local_size(const LaunchEnvironment& launch, const EnvironmentView& environment) {
  const auto master = environment.text("MASTER_ADDR");
  const bool elsewhere = launch.launcher == "torchrun" && master && *master != "localhost" &&
                         !master->starts_with("127.") && *master != "::1";
  const bool several_nodes = launch.launcher == "slurm" && environment.text("SLURM_NNODES");
  return elsewhere || several_nodes ? 1 : launch.size;
}

Status read_local_ranks(const LauncherVariables& variables, const EnvironmentView& environment,
                        LaunchEnvironment& launch) {
  TUTTI_ASSIGN(auto local_rank, environment.number("TUTTI_LOCAL_RANK", -1));
  TUTTI_ASSIGN(auto local_size, environment.number("TUTTI_LOCAL_SIZE", -1));
  if (!local_rank || local_rank < 0) {
    TUTTI_ASSIGN(local_rank, environment.first_number(variables.local_rank, 0));
  }
  if (!local_size || local_size < 1) {
    TUTTI_ASSIGN(local_size, variables.launcher == "slurm"
                                 ? slurm_local_size(environment, launch.size)
                                 : environment.first_number(variables.local_size, 1));
  }
  launch.local_size = local_size.value_or(assumed_local_size(launch, environment));
  launch.local_rank = local_rank.value_or(launch.rank % launch.local_size);
  if (launch.local_size <= launch.size && launch.local_rank < launch.local_size) {
    return Status::ok();
  }
  return {
      StatusCode::kInvalidArgument,
      fmt::format("{} gives local rank {} of {}, and {} ranks in all: a local rank is less than "
                  "the number of local ranks, which is at most that of all",
                  launch.launcher, launch.local_rank, launch.local_size, launch.size)};
}

void name_variables(const LauncherVariables& variables, const EnvironmentView& environment,
                    LaunchEnvironment& launch) {
  launch.rank_variable = variables.rank.front();
  launch.size_variable = variables.size.front();
  launch.local_size_variable =
      variables.local_size.empty() ? "TUTTI_LOCAL_SIZE" : variables.local_size.front();
  for (const std::string_view name : variables.job) {
    const auto part = environment.text(name);
    if (!part) continue;
    launch.job += fmt::format("{}{}", launch.job.empty() ? "" : ".", *part);
    const auto address = environment.text("MASTER_ADDR");
    const char* const and_this = launch.job_variables.empty() ? "" : ", ";
    launch.job_variables +=
        name == "MASTER_PORT" && address
            ? fmt::format("{}MASTER_ADDR:{} ({}:{})", and_this, name, *address, *part)
            : fmt::format("{}{} ({})", and_this, name, *part);
  }
}

// Nothing where the launcher's variables are not all there.
Result<std::optional<LaunchEnvironment>> read_one(const LauncherVariables& variables,
                                                  const EnvironmentView& environment) {
  TUTTI_ASSIGN(const auto rank, environment.first_number(variables.rank, -1));
  TUTTI_ASSIGN(const auto size, environment.first_number(variables.size, -1));
  if (rank.value_or(-1) < 0 || size.value_or(-1) < 0) return std::optional<LaunchEnvironment>();
  LaunchEnvironment launch;
  launch.launcher = variables.launcher;
  launch.rank = *rank;
  launch.size = *size;
  if (launch.rank >= launch.size) {
    return Status(StatusCode::kInvalidArgument,
                  fmt::format("{} is {}, but {} is {}", variables.rank.front(), launch.rank,
                              variables.size.front(), launch.size));
  }
  TUTTI_TRY(read_local_ranks(variables, environment, launch));
  name_variables(variables, environment, launch);
  return std::optional(launch);
}

}  // namespace

std::optional<std::string_view> EnvironmentView::text(std::string_view name) const {
  for (const std::string& entry : environment_) {
    const std::string_view whole(entry);
    if (whole.size() > name.size() + 1 && whole.starts_with(name) && whole[name.size()] == '=') {
      return whole.substr(name.size() + 1);
    }
  }
  return std::nullopt;
}

Result<std::optional<int>> EnvironmentView::number(std::string_view name, int min) const {
  const auto value = text(name);
  if (!value) return std::optional<int>();
  int number = 0;
  const auto [end, error] = std::from_chars(value->data(), value->data() + value->size(), number);
  if (error == std::errc{} && end == value->data() + value->size() && number >= min) {
    return std::optional(number);
  }
  return malformed(name, *value, fmt::format("number >= {}", min));
}

Result<std::optional<int>> EnvironmentView::first_number(const std::vector<std::string_view>& names,
                                                         int min) const {
  for (const std::string_view name : names) {
    TUTTI_ASSIGN(const auto value, number(name, min));
    if (value) return value;
  }
  return std::optional<int>();
}

Result<LaunchEnvironment> read_launch_environment(const std::vector<std::string>& environment) {
  const EnvironmentView view(environment);
  std::string looked_for, half;
  for (const LauncherVariables& variables : known_launchers()) {
    TUTTI_ASSIGN(const auto launch, read_one(variables, view));
    if (launch) return *launch;
    const std::string_view rank = variables.rank.front(), size = variables.size.front();
    if (view.text(rank).has_value() != view.text(size).has_value()) {
      half += view.text(rank) ? fmt::format(": {} is set, but {} is not", rank, size)
                              : fmt::format(": {} is set, but {} is not", size, rank);
    }
    looked_for += fmt::format("{}{} and {} ({})", looked_for.empty() ? "" : ", ",
                              variables.rank.front(), variables.size.front(), variables.launcher);
  }
  return Status(StatusCode::kUnavailable,
                fmt::format("no launcher has set this process's rank and the number of ranks{}; "
                            "looked for {}",
                            half, looked_for));
}

}  // namespace tutti
