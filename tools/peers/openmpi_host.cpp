// Open MPI's collectives between processes of one host, timed in the way of peer_bench.hpp.
//
//   openmpi_host COLLECTIVE [OPTIONS]     COLLECTIVE: as `tutti bench` names it
//
// --bytes are of the larger side, as in `tutti bench`. Collectives with a root have rank 0. Pieces
// of the collectives that end in _v are 1/n, 2/n, ... of the longest one, as there. send_recv sends
// to the next rank. OPENMPI_NAME is the name of the contender (default: openmpi).
#include <map>
#include <mpi.h>

#include "peer_bench.hpp"

namespace {

using peer_bench::kSum;
using peer_bench::Part;
using peer_bench::Shape;
using peer_bench::World;
using Run = std::function<void(const float* input, float* output)>;

struct Collective {
  Shape shape;
  Run run;
};

int whole(std::size_t count) { return static_cast<int>(count); }

// A part of every rank, as long as each other.
std::vector<Part> of_all(int ranks, std::size_t first, std::size_t count) {
  std::vector<Part> parts;
  for (int r = 0; r < ranks; ++r) parts.push_back({r, first, count});
  return parts;
}

std::vector<Part> at_root(const World& world, std::vector<Part> parts) {
  return world.rank == 0 ? std::move(parts) : std::vector<Part>();
}

// Lengths of pieces, and where each begins.
struct Pieces {
  std::vector<int> counts, firsts;
  int total = 0;

