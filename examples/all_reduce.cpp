// Two ranks are threads of one process, on the host. all_reduce() is called in both forms: with
// ranges, and with a struct that names every argument.
#include <tutti/tutti.hpp>

#include <cstdio>
#include <cstdlib>
#include <thread>
#include <vector>

void check(const tutti::Status& status) {
  if (status) return;
  std::fprintf(stderr, "%s\n", status.to_string().c_str());
  std::exit(1);
}

// Every rank calls this, each on a thread of its own.
void run(tutti::Communicator& group) {
  const std::vector<float> input(1000, static_cast<float>(group.rank() + 1));
  std::vector<float> sum(input.size()), largest(input.size());
  check(tutti::all_reduce(group, input, sum));
  check(tutti::all_reduce(group, {.input = input.data(),
                                  .output = largest.data(),
                                  .count = input.size(),
                                  .dtype = tutti::DataType::kFloat32,
                                  .op = tutti::ReduceOp::max(),
                                  .options = {.algorithm = "two_shot"}}));
  std::printf("rank %d: sum %g, maximum %g\n", group.rank(), sum.back(), largest.back());
}

int main() {
  auto groups = tutti::Communicator::create_in_process(2, {.backend = tutti::Backend::kHost});
  check(groups.status());
  std::jthread other([&] { run((*groups)[1]); });
  run((*groups)[0]);
}
