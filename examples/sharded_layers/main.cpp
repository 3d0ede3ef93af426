// A training step with sharded parameters. Its results are compared with the unsharded computation,
// element by element, and so is its time.
//
//   sharded_layers --ranks 8 --layers 8 --width 8192 --tokens 4096 --algorithm copy_engine
//   sharded_layers --ranks 8 --layers 8 --width 8192 --tokens 4096 --algorithm nccl
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <functional>
#include <map>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "model.hpp"

namespace {

struct Options {
  int ranks = 2;
  Shape shape;
  int iterations = 5;
  tutti::Backend backend = tutti::Backend::kAuto;
  std::string algorithm;       // for gathering and reducing; empty: the default of ShardedOptions
  bool release_early = false;  // an error, which the comparison must find
};

Options read_options(int count, char** arguments) {
  Options options;
  const std::map<std::string, std::function<void(const char*)>> known = {
      {"--ranks", [&](const char* v) { options.ranks = std::atoi(v); }},
      {"--layers", [&](const char* v) { options.shape.layers = std::strtoull(v, nullptr, 10); }},
      {"--width", [&](const char* v) { options.shape.width = std::strtoull(v, nullptr, 10); }},
      {"--tokens", [&](const char* v) { options.shape.tokens = std::strtoull(v, nullptr, 10); }},
      {"--iterations", [&](const char* v) { options.iterations = std::atoi(v); }},
      {"--release-early", [&](const char* v) { options.release_early = std::atoi(v) != 0; }},
      {"--algorithm", [&](const char* v) { options.algorithm = v; }},
      {"--backend", [&](const char* v) {
         const auto backend = tutti::parse_backend(v);
         if (!backend) throw std::runtime_error(backend.status().to_string());
         options.backend = *backend;
       }}};
  for (int i = 1; i < count; i += 2) {
    const auto option = known.find(arguments[i]);
    if (option == known.end() || i + 1 == count) {
      std::string text = std::string(arguments[i]) + ": not an option with a value; there are";
      for (const auto& [name, set] : known) text += " " + name;
      throw std::runtime_error(text);
    }
    option->second(arguments[i + 1]);
  }
#ifndef WITH_CUDA_MACHINE
  if (options.backend == tutti::Backend::kCuda) {
    throw std::runtime_error("--backend cuda: this example was built without cuBLAS");
  }
  options.backend = tutti::Backend::kHost;
#endif
  const Shape& shape = options.shape;
  if (options.ranks < 1 || options.iterations < 1 || shape.layers < 1 || shape.tokens < 1 ||
      shape.width < 1 || shape.width * shape.width % static_cast<std::size_t>(options.ranks) != 0) {
    throw std::runtime_error("all numbers are at least 1, and ranks divide width x width");
  }
  return options;
}

std::unique_ptr<Machine> make_machine([[maybe_unused]] const tutti::Communicator& group) {
#ifdef WITH_CUDA_MACHINE
  if (group.backend() == tutti::Backend::kCuda) return make_cuda_machine(group.device());
#endif
  return make_host_machine();
}

void compare(const std::vector<float>& seen, const std::vector<float>& expected,
             const std::string& what) {
  const auto [at, right] = std::mismatch(seen.begin(), seen.end(), expected.begin());
  if (at == seen.end()) return;
  throw std::runtime_error(what + ", element " + std::to_string(at - seen.begin()) + ": " +
                           std::to_string(*at) + " instead of " + std::to_string(*right));
}

// Computes all ranks' tokens on this rank alone, and compares.
void verify(const tutti::Communicator& group, Model& model, const Shape& shape) {
  const std::vector<float> output = model.output();
  if (std::count(output.begin(), output.end(), 0.0F) == static_cast<long>(output.size())) {
    throw std::runtime_error("the output is all zeros");
  }
  for (int r = 0; r < group.size(); ++r) {
    model.load_tokens(r);
    model.step_unsharded(r > 0);
    if (r == group.rank()) compare(output, model.output(), "output");
  }
  for (std::size_t k = 0; k < shape.layers; ++k) {
    compare(model.shard_gradient(k), model.own_part_of_gradient(k),
            "gradient of layer " + std::to_string(k));
  }
  model.load_tokens(group.rank());
}

// Milliseconds of one step, from a common start of all ranks until this rank's stream is idle.
double time_of(tutti::Communicator& group, Machine& machine, int steps,
               const std::function<void()>& step) {
  check(tutti::barrier(group, {.stream = machine.stream()}));
  machine.wait();
  const auto begin = std::chrono::steady_clock::now();
  for (int i = 0; i < steps; ++i) step();
  machine.wait();
  const std::chrono::duration<double, std::milli> took = std::chrono::steady_clock::now() - begin;
  return took.count() / steps;
}

void run_rank(tutti::Communicator& group, const Options& options) {
  const auto machine = make_machine(group);
  Model model(group, *machine, options.shape);
  const tutti::CallOptions call{.algorithm = options.algorithm};
  auto parameters = tutti::ShardedParameters::create(
      group, model.shards(),
      {.depth = options.release_early ? 1 : 2, .gather = call, .reduce = call});
  check(parameters.status());

  const auto step = [&] { model.step_sharded(*parameters, options.release_early); };
  step();
  machine->wait();
  const auto first = group.counters();
  verify(group, model, options.shape);
  const double together = time_of(group, *machine, options.iterations, step);
  const auto last = group.counters();
  verify(group, model, options.shape);
  const double alone =
      time_of(group, *machine, options.iterations, [&] { model.step_unsharded(); });
  check(group.status());

  if (group.rank() == 0) {
    std::printf("%d ranks, %s backend, %s: %zu layers of %zu x %zu, %zu tokens a rank\n",
                group.size(), std::string(to_string(group.backend())).c_str(),
                options.algorithm.empty() ? "default algorithms" : options.algorithm.c_str(),
                options.shape.layers, options.shape.width, options.shape.width,
                options.shape.tokens);
    std::printf("step %.3f ms, computation alone %.3f ms, exposed communication %.3f ms\n",
                together, alone, together - alone);
    std::printf("after the first step: %llu allocations, %llu registrations, %llu exchanges\n",
                static_cast<unsigned long long>(last.allocations - first.allocations),
                static_cast<unsigned long long>(last.registrations - first.registrations),
                static_cast<unsigned long long>(last.exchanges - first.exchanges));
  }
  if (!(last == first)) throw std::runtime_error("a step asked for memory, or the other ranks");
}

}  // namespace

int main(int count, char** arguments) try {
  const Options options = read_options(count, arguments);
  auto groups = tutti::Communicator::create_in_process(options.ranks, {.backend = options.backend});
  check(groups.status());
  std::vector<std::string> wrong(groups->size());
  {
    std::vector<std::jthread> threads;
    for (std::size_t r = 0; r < groups->size(); ++r) {
      threads.emplace_back([&, r] {
        try {
          run_rank((*groups)[r], options);
        } catch (const std::exception& error) {
          wrong[r] = error.what();
          (*groups)[r].abort(error.what());
        }
      });
    }
  }
  int failed = 0;
  for (std::size_t r = 0; r < wrong.size(); ++r) {
    if (wrong[r].empty()) continue;
    std::fprintf(stderr, "rank %zu: %s\n", r, wrong[r].c_str());
    failed = 1;
  }
  if (failed == 0) std::puts("outputs and gradients are those of the unsharded computation");
  return failed;
} catch (const std::exception& error) {
  std::fprintf(stderr, "%s\n", error.what());
  return 2;
}
