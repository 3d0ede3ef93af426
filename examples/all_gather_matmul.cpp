// A layer with sequence and tensor parallelism: each rank has some of the tokens and some columns
// of the weights, and multiplies all tokens by its columns. Ranks are threads, on the host. With
// pointers to GPU memory and a stream, the same call runs on GPUs.
#include <tutti/tutti.hpp>

#include <algorithm>
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
  constexpr std::size_t kTokens = 101, kWidth = 64, kColumns = 32;
  const auto rank = static_cast<std::size_t>(group.rank());
  const auto ranks = static_cast<std::size_t>(group.size());

  // Ranks do not divide the tokens: the last rank has fewer of them.
  const std::size_t longest = (kTokens + ranks - 1) / ranks;
  const std::size_t first = std::min(kTokens, rank * longest);
  const std::size_t rows = std::min(kTokens - first, longest);
  const std::vector<float> tokens(rows * kWidth, static_cast<float>(rank + 1));
  const std::vector<float> weights(kWidth * kColumns, rank == 0 ? 1.0F : 0.5F);
  std::vector<float> output(kTokens * kColumns);

  tutti::AllGatherMatmul call = {.a = tokens.data(),
                                 .b = weights.data(),
                                 .c = output.data(),
                                 .m = kTokens,
                                 .n = kColumns,
                                 .k = kWidth,
                                 .dtype = tutti::DataType::kFloat32};
  const auto bytes = tutti::all_gather_matmul_workspace(group, call);
  check(bytes.status());
  std::vector<std::byte> workspace(*bytes);
  call.workspace = workspace.data();
  call.workspace_bytes = workspace.size();
  check(tutti::all_gather_matmul(group, call));

  // The first token is rank 0's, and the last one the last rank's.
  std::printf("rank %zu: %zu tokens, workspace %zu bytes, output %g to %g\n", rank, rows, *bytes,
              output.front(), output.back());
}

int main() {
  auto groups = tutti::Communicator::create_in_process(2, {.backend = tutti::Backend::kHost});
  check(groups.status());
  std::jthread other([&] { run((*groups)[1]); });
  run((*groups)[0]);
}
