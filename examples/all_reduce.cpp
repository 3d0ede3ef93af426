#include <tutti/tutti.hpp>

#include <algorithm>
#include <cstdio>
#include <future>

bool run(tutti::Communicator& group) {  // every rank calls this
  constexpr std::size_t kCount = 1 << 20;
  auto memory = group.allocate(kCount * sizeof(float));  // every rank can address it
  if (!memory) return std::puts(memory.status().to_string().c_str()), false;
  auto* data = static_cast<float*>(memory->data());
  std::fill_n(data, kCount, static_cast<float>(group.rank() + 1));
  auto status = tutti::all_reduce(group, {.input = data, .output = data, .count = kCount});
  std::printf("rank %d: %s, %g\n", group.rank(), status.to_string().c_str(), data[kCount - 1]);
  return status.is_ok() && std::count(data, data + kCount, 3.0f) == kCount;
}
int main() {
  auto group = tutti::Communicator::create_in_process(2, {.backend = tutti::Backend::kHost});
  if (!group) return std::puts(group.status().to_string().c_str()), 1;
  auto other = std::async(std::launch::async, [&] { return run((*group)[1]); });
  return run((*group)[0]) && other.get() ? 0 : 1;
}
