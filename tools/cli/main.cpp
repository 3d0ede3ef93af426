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
#include <new>
#include <string>
#include <string_view>

#include "bench/arguments.hpp"
#include "bench/command.hpp"
#include "bench/one_sided/arguments.hpp"
#include "bench/one_sided/command.hpp"
#include "bench/overlap/arguments.hpp"
#include "bench/overlap/command.hpp"
#include "commit.hpp"
#include "doctor/command.hpp"
#include "env.hpp"
#include "exit_code.hpp"
#include "explain.hpp"
#include "report/command.hpp"
#include "status/command.hpp"
#include "tell.hpp"
#include "tune/arguments.hpp"
#include "tune/command.hpp"
#include "tutti/version.hpp"

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

struct AllBenchArguments {
  BenchArguments collective;
  OverlapArguments overlap;
  OneSidedArguments put{.kind = OneSided::kPut}, get{.kind = OneSided::kGet};
};

void add_bench(CLI::App& app, AllBenchArguments& all, Answer& answer,
               const std::string& command_line) {
  BenchArguments& a = all.collective;
  OverlapArguments& o = all.overlap;
  CLI::App& bench = *app.add_subcommand("bench", "Measure a collective, algorithm by algorithm");
  add_bench_options(bench, a);
  CLI::App& overlap = *bench.add_subcommand("overlap", "Measure a matmul beside an all_gather");
  add_overlap_options(overlap, o);
  overlap.callback([&] { answer = [&] { return run_overlap(o, command_line); }; });
  add_one_sided(bench, all.put, answer, command_line);
  add_one_sided(bench, all.get, answer, command_line);
  bench.callback([&] {
    if (answer) return;  // a subcommand's
    if (a.collective.empty()) throw CLI::RequiredError("collective");
    answer = [&] { return run_bench(a, command_line); };
  });
}

void add_tune(CLI::App& app, TuneArguments& a, Answer& answer, const std::string& command_line) {
  CLI::App& tune = *app.add_subcommand("tune", "Measure what is best here, for all later choices");
  add_tune_options(tune, a);
  tune.callback([&] { answer = [&] { return run_tune(a, command_line); }; });
}

void add_explain(CLI::App& app, ExplainArguments& a, Answer& answer) {
  CLI::App& explain = *app.add_subcommand("explain", "Say which algorithm a call takes, and why");
  explain.add_option(
      "collective", a.collective,
      "all_reduce, all_reduce_residual_rms_norm, all_gather, reduce_scatter, all_to_all, "
      "broadcast, reduce, gather, scatter, send_recv, all_gather_v, reduce_scatter_v, "
      "all_to_all_v "
      "or barrier");
  explain.add_option("--ranks", a.ranks, "Number of ranks");
  explain.add_option("--bytes", a.bytes, "Size of the message: 1M");
  explain.add_option("--rows", a.rows, "Or as many tokens of --hidden elements: 32");
  explain.add_option("--hidden", a.hidden, "Elements of a token: 8192");
  explain.add_flag("--split-rows", a.split_rows, "reduce_scatter: a rank gets its columns of each");
  explain.add_option("-d,--dtype", a.dtype, "Element type: bf16");
  explain.add_option("-o,--op", a.op, "Reduction: sum");
  explain.add_option("--algorithm", a.algorithm, "As if the call named it");
  explain.add_option("--sm-budget", a.sm_budget, "Multiprocessors at most; 0: copy engines alone");
  explain.add_option("--buffers", a.buffers, "symmetric or plain");
  explain.add_option("--mode", a.mode, "eager, or graph: inside a capture");
  explain.add_flag("--in-place", a.in_place, "Output is input");
  explain.add_flag("--deterministic", a.deterministic, "Only rows with the same bits everywhere");
  explain.add_option("--backend", a.backend, "auto, host or cuda");
  explain.add_option("--gpu", a.gpu,
                     "GPUs that this machine need not have: h200; list: lists them");
  explain.add_flag("--json", a.json, "Print JSON");
  explain.callback([&] {
    if (a.collective.empty() && a.gpu != "list") throw CLI::RequiredError("collective");
    answer = [&] { return run_explain(a); };
  });
}

void add_status(CLI::App& app, StatusArguments& a, Answer& answer) {
  CLI::App& status =
      *app.add_subcommand("status", "Say who waits for whom, in the groups that run");
  status.add_flag("--json", a.json, "Print JSON");
  status.add_option("--merge", a.merge, "Find the culprit in the records of a TUTTI_TRACE_DIR");
  status.add_option("--group", a.group, "Only the group whose name begins like this");
  status.add_option("--patience", a.patience, "Seconds that an operation may take: 5");
  status.add_option("--operations", a.operations, "Print the last N operations of each rank: 0");
  status.callback([&] { answer = [&] { return run_status(a); }; });
}

