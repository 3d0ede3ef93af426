#include "model/arguments.hpp"

#include <fmt/format.h>

#include "bench/arguments.hpp"

namespace tutti::cli {
namespace {

constexpr const char* kExamples =
    "  tutti model all_reduce --nodes 8,64,1024 --link ib400\n"
    "  tutti model all_to_all --nodes 16 --gpus-per-node 4 --link roce100 --bytes 1M,64M\n"
    "  tutti model --link tcp25 --print-link > link.json\n"
    "  tutti model all_reduce --link link.json --fit measured.json --output fitted.json\n";

void add_cluster(CLI::App& command, ModelArguments& a) {
  command.option_defaults()->group("Cluster");
  command.add_option("--nodes", a.nodes, "Numbers of nodes, one after the other")
      ->type_name("N[,...]")
      ->default_str("2,4,8");
  command.add_option("--gpus-per-node", a.gpus_per_node, "Ranks of each node")
      ->type_name("N")
      ->default_str("8; 1 with --compare, --fit and rings of kernels");
  command
      .add_option("--link", a.link,
                  fmt::format("{}, or a file that describes a link",
                              fmt::join(model::preset_names(), ", ")))
      ->type_name("LINK")
      ->default_str("ib400");
  command.add_option("--gbit-per-s", a.gbit_per_s, "Rate between nodes, instead of the link's")
      ->type_name("RATE");
  command.add_flag("--unfolded", a.unfolded,
                   "Simulate every rank, also those that behave like another one");
}

void add_results(CLI::App& command, ModelArguments& a) {
  command.option_defaults()->group("Results");
  command
      .add_option("--compare", a.compare,
                  "Compare with these results of `tutti bench` instead: the sizes and ranks there")
      ->type_name("FILE[,...]");
  command
      .add_option("--fit", a.fit,
                  "Fit the link to half of these results instead; the rest says how good it is")
      ->type_name("FILE[,...]");
  command.add_option("--output", a.output, "Write the results, or with --fit the link, as JSON")
      ->type_name("FILE");
  command.add_flag("--print-link", a.print_link, "Print the link as a file, and nothing else");
}

}  // namespace

void add_model_options(CLI::App& command, ModelArguments& a) {
  add_collective(command, a.sizes.collective);
  command.get_option("collective")->default_str("all_reduce");
  add_cluster(command, a);
  add_sweep_options(command, a.sizes);
  command.get_option("--max-bytes")->default_str("64M");
  command.get_option("--factor")->default_str("4");
  command.get_option("--dtype")->default_str("fp32");
  command.add_option("-r,--root", a.sizes.root, "Root of broadcast, reduce, gather and scatter")
      ->type_name("RANK")
      ->default_str("0");
  command.option_defaults()->group("Algorithms");
  command.add_option("--algorithms", a.algorithms, "all, or names: network_ring,hierarchical")
      ->type_name("ALGORITHM[,...]")
      ->default_str("all");
  add_results(command, a);
  command.footer(kExamples);
}

}  // namespace tutti::cli
