// The `tutti` command: what can be asked of it, and which function answers.
#include <fcntl.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <exception>
#include <functional>
#include <memory>
#include <new>
#include <string>
#include <utility>
#include <vector>

#include "algorithms/catalogue.hpp"
#include "base/knobs.hpp"
#include "base/nearest.hpp"
#include "base/process_environment.hpp"
#include "bench/all_gather_matmul/arguments.hpp"
#include "bench/all_gather_matmul/command.hpp"
#include "bench/arguments.hpp"
#include "bench/command.hpp"
#include "bench/matmul/arguments.hpp"
#include "bench/matmul/command.hpp"
#include "bench/one_sided/arguments.hpp"
#include "bench/one_sided/command.hpp"
#include "bench/overlap/arguments.hpp"
#include "bench/overlap/command.hpp"
#include "bootstrap/environment.hpp"
#include "commit.hpp"
#include "completion/command.hpp"
#include "doctor/command.hpp"
#include "env.hpp"
#include "exit_code.hpp"
#include "explain.hpp"
#include "explain_matmul.hpp"
#include "explain_pipelines.hpp"
#include "help_formatter.hpp"
#include "matmul/tiles.hpp"
#include "model/arguments.hpp"
#include "model/command.hpp"
#include "report/command.hpp"
#include "run/arguments.hpp"
#include "run/command.hpp"
#include "status/command.hpp"
#include "tell.hpp"
#include "tune/all_gather_matmul/command.hpp"
#include "tune/all_gather_matmul/options.hpp"
#include "tune/arguments.hpp"
#include "tune/command.hpp"
#include "tutti/version.hpp"
#include "usage_error.hpp"
#include "value_types.hpp"

