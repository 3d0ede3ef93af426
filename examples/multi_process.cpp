// Each process is one rank. Any of these starts two of them:
//   tutti run -n 2 ./multi_process
//   torchrun --standalone --no-python --nproc-per-node 2 ./multi_process
//   mpirun -n 2 ./multi_process
#include <tutti/tutti.hpp>

#include <algorithm>
#include <cstdio>
#include <cstdlib>

void check(const tutti::Status& status) {
  if (status) return;
  std::fprintf(stderr, "%s\n", status.to_string().c_str());
  std::exit(1);
}

int main() {  // on GPUs: without kHost; `data` is then device memory
  auto group = tutti::Communicator::create_from_environment({.backend = tutti::Backend::kHost});
  check(group.status());
  auto memory = group->allocate((1 << 20) * sizeof(float));  // zero-copy for all ranks
  check(memory.status());
  const auto data = memory->as<float>();
  std::fill(data.begin(), data.end(), group->rank() + 1);
  check(tutti::all_reduce(*group, data));  // in place, the sum over all ranks
  std::printf("rank %d of %d: %g\n", group->rank(), group->size(), data.back());
}
