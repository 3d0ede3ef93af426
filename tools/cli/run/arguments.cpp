#include "run/arguments.hpp"

#include <algorithm>
#include <cstddef>

#include "value_types.hpp"

namespace tutti::cli {

void add_hosts_options(CLI::App& command, HostsArguments& a) {
  command.option_defaults()->group("Several hosts");
  command
      .add_option("--hosts", a.hosts,
                  "Run on these hosts, with so many ranks on each; 1 if not "
                  "said")
      ->type_name("HOST[:N][,...]");
  command
      .add_option("--ssh", a.ssh, "Command that reaches a host; gets its name and a command line")
      ->type_name("COMMAND")
      ->default_str("TUTTI_SSH, otherwise ssh -o BatchMode=yes");
  command.add_option("--remote-tutti", a.remote_tutti, "Path of tutti on the hosts")
      ->type_name("PATH")
      ->default_str("that of this one");
  command
      .add_option("--env", a.environment,
                  "Also pass this variable to the ranks, again for each; TUTTI_* are passed anyway")
      ->type_name("NAME[=VALUE]")
      ->allow_extra_args(false);
}

void add_run_options(CLI::App& run, RunArguments& a) {
  run.add_option("program", a.program,
                 "Program that every rank runs. `--` before it ends the options of `tutti run`")
      ->type_name(std::string(kProgramType));
  run.add_option("-n,--ranks", a.ranks, "Number of ranks (required without --hosts)")
      ->type_name("N");
  run.add_flag(
      "--no-bind", a.no_bind,
      "Let every rank use all cores. By default each rank has an equal share of them, unless "
      "there are more ranks than cores");
  run.add_flag("--no-prefix", a.no_prefix,
               "Do not put [RANK] in front of each line that a rank prints");
  run.add_option("--grace", a.grace,
                 "After the first failure: time from SIGTERM to SIGKILL for the other ranks")
      ->type_name("SECONDS")
      ->default_str("5");
  add_hosts_options(run, a.on);
  run.add_option("--root", a.on.root, "Address where rank 0 listens for ranks of other hosts")
      ->type_name("ADDRESS[:PORT]")
      ->default_str("TUTTI_ROOT, otherwise the first host, at a free port");
  run.add_option("--folder", a.on.folder, "Folder on the hosts in which the ranks run")
      ->type_name("FOLDER")
      ->default_str("this one");
  run.add_flag("--agent", a.agent)->group("");
  run.footer(
      "  tutti run -n 4 ./program --its options\n"
      "  tutti run -n 2 --no-prefix -- python3 train.py > log\n"
      "  tutti run -n 8 sh -c 'echo rank $RANK of $WORLD_SIZE'\n"
      "  tutti run --hosts node0:4,node1:4 --env LD_LIBRARY_PATH -- ./program\n"
      "\n"
      "Every rank gets RANK, WORLD_SIZE, LOCAL_RANK, LOCAL_WORLD_SIZE, MASTER_ADDR and "
      "MASTER_PORT,\n"
      "as torchrun sets them; Communicator::create_from_environment() and torch.distributed read\n"
      "them. Rank 0 reads standard input, unless it is a terminal; other ranks read nothing.\n");
}

std::vector<std::string> take_program(const CLI::App& run, std::vector<std::string>& words) {
  std::size_t i = 1;
  for (; i < words.size() && words[i].starts_with("-") && words[i] != "--"; ++i) {
    if (words[i] == "-np") words[i] = "-n";  // as mpirun has it
    const CLI::Option* const option = run.get_option_no_throw(words[i]);
    if (option != nullptr && option->get_items_expected_max() > 0) ++i;
  }
  i = std::min(i, words.size());
  std::vector<std::string> program(words.begin() + static_cast<std::ptrdiff_t>(i), words.end());
  words.resize(i);
  if (!program.empty() && program.front() == "--") program.erase(program.begin());
  return program;
}

}  // namespace tutti::cli
