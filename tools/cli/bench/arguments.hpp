// The options of `tutti bench`, as CLI11 parses them, and those that other commands share.
#pragma once

#include <CLI/CLI.hpp>

#include <string>

#include "bench/options.hpp"

namespace tutti::cli {

// What is filled in must outlive the parsing.
void add_bench_options(CLI::App& bench, BenchArguments& arguments);

// Parts of it. A default is what the help page says of it.
void add_collective(CLI::App& command, std::string& collective);
void add_ranks(CLI::App& command, std::string& ranks, const char* otherwise);
void add_backend(CLI::App& command, std::string& backend);
void add_sweep_options(CLI::App& command, BenchArguments& arguments);  // sizes and type
// Messages as matrices; `several`: a list of numbers of rows.
void add_rows(CLI::App& command, std::string& rows, std::string& hidden, bool several);
void add_split_rows(CLI::App& command, bool& split_rows);
void add_op(CLI::App& command, std::string& op);
void add_sm_budget(CLI::App& command, std::string& sm_budget);
void add_sample_options(CLI::App& command, BenchArguments& arguments);
void add_repetitions(CLI::App& command, BenchArguments& arguments, const char* samples,
                     const char* warmup);
void add_check(CLI::App& command, BenchArguments& arguments);
void add_file_options(CLI::App& command, BenchArguments& arguments);
// How ranks are run; `launch` says what happens without --launch.
void add_rank_options(
    CLI::App& command, BenchArguments& arguments,
    const char* launch = "processes; under mpirun, torchrun or srun: their ranks");
// Of commands that start ranks themselves.
inline constexpr const char* kStartsRanks =
    "processes; under mpirun, torchrun or srun it is needed";

}  // namespace tutti::cli
