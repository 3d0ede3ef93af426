// What a call through the C API costs above the same call of the C++ API: a program to be run by
// hand. One rank on the host reduces one element in place, which is all overhead. The least of many
// rounds is what no other program has disturbed.
#include <algorithm>
#include <array>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <vector>

#include "tutti/tutti.h"
#include "tutti/tutti.hpp"

namespace {

constexpr int kCalls = 1000, kRounds = 1001;

void check(bool holds) {
  if (holds) return;
  std::fprintf(stderr, "a call failed: %s\n", tutti_last_error());
  std::exit(1);
}

template <class Call>
double nanoseconds_of(const Call& call) {
  const auto begin = std::chrono::steady_clock::now();
  for (int k = 0; k < kCalls; ++k) call();
  const std::chrono::duration<double, std::nano> taken = std::chrono::steady_clock::now() - begin;
  return taken.count() / kCalls;
}

double least_of(const std::vector<double>& values) {
  return *std::min_element(values.begin(), values.end());
}

}  // namespace

int main() {
  auto groups = tutti::Communicator::create_in_process(1, {.backend = tutti::Backend::kHost});
  check(groups.is_ok());
  tutti::Communicator& group = groups->front();
  tutti_communicator_options_t host = tutti_communicator_options_init();
  host.backend = TUTTI_BACKEND_HOST;
  tutti_communicator_t* handle = nullptr;
  check(tutti_communicator_create_in_process(nullptr, 1, &host, &handle) == TUTTI_OK);

  float element = 1;
  std::array<std::vector<double>, 3> times;  // C++; C; C with options
  for (int round = 0; round < kRounds; ++round) {
    times[0].push_back(nanoseconds_of([&] {
      check(all_reduce(group, {.input = &element, .output = &element, .count = 1}).is_ok());
    }));
    const auto by_c = [&](const tutti_call_options_t* options) {
      tutti_all_reduce_t call = tutti_all_reduce_init();
      call.input = call.output = &element;
      call.count = 1;
      call.options = options;
      check(tutti_all_reduce(handle, &call) == TUTTI_OK);
    };
    const tutti_call_options_t options = tutti_call_options_init();
    times[1].push_back(nanoseconds_of([&] { by_c(nullptr); }));
    times[2].push_back(nanoseconds_of([&] { by_c(&options); }));
  }
  check(tutti_communicator_destroy(handle) == TUTTI_OK);
  const double cpp = least_of(times[0]), c = least_of(times[1]), with = least_of(times[2]);
  std::printf(
      "all_reduce of one rank, ns per call, least of %d rounds of %d calls:\n"
      "C++ %.1f, C %.1f (%+.1f), C with options %.1f (%+.1f)\n",
      kRounds, kCalls, cpp, c, c - cpp, with, with - cpp);
}