  void add(std::size_t count) {
    counts.push_back(whole(count));
    firsts.push_back(total);
    total += whole(count);
  }
};

std::size_t part_of(std::size_t longest, int place, int ranks) {
  return longest * static_cast<std::size_t>(place % ranks + 1) / static_cast<std::size_t>(ranks);
}

// Piece k is of rank k.
Pieces growing(std::size_t longest, int ranks) {
  Pieces pieces;
  for (int r = 0; r < ranks; ++r) pieces.add(part_of(longest, r, ranks));
  return pieces;
}

// What rank `rank` sends to each rank, and gets from each.
Pieces exchanged(std::size_t longest, int rank, int ranks) {
  Pieces pieces;
  for (int r = 0; r < ranks; ++r) pieces.add(part_of(longest, rank + r, ranks));
  return pieces;
}

Collective all_reduce(const World&, std::size_t count) {
  return {{count, {{kSum, 0, count}}}, [=](const float* input, float* output) {
            MPI_Allreduce(input, output, whole(count), MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD);
          }};
}

Collective all_gather(const World& world, std::size_t count) {
  const std::size_t piece = count / static_cast<std::size_t>(world.ranks);
  return {{piece, of_all(world.ranks, 0, piece)}, [=](const float* input, float* output) {
            MPI_Allgather(input, whole(piece), MPI_FLOAT, output, whole(piece), MPI_FLOAT,
                          MPI_COMM_WORLD);
          }};
}

Collective reduce_scatter(const World& world, std::size_t count) {
  const std::size_t piece = count / static_cast<std::size_t>(world.ranks);
  const std::size_t first = piece * static_cast<std::size_t>(world.rank);
  return {{count, {{kSum, first, piece}}}, [=](const float* input, float* output) {
            MPI_Reduce_scatter_block(input, output, whole(piece), MPI_FLOAT, MPI_SUM,
                                     MPI_COMM_WORLD);
          }};
}

Collective all_to_all(const World& world, std::size_t count) {
  const std::size_t piece = count / static_cast<std::size_t>(world.ranks);
  const std::size_t first = piece * static_cast<std::size_t>(world.rank);
  return {{count, of_all(world.ranks, first, piece)}, [=](const float* input, float* output) {
            MPI_Alltoall(input, whole(piece), MPI_FLOAT, output, whole(piece), MPI_FLOAT,
                         MPI_COMM_WORLD);
          }};
}

// Open MPI has one buffer for both sides. The root's is its input; the other ranks' their output.
Collective broadcast(const World& world, std::size_t count) {
  const bool is_root = world.rank == 0;
  return {{count, is_root ? std::vector<Part>() : std::vector<Part>{{0, 0, count}}},
          [=](const float* input, float* output) {
            MPI_Bcast(is_root ? const_cast<float*>(input) : output, whole(count), MPI_FLOAT, 0,
                      MPI_COMM_WORLD);
          }};
}

Collective reduce(const World& world, std::size_t count) {
  return {{count, at_root(world, {{kSum, 0, count}})}, [=](const float* input, float* output) {
            MPI_Reduce(input, output, whole(count), MPI_FLOAT, MPI_SUM, 0, MPI_COMM_WORLD);
          }};
}

Collective gather(const World& world, std::size_t count) {
  const std::size_t piece = count / static_cast<std::size_t>(world.ranks);
  return {{piece, at_root(world, of_all(world.ranks, 0, piece))},
          [=](const float* input, float* output) {
            MPI_Gather(input, whole(piece), MPI_FLOAT, output, whole(piece), MPI_FLOAT, 0,
                       MPI_COMM_WORLD);
          }};
}

Collective scatter(const World& world, std::size_t count) {
  const std::size_t piece = count / static_cast<std::size_t>(world.ranks);
  const std::size_t first = piece * static_cast<std::size_t>(world.rank);
  return {{count, {{0, first, piece}}}, [=](const float* input, float* output) {
            MPI_Scatter(input, whole(piece), MPI_FLOAT, output, whole(piece), MPI_FLOAT, 0,
                        MPI_COMM_WORLD);
          }};
}

Collective barrier(const World&, std::size_t) {
  return {{}, [](const float*, float*) { MPI_Barrier(MPI_COMM_WORLD); }};
}

Collective send_recv(const World& world, std::size_t count) {
  const int next = (world.rank + 1) % world.ranks;
  const int before = (world.rank + world.ranks - 1) % world.ranks;
  return {{count, {{before, 0, count}}}, [=](const float* input, float* output) {
            MPI_Sendrecv(input, whole(count), MPI_FLOAT, next, 0, output, whole(count), MPI_FLOAT,
                         before, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
          }};
}

Collective all_gather_v(const World& world, std::size_t count) {
  const Pieces pieces = growing(count / static_cast<std::size_t>(world.ranks), world.ranks);
  std::vector<Part> parts;
  for (int r = 0; r < world.ranks; ++r) {
    parts.push_back({r, 0, static_cast<std::size_t>(pieces.counts[static_cast<std::size_t>(r)])});
  }
  const int own = pieces.counts[static_cast<std::size_t>(world.rank)];
  return {{static_cast<std::size_t>(own), parts}, [=](const float* input, float* output) {
            MPI_Allgatherv(input, own, MPI_FLOAT, output, pieces.counts.data(),
                           pieces.firsts.data(), MPI_FLOAT, MPI_COMM_WORLD);
          }};
}

Collective reduce_scatter_v(const World& world, std::size_t count) {
  const Pieces pieces = growing(count / static_cast<std::size_t>(world.ranks), world.ranks);
  const auto own = static_cast<std::size_t>(world.rank);
  const Part part = {kSum, static_cast<std::size_t>(pieces.firsts[own]),
                     static_cast<std::size_t>(pieces.counts[own])};
  return {{static_cast<std::size_t>(pieces.total), {part}}, [=](const float* input, float* output) {
            MPI_Reduce_scatter(input, output, pieces.counts.data(), MPI_FLOAT, MPI_SUM,
                               MPI_COMM_WORLD);
          }};
}

Collective all_to_all_v(const World& world, std::size_t count) {
  const std::size_t longest = count / static_cast<std::size_t>(world.ranks);
  const Pieces own = exchanged(longest, world.rank, world.ranks);  // to a rank and from it alike
  std::vector<Part> parts;
  for (int r = 0; r < world.ranks; ++r) {
    const Pieces sent = exchanged(longest, r, world.ranks);
    const auto at = static_cast<std::size_t>(world.rank);
    parts.push_back(
        {r, static_cast<std::size_t>(sent.firsts[at]), static_cast<std::size_t>(sent.counts[at])});
  }
  return {{static_cast<std::size_t>(own.total), parts}, [=](const float* input, float* output) {
            MPI_Alltoallv(input, own.counts.data(), own.firsts.data(), MPI_FLOAT, output,
                          own.counts.data(), own.firsts.data(), MPI_FLOAT, MPI_COMM_WORLD);
          }};
}

using Maker = Collective (*)(const World& world, std::size_t count);

const std::map<std::string, Maker, std::less<>>& collectives() {
  static const std::map<std::string, Maker, std::less<>> all = {
      {"all_reduce", all_reduce},
      {"all_gather", all_gather},
      {"reduce_scatter", reduce_scatter},
      {"all_to_all", all_to_all},
      {"broadcast", broadcast},
      {"reduce", reduce},
      {"gather", gather},
      {"scatter", scatter},
      {"barrier", barrier},
      {"send_recv", send_recv},
      {"all_gather_v", all_gather_v},
      {"reduce_scatter_v", reduce_scatter_v},
      {"all_to_all_v", all_to_all_v}};
  return all;
}

std::size_t run(const World& world, Maker make, const peer_bench::Options& options) {
  const char* const name = std::getenv("OPENMPI_NAME");
  std::size_t wrong = 0;
  for (const std::size_t bytes : options.bytes) {
    const Collective collective = make(world, bytes / sizeof(float));
    const peer_bench::Contender contender{
        name == nullptr ? "openmpi" : name,
        [&collective](const float* input, float* output, std::size_t) {
          collective.run(input, output);
        }};
    wrong += peer_bench::run_size(world, {&contender, 1}, options, bytes, collective.shape);
  }
  return wrong;
}

}  // namespace

int main(int count, char** words) {
  const auto found = collectives().find(count < 2 ? "" : words[1]);
  if (found == collectives().end()) {
    std::fprintf(stderr, "usage: openmpi_host COLLECTIVE --bytes N[,...]; COLLECTIVE is one of");
    for (const auto& [name, make] : collectives()) std::fprintf(stderr, " %s", name.c_str());
    std::fprintf(stderr, "\n");
    return 2;
  }
  MPI_Init(nullptr, nullptr);
  World world;
  world.one_host = true;
  MPI_Comm_rank(MPI_COMM_WORLD, &world.rank);
  MPI_Comm_size(MPI_COMM_WORLD, &world.ranks);
  world.maximum = [](double value) {
    MPI_Allreduce(MPI_IN_PLACE, &value, 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
    return value;
  };
  const std::size_t wrong = run(world, found->second, peer_bench::parse(count - 1, words + 1));
  MPI_Finalize();
  return wrong == 0 ? 0 : 1;
}