namespace tutti::cli {
namespace {

using Answer = std::function<int()>;

void add_one_sided(CLI::App& bench, OneSidedArguments& a, Answer& answer,
                   const std::string& command_line) {
  const char* const text = a.kind == OneSided::kPut ? "Measure puts into the next rank's memory"
                                                    : "Measure gets from the next rank's memory";
  CLI::App& command = *bench.add_subcommand(std::string(to_string(a.kind)), text);
  add_one_sided_options(command, a);
  command.callback([&] { answer = [&] { return run_one_sided_bench(a, command_line); }; });
}

// The subcommand that somebody mistyped who named no collective; else empty.
std::string subcommand_meant(const CLI::App& bench, const std::string& collective) {
  std::vector<std::string> names;
  for (const CLI::App* known : bench.get_subcommands({})) names.push_back(known->get_name());
  std::vector<std::string_view> collectives, subcommands(names.begin(), names.end());
  for (const Collective known : kAllCollectives) collectives.push_back(to_string(known));
  if (parse_collective(collective).is_ok() || !nearest(collective, collectives).empty()) return {};
  return std::string(nearest(collective, subcommands));
}

struct AllBenchArguments {
  BenchArguments collective;
  OverlapArguments overlap;
  MatmulArguments matmul;
  AllGatherMatmulArguments all_gather_matmul;
  OneSidedArguments put{.kind = OneSided::kPut}, get{.kind = OneSided::kGet};
  HostsArguments on;
};

void add_matmul_bench(CLI::App& bench, MatmulArguments& a, Answer& answer,
                      const std::string& command_line) {
  CLI::App& matmul = *bench.add_subcommand(
      "matmul", "Measure the own matmul and cuBLASLt's on one GPU, and check their results");
  add_matmul_options(matmul, a);
  matmul.callback([&] { answer = [&] { return run_matmul_bench(a, command_line); }; });
}

void add_all_gather_matmul_bench(CLI::App& bench, AllGatherMatmulArguments& a, Answer& answer,
                                 const std::string& command_line) {
  CLI::App& command = *bench.add_subcommand("all_gather_matmul",
                                            "Measure the gather of a matrix and its product on "
                                            "several ranks, or on one GPU that acts for "
                                            "several, and check the results");
  add_all_gather_matmul_options(command, a);
  command.callback([&] { answer = [&] { return run_all_gather_matmul_bench(a, command_line); }; });
}

void add_bench(CLI::App& app, AllBenchArguments& all, Answer& answer,
               const std::string& command_line) {
  BenchArguments& a = all.collective;
  OverlapArguments& o = all.overlap;
  CLI::App& bench = *app.add_subcommand(
      "bench", "Measure a collective, algorithm by algorithm, and check its results");
  add_bench_options(bench, a);
  CLI::App& overlap = *bench.add_subcommand(
      "overlap", "Measure an all_gather that runs concurrently with a matmul, or before it");
  add_overlap_options(overlap, o);
  overlap.callback([&] { answer = [&] { return run_overlap(o, command_line); }; });
  add_matmul_bench(bench, all.matmul, answer, command_line);
  add_all_gather_matmul_bench(bench, all.all_gather_matmul, answer, command_line);
  add_one_sided(bench, all.put, answer, command_line);
  add_one_sided(bench, all.get, answer, command_line);
  // A matmul has one rank.
  add_hosts_options(bench, all.on);
  for (CLI::App* command : bench.get_subcommands({})) {
    if (command->get_name() != "matmul") add_hosts_options(*command, all.on);
  }
  bench.callback([&] {
    if (answer) return;  // a subcommand's
    if (a.collective.empty()) throw CLI::RequiredError("collective");
    answer = [&] {
      const std::string meant = subcommand_meant(bench, a.collective);
      if (meant.empty()) return run_bench(a, command_line);
      tell_line(stderr, "tutti bench: unknown collective '{}'; did you mean '{}'?", a.collective,
                meant);
      return kUsage;
    };
  });
}

struct AllTuneArguments {
  TuneArguments collective;
  TuneAllGatherMatmulArguments all_gather_matmul;
};

void add_tune(CLI::App& app, AllTuneArguments& all, Answer& answer,
              const std::string& command_line) {
  TuneArguments& a = all.collective;
  CLI::App& tune = *app.add_subcommand(
      "tune", "Measure which algorithms are fastest on this machine, and write a tuning table");
  add_tune_options(tune, a);
  TuneAllGatherMatmulArguments& fused = all.all_gather_matmul;
  CLI::App& command = *tune.add_subcommand(
      "all_gather_matmul",
      "Measure which algorithms of all_gather_matmul are fastest, and write a tuning table");
  add_tune_all_gather_matmul_options(command, fused);
  command.callback(
      [&] { answer = [&] { return run_tune_all_gather_matmul(fused, command_line); }; });
  tune.callback([&] {
    if (answer) return;  // the subcommand's
    answer = [&] { return run_tune(a, command_line); };
  });
}

void add_run(CLI::App& app, RunArguments& a, Answer& answer) {
  CLI::App& run =
      *app.add_subcommand("run", "Start a program as several ranks, here or on several hosts");
  add_run_options(run, a);
  run.callback([&] { answer = [&] { return run_program(a); }; });
}

void add_explained_call(CLI::App& explain, ExplainArguments& a) {
  add_collective(explain, a.collective);
  explain.option_defaults()->group("Call");
  explain.add_option("--bytes", a.bytes, "Size of the message")
      ->type_name("BYTES")
      ->default_str("1M");
  add_rows(explain, a.rows, a.hidden, false);
  add_split_rows(explain, a.split_rows);
  explain.add_option("-d,--dtype", a.dtype, "Element type, as in `tutti bench`")
      ->type_name("DTYPE")
      ->default_str("bf16; fp32 on the host");
  add_op(explain, a.op);
  explain.add_option("--algorithm", a.algorithm, "Assume that the call names this algorithm")
      ->type_name("ALGORITHM");
  add_sm_budget(explain, a.sm_budget);
  explain.add_option("--buffers", a.buffers, "Kind of memory that the message is in")
      ->type_name("symmetric|plain")
      ->default_str("symmetric");
  explain.add_option("--mode", a.mode, "eager, or graph: inside a capture")
      ->type_name("eager|graph")
      ->default_str("eager");
  explain.add_flag("--in-place", a.in_place, "The call is in place");
  explain.add_flag("--deterministic", a.deterministic,
                   "Allow only algorithms that give the same bits on every machine");
}

void add_explained_matmul(CLI::App& explain, ExplainMatmulArguments& a, Answer& answer) {
  CLI::App& matmul = *explain.add_subcommand(
      "matmul", "Show which algorithm and tile a matmul would use, and why");
  matmul.option_defaults()->group("Call");
  matmul.add_option("--m", a.m, "Rows of A and C")->type_name("N")->default_str("8192");
  matmul.add_option("--n", a.n, "Columns of B and C")->type_name("N")->default_str("8192");
  matmul.add_option("--k", a.k, "Columns of A, rows of B")->type_name("N")->default_str("8192");
  matmul.add_option("-d,--dtype", a.dtype, "Element type")
      ->type_name("bf16|fp16|fp32")
      ->default_str("bf16; fp32 on the host");
  matmul.add_option("--layout", a.layout, "Layout of B")
      ->type_name("row|column")
      ->default_str("row");
  matmul.add_flag("--bias", a.bias, "Add a bias to each row of C");
  matmul.add_option("--products", a.products, "Multiply one A by this many Bs")
      ->type_name("N")
      ->default_str("1");
  matmul.add_option("--algorithm", a.algorithm, "Assume that the call names this algorithm")
      ->type_name("own_matmul|cublaslt_matmul|plain_matmul|host_matmul");
  matmul.add_option("--tile", a.tile, "Assume that the call names this tile")
      ->type_name(fmt::format("{}", fmt::join(matmul_tile_names(), "|")));
  matmul.option_defaults()->group("Machine");
  add_backend(matmul, a.backend);
  matmul.add_option("--gpu", a.gpu, "Assume a machine with such a GPU, such as h200")
      ->type_name("NAME");
  matmul.option_defaults()->group("Output");
  matmul.add_flag("--json", a.json, "Print JSON");
  matmul.footer("  tutti explain matmul --m 4096 --n 1792 --k 4096 --gpu h200\n");
  matmul.callback([&] { answer = [&] { return run_explain_matmul(a); }; });
}

void add_explained_pipelines(CLI::App& explain, ExplainPipelinesArguments& a, Answer& answer) {
  CLI::App& command = *explain.add_subcommand(
      "all_gather_matmul", "Show which algorithm a call would use, and programs of pipelines");
  add_explain_pipelines_options(command, a);
  command.callback([&] { answer = [&] { return run_explain_pipelines(a); }; });
}

struct AllExplainArguments {
  ExplainArguments collective;
  ExplainMatmulArguments matmul;
  ExplainPipelinesArguments pipelines;
};

void add_explain(CLI::App& app, AllExplainArguments& all, Answer& answer) {
  ExplainArguments& a = all.collective;
  CLI::App& explain =
      *app.add_subcommand("explain", "Show which algorithm a call would use, and why");
  add_explained_matmul(explain, all.matmul, answer);
  add_explained_pipelines(explain, all.pipelines, answer);
  add_explained_call(explain, a);
  explain.option_defaults()->group("Machine");
  explain.add_option("--ranks", a.ranks, "Number of ranks; 2x8: on 2 nodes, 8 on each")
      ->type_name("N")
      ->default_str("all GPUs; 2 on the host and with --gpu");
  add_backend(explain, a.backend);
  explain
      .add_option("--gpu", a.gpu,
                  "Assume a machine with these GPUs, such as h200; list: print the known names")
      ->type_name("NAME");
  explain.option_defaults()->group("Output");
  explain.add_flag("--json", a.json, "Print JSON");
  explain.footer(
      "  tutti explain all_reduce --bytes 64K\n"
      "  tutti explain all_gather --ranks 8 --bytes 1M --gpu h200 --sm-budget 8\n");
  explain.callback([&] {
    if (answer) return;  // the subcommand's
    if (a.collective.empty() && a.gpu != "list") throw CLI::RequiredError("collective");
    answer = [&] { return run_explain(a); };
  });
}

void add_status(CLI::App& app, StatusArguments& a, Answer& answer) {
  CLI::App& status = *app.add_subcommand(
      "status", "Show which rank waits for which, in every group that runs on this machine");
  status
      .add_option("--merge", a.merge,
                  "After a failure: read the records in this folder, the ranks' TUTTI_TRACE_DIR")
      ->type_name("FOLDER");
  status.add_option("--group", a.group, "Show only groups whose name starts with this text")
      ->type_name("TEXT")
      ->default_str("all");
  status.add_option("--patience", a.patience, "Time after which an operation counts as late")
      ->type_name("SECONDS")
      ->default_str("5; 0 with --merge");
  status.add_option("--operations", a.operations, "Also print the last N operations of each rank")
      ->type_name("N")
      ->default_str("0");
  status.add_flag("--json", a.json, "Print JSON");
  status.footer(
      "  tutti status\n"
      "  tutti status --operations 5\n"
      "  TUTTI_TRACE_DIR=trace tutti run -n 4 ./program; tutti status --merge trace\n");
  status.callback([&] { answer = [&] { return run_status(a); }; });
}

void add_machine(CLI::App& app, DoctorArguments& doctor_arguments, bool& env_json, Answer& answer) {
  CLI::App& doctor =
      *app.add_subcommand("doctor", "Check this machine, and say how to fix what is wrong");
  doctor.add_flag("--json", doctor_arguments.json, "Print JSON");
  doctor.footer("  tutti doctor\n  tutti doctor --json > machine.json\n");
  doctor.callback([&] { answer = [&] { return run_doctor(doctor_arguments); }; });

  CLI::App& env = *app.add_subcommand(
      "env", "List every setting with its value and where the value comes from");
  env.add_flag("--json", env_json, "Print JSON");
  env.footer("  tutti env\n  TUTTI_DEBUG=INFO tutti env --json\n");
  env.callback([&] { answer = [&] { return run_env(env_json); }; });
}

void add_model(CLI::App& app, ModelArguments& a, Answer& answer, const std::string& command_line) {
  CLI::App& model = *app.add_subcommand(
      "model", "Simulate the algorithms between nodes on a cluster that need not be there");
  add_model_options(model, a);
  model.callback([&] { answer = [&] { return run_model(a, command_line); }; });
}

void add_report(CLI::App& app, ReportArguments& r, Answer& answer) {
  CLI::App& report = *app.add_subcommand("report", "Render measured results into documents");
  report.add_option("--results", r.results, "Folder with the results: <machine>/<what>.json")
      ->type_name("FOLDER")
      ->capture_default_str();
  report.add_option("--docs", r.docs, "Document to write")
      ->type_name("FILE")
      ->capture_default_str();
  report.add_option("--readme", r.readme, "Document whose headline table to replace")
      ->type_name("FILE")
      ->default_str("README.md, if it exists");
  report.add_option("--html", r.html, "Write one self-contained page instead")->type_name("FILE");
  report.add_flag("--check", r.check, "Write nothing; fail if a document would change");
  report.footer("  tutti report\n  tutti report --check\n  tutti report --html report.html\n");
  report.callback([&] { answer = [&] { return run_report(r); }; });
}

void add_completion(CLI::App& app, std::string& shell, Answer& answer) {
  CLI::App& completion = *app.add_subcommand(
      "completion", "Print the completion script of this command for bash, zsh or fish");
  completion.add_option("shell", shell, "The shell")->type_name("bash|zsh|fish")->required();
  completion.footer(
      "  source <(tutti completion bash)\n"
      "  tutti completion fish > ~/.config/fish/completions/tutti.fish\n");
  completion.callback([&] { answer = [&] { return run_completion(app, shell); }; });
}

int print_help(CLI::App& app, const std::vector<std::string>& command) {
  std::string why_not;
  const CLI::App* const found = find_command(app, command, why_not);
  if (found == nullptr) {
    tell_line(stderr, "tutti help: {}", why_not);
    return kUsage;
  }
  tell_as_is(stdout, HelpFormatter().make_help(found, full_name(*found), {}));
  return kSuccess;
}

void add_help(CLI::App& app, std::vector<std::string>& command, Answer& answer) {
  CLI::App& help = *app.add_subcommand("help", "Explain a command and its options");
  help.add_option("command", command, "The command")
      ->type_name(std::string(kCommandType))
      ->default_str("the list of all commands");
  help.footer("  tutti help bench\n  tutti help bench overlap\n");
  help.callback([&] { answer = [&] { return print_help(app, command); }; });
}

// Fills closed standard descriptors, so that no file or socket that is opened later gets their
// numbers. They are read-only, so that writing to them is an error, which flushed() reports.
void occupy_standard_descriptors() {
  for (const int fd : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO}) {
    if (::fcntl(fd, F_GETFD) < 0) (void)!::open("/dev/null", O_RDONLY);
  }
}

// A result that is lost is a failure.
int flushed(int exit_code) {
  errno = 0;
  const bool lost = std::fflush(stdout) != 0 || std::ferror(stdout) != 0;
  if (!lost) return exit_code;
  tell_line(stderr, "tutti: cannot write to standard output: {}",
            errno != 0 ? std::strerror(errno) : "what was written before is lost");
  return exit_code == kSuccess ? kFailure : exit_code;
}

// `env` prints what is wrong with settings itself, and the ranks of `run` report it. Of processes
// that a launcher has started, one does.
void report_settings(const CLI::App& app) {
  if (app.got_subcommand("env") || app.got_subcommand("run")) return;
  const auto launch = read_launch_environment(process_environment());
  if (!launch.is_ok() || launch->rank == 0) Knobs::report();
}

// The texts of all options, by command.
struct Arguments {
  AllBenchArguments bench;
  AllTuneArguments tune;
  RunArguments run;
  AllExplainArguments explain;
  StatusArguments status;
  DoctorArguments doctor;
  bool env_json = false;
  ModelArguments model;
  ReportArguments report;
  std::string shell;
  std::vector<std::string> help;
};

void set_up(CLI::App& app) {
  app.name("tutti");
  app.formatter(std::make_shared<HelpFormatter>());
  app.set_help_flag("-h,--help", "Print this page");
  app.set_version_flag("--version", fmt::format("tutti {} ({})", version(), commit()),
                       "Print the version");
  app.require_subcommand(1);
  app.footer(
      "  tutti doctor\n"
      "  tutti bench all_reduce --ranks 2\n"
      "  tutti run -n 4 ./program\n"
      "  tutti help bench\n");
}

int run(const std::vector<std::string>& words) {
  CLI::App app("Low-latency collectives for the GPUs of one node: measure, explain, run, diagnose");
  set_up(app);
  const std::string command_line = fmt::format("tutti {}", fmt::join(words, " "));
  Answer answer;
  Arguments a;
  add_bench(app, a.bench, answer, command_line);
  add_tune(app, a.tune, answer, command_line);
  add_explain(app, a.explain, answer);
  add_run(app, a.run, answer);
  add_status(app, a.status, answer);
  add_machine(app, a.doctor, a.env_json, answer);
  add_model(app, a.model, answer, command_line);
  add_report(app, a.report, answer);
  add_completion(app, a.shell, answer);
  add_help(app, a.help, answer);
  if (words.empty()) {
    tell_as_is(stdout, app.help());
    return kUsage;
  }
  try {
    std::vector<std::string> parsed = words;
    if (parsed.front() == "run") a.run.program = take_program(*app.get_subcommand("run"), parsed);
    std::ranges::reverse(parsed);  // as CLI11 takes them
    app.parse(std::move(parsed));
  } catch (const CLI::ParseError& error) {
    if (error.get_exit_code() != static_cast<int>(CLI::ExitCodes::Success)) {
      tell_line(stderr, "{}", usage_error(app, error));
      return kUsage;
    }
    app.exit(error);
    return kSuccess;
  }
  if (const std::string empty = empty_value_error(app); !empty.empty()) {
    tell_line(stderr, "{}", empty);
    return kUsage;
  }
  report_settings(app);
  return a.bench.on.any_given() ? run_on_hosts(a.bench.on, words) : answer();
}

}  // namespace
}  // namespace tutti::cli

int main(int argc, char** argv) {
  using namespace tutti::cli;
  occupy_standard_descriptors();
  try {
    return flushed(run({argv + std::min(argc, 1), argv + argc}));
  } catch (const std::bad_alloc&) {
    tell_line(stderr, "tutti: there is not enough memory for this; give smaller sizes");
  } catch (const std::exception& error) {
    tell_line(stderr, "tutti: {}", error.what());
  }
  return kFailure;
}
