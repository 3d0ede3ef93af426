// Open MPI's all_reduce, its own choice and the algorithms that coll/tuned can be forced to, timed
// in turns (see peer_bench.hpp). Start it by mpirun with `--mca coll_tuned_use_dynamic_rules 1`.
//
//   openmpi_all_reduce NAMES [OPTIONS]     NAMES: default,2,3,4,5,6
//
// OPENMPI_PREFIX is put in front of the names (default: openmpi_).
#include <mpi.h>

#include "peer_bench.hpp"

namespace {

// A communicator reads the variable when it is made.
bool force(int algorithm) {
  int provided = 0, index = 0, count = 0;
  MPI_T_cvar_handle handle = nullptr;
  const bool written =
      MPI_T_init_thread(MPI_THREAD_SINGLE, &provided) == MPI_SUCCESS &&
      MPI_T_cvar_get_index("coll_tuned_allreduce_algorithm", &index) == MPI_SUCCESS &&
      MPI_T_cvar_handle_alloc(index, nullptr, &handle, &count) == MPI_SUCCESS &&
      MPI_T_cvar_write(handle, &algorithm) == MPI_SUCCESS;
  if (handle != nullptr) MPI_T_cvar_handle_free(&handle);
  return written;
}

}  // namespace

int main(int count, char** words) {
  if (count < 2) {
    std::fprintf(stderr, "usage: openmpi_all_reduce default,2,3,4,5,6 --bytes N[,...]\n");
    return 2;
  }
  MPI_Init(nullptr, nullptr);
  peer_bench::World world;
  MPI_Comm_rank(MPI_COMM_WORLD, &world.rank);
  MPI_Comm_size(MPI_COMM_WORLD, &world.ranks);
  world.maximum = [](double value) {
    MPI_Allreduce(MPI_IN_PLACE, &value, 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
    return value;
  };
  const char* const prefix = std::getenv("OPENMPI_PREFIX");
  std::vector<peer_bench::Contender> contenders;
  std::istringstream names(words[1]);
  for (std::string name; std::getline(names, name, ',');) {
    MPI_Comm forced = MPI_COMM_NULL;
    if (!force(std::atoi(name.c_str())) || MPI_Comm_dup(MPI_COMM_WORLD, &forced) != MPI_SUCCESS) {
      std::fprintf(stderr, "openmpi_all_reduce: coll/tuned has no variable for its all_reduce\n");
      MPI_Abort(MPI_COMM_WORLD, 1);
    }
    contenders.push_back({(prefix == nullptr ? "openmpi_" : prefix) + name,
                          [forced](const float* input, float* output, std::size_t elements) {
                            MPI_Allreduce(input, output, static_cast<int>(elements), MPI_FLOAT,
                                          MPI_SUM, forced);
                          }});
  }
  const int status = peer_bench::run(world, contenders, peer_bench::parse(count - 1, words + 1));
  MPI_Finalize();
  return status;
}
