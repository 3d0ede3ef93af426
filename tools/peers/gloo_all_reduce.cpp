// gloo's ring, timed in the way of peer_bench.hpp.
//
//   gloo_all_reduce FOLDER INTERFACE RANK RANKS [OPTIONS]
//
// The ranks find each other by files in FOLDER, which is empty at first and which all of them see.
#include <gloo/allreduce.h>
#include <gloo/math.h>
#include <gloo/rendezvous/context.h>
#include <gloo/rendezvous/file_store.h>
#include <gloo/transport/tcp/device.h>

#include "peer_bench.hpp"

namespace {

constexpr std::chrono::seconds kTimeout{60};

using Function = void (*)(void*, const void*, const void*, std::size_t);

template <class T>
void all_reduce(const std::shared_ptr<gloo::Context>& context, const T* input, T* output,
                std::size_t count, Function function) {
  gloo::AllreduceOptions options(context);
  options.setAlgorithm(gloo::AllreduceOptions::Algorithm::RING);
  options.setInput(const_cast<T*>(input), count);  // gloo only reads it
  options.setOutput(output, count);
  options.setReduceFunction(function);
  gloo::allreduce(options);
}

}  // namespace

int main(int count, char** words) {
  if (count < 5) {
    std::fprintf(stderr, "usage: gloo_all_reduce FOLDER INTERFACE RANK RANKS --bytes N[,...]\n");
    return 2;
  }
  peer_bench::World world;
  world.rank = std::atoi(words[3]);
  world.ranks = std::atoi(words[4]);
  gloo::rendezvous::FileStore store(words[1]);
  gloo::transport::tcp::attr where;
  where.iface = words[2];
  auto device = gloo::transport::tcp::CreateDevice(where);
  const auto context = std::make_shared<gloo::rendezvous::Context>(world.rank, world.ranks);
  context->setTimeout(kTimeout);
  context->connectFullMesh(store, device);
  world.maximum = [&context](double value) {
    double most = 0;
    all_reduce(context, &value, &most, 1, &gloo::max<double>);
    return most;
  };
  const peer_bench::Contender ring{
      "gloo_ring", [&context](const float* input, float* output, std::size_t elements) {
        all_reduce(context, input, output, elements, &gloo::sum<float>);
      }};
  return peer_bench::run(world, {&ring, 1}, peer_bench::parse(count - 4, words + 4));
}