void add_others(CLI::App& app, DoctorArguments& doctor_arguments, ReportArguments& r,
                bool& env_json, Answer& answer) {
  CLI::App& doctor = *app.add_subcommand("doctor", "Check this machine, and say how to mend it");
  doctor.add_flag("--json", doctor_arguments.json, "Print JSON");
  doctor.callback([&] { answer = [&] { return run_doctor(doctor_arguments); }; });

  CLI::App& env = *app.add_subcommand("env", "List every setting, its value and its source");
  env.add_flag("--json", env_json, "Print JSON");
  env.callback([&] { answer = [&] { return run_env(env_json); }; });

  CLI::App& report = *app.add_subcommand("report", "Render results into docs and README");
  report.add_option("--results", r.results, "Folder of <machine>/<what>.json")
      ->capture_default_str();
  report.add_option("--docs", r.docs, "File that is written")->capture_default_str();
  report.add_option("--readme", r.readme, "File whose headline is replaced: README.md, if any");
  report.add_option("--html", r.html, "Write one self-contained page to this file instead");
  report.add_flag("--check", r.check, "Write nothing; fail if something would change");
  report.callback([&] { answer = [&] { return run_report(r); }; });
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

struct Typed {
  const CLI::App* command;  // the innermost one that was understood
  std::string name;         // "tutti bench overlap"
};

Typed what_was_typed(const CLI::App& app) {
  Typed typed{&app, app.get_name()};
  for (auto inner = app.get_subcommands(); !inner.empty();
       inner = typed.command->get_subcommands()) {
    typed.command = inner.front();
    typed.name += " " + typed.command->get_name();
  }
  return typed;
}

int refuse(const CLI::App& app, std::string_view why) {
  tell_line(stderr, "tutti: {}; `{} --help` lists what it takes", why, what_was_typed(app).name);
  return kUsage;
}

// An option with an empty value: scripts give one where a variable is not set.
const CLI::Option* find_empty(const CLI::App& app) {
  for (const CLI::Option* option : app.get_options()) {
    const auto& values = option->results();
    if (std::find(values.begin(), values.end(), "") != values.end()) return option;
  }
  for (const CLI::App* inner : app.get_subcommands()) {
    if (const CLI::Option* empty = find_empty(*inner); empty != nullptr) return empty;
  }
  return nullptr;
}

int run(int argc, char** argv) {
  CLI::App app("Collectives on symmetric memory: measure, explain and check");
  app.name("tutti");
  app.set_version_flag("--version", fmt::format("tutti {} ({})", version(), commit()));
  app.require_subcommand(1);
  const std::string command_line =
      fmt::format("tutti {}", fmt::join(argv + (argc > 0 ? 1 : 0), argv + argc, " "));
  Answer answer;
  AllBenchArguments bench;
  TuneArguments tune;
  ExplainArguments explain;
  DoctorArguments doctor;
  ReportArguments report;
  StatusArguments status;
  bool env_json = false;
  add_bench(app, bench, answer, command_line);
  add_tune(app, tune, answer, command_line);
  add_explain(app, explain, answer);
  add_status(app, status, answer);
  add_others(app, doctor, report, env_json, answer);
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    const bool asked = error.get_exit_code() == static_cast<int>(CLI::ExitCodes::Success);
    const auto unknown = app.remaining();
    if (!asked && app.get_subcommands().empty() && !unknown.empty()) {
      return refuse(app, fmt::format("'{}' is no command", unknown.front()));
    }
    if (!asked) return refuse(app, error.what());
    app.exit(error);
    return kSuccess;
  }
  if (const CLI::Option* empty = find_empty(app); empty != nullptr) {
    return refuse(app, empty->get_name() + " has an empty value; leave it out for the default");
  }
  return answer();
}

}  // namespace
}  // namespace tutti::cli

int main(int argc, char** argv) {
  using namespace tutti::cli;
  occupy_standard_descriptors();
  try {
    return flushed(run(argc, argv));
  } catch (const std::bad_alloc&) {
    tell_line(stderr, "tutti: there is not enough memory for this; give smaller sizes");
  } catch (const std::exception& error) {
    tell_line(stderr, "tutti: {}", error.what());
  }
  return kFailure;
}
