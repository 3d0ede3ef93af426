#include "simgrid/reference_cluster.hpp"

#include <fmt/format.h>
#include <simgrid/s4u.hpp>

#include <cstdint>
#include <deque>
#include <limits>
#include <map>
#include <string>
#include <utility>

namespace tutti::test {
namespace {

namespace sg4 = simgrid::s4u;
using Kind = NetworkStep::Kind;

constexpr std::size_t kElementBytes = 4;

// Of run `run`, between two ranks: the k-th send meets the k-th receive.
sg4::Mailbox* mailbox(std::size_t run, int from, int to, std::uint32_t ordinal) {
  return sg4::Mailbox::by_name(fmt::format("{}.{}.{}.{}", run, from, to, ordinal));
}

// One rank: a step starts once the steps that it waits for are done. Receives are posted at once,
// since SimGrid moves nothing before both ends are there. A send is done when it has begun, as if
// its payload had been copied.
class RankActor {
 public:
  RankActor(std::size_t run, int rank, const ChunkedProgram& program)
      : run_(run), rank_(rank), program_(program), waits_(program.waits_for) {}

  void operator()() {
    arrived_.resize(program_.steps.size());
    for (std::uint32_t step = 0; step < program_.steps.size(); ++step) {
      const ChunkedProgram::Step& what = program_.steps[step];
      if (what.what.kind != Kind::kReceive) continue;
      arriving_[what.what.peer].emplace_back(
          step, mailbox(run_, what.what.peer, rank_, what.ordinal)->get_async<int>(&received_));
    }
    for (std::uint32_t step = 0; step < program_.steps.size(); ++step) {
      if (program_.waits_for[step] == 0) start(step);
    }
    while (done_ < program_.steps.size()) receive_next();
  }

 private:
  using Receive = std::pair<std::uint32_t, sg4::CommPtr>;

  // Messages of one rank come in order, as all have one route.
  void receive_next() {
    std::vector<sg4::CommPtr> first;
    std::vector<std::deque<Receive>*> lists;
    for (auto& [peer, list] : arriving_) {
      if (list.empty()) continue;
      first.push_back(list.front().second);
      lists.push_back(&list);
    }
    std::deque<Receive>& list = *lists[static_cast<std::size_t>(sg4::Comm::wait_any(first))];
    const std::uint32_t step = list.front().first;
    list.pop_front();
    arrived_[step] = true;
    if (waits_[step] == 0) complete(step);
  }

  void start(std::uint32_t step) {
    const ChunkedProgram::Step& what = program_.steps[step];
    if (what.what.kind == Kind::kReceive && !arrived_[step]) return;
    if (what.what.kind == Kind::kSend) {
      mailbox(run_, rank_, what.what.peer, what.ordinal)
          ->put_init(&sent_, what.what.count * kElementBytes)
          ->detach();
    }
    complete(step);
  }

  void complete(std::uint32_t step) {
    ++done_;
    for (auto k = program_.dependents_at[step]; k < program_.dependents_at[step + 1]; ++k) {
      const std::uint32_t later = program_.dependents[k];
      if (--waits_[later] == 0) start(later);
    }
  }

  std::size_t run_;
  int rank_;
  const ChunkedProgram& program_;
  std::vector<std::uint32_t> waits_;
  std::vector<bool> arrived_;
  std::map<int, std::deque<Receive>> arriving_;  // by peer
  std::size_t done_ = 0;
  int sent_ = 0;
  int* received_ = nullptr;
};

// Of each rank a way out and a way in, of the same rate; half of the delay is in each.
std::vector<std::vector<sg4::Host*>> build(const std::vector<ReferenceRun>& runs) {
  std::vector<std::vector<sg4::Host*>> hosts(runs.size());
  sg4::NetZone* const root = sg4::create_full_zone("all");
  for (std::size_t run = 0; run < runs.size(); ++run) {
    sg4::NetZone* const zone = sg4::create_star_zone(fmt::format("run{}", run));
    zone->set_parent(root);
    for (int rank = 0; rank < runs[run].ranks; ++rank) {
      const std::string name = fmt::format("{}.{}", run, rank);
      sg4::Host* const host = zone->create_host(name, 1e9)->seal();
      const auto link = [&](const char* way) {
        return zone->create_link(name + way, runs[run].bytes_per_s)
            ->set_latency(runs[run].delay_s / 2)
            ->seal();
      };
      zone->add_route(host->get_netpoint(), nullptr, nullptr, nullptr,
                      {sg4::LinkInRoute(link("out"))}, false);
      zone->add_route(nullptr, host->get_netpoint(), nullptr, nullptr,
                      {sg4::LinkInRoute(link("in"))}, false);
      hosts[run].push_back(host);
    }
    zone->seal();
  }
  root->seal();
  return hosts;
}

}  // namespace

std::vector<NetworkPartitions> programs_of(const ReferenceRun& run) {
  std::vector<NetworkPartitions> made;
  for (int rank = 0; rank < run.ranks; ++rank) {
    made.push_back(
        *make_partitions({.schedule = run.schedule,
                          .shape = {.rank = rank, .ranks = run.ranks, .count = run.count},
                          .element_bytes = kElementBytes,
                          .chunk_bytes = run.count * kElementBytes,
                          .most_scratch_bytes = std::numeric_limits<std::size_t>::max()}));
  }
  return made;
}

std::vector<double> seconds_on_simgrid(const std::vector<ReferenceRun>& runs) {
  sg4::Engine engine("simgrid_test");
  // Rate and delay alone: without what TCP makes of them.
  sg4::Engine::set_config("network/model:CM02");
  sg4::Engine::set_config("network/TCP-gamma:1e30");
  sg4::Engine::set_config("network/crosstraffic:0");
  sg4::Engine::set_config("contexts/stack-size:256");
  const auto hosts = build(runs);
  std::vector<double> seconds;
  for (std::size_t run = 0; run < runs.size(); ++run) {
    const std::vector<NetworkPartitions> programs = programs_of(runs[run]);
    const double begin = sg4::Engine::get_clock();
    for (int rank = 0; rank < runs[run].ranks; ++rank) {
      const auto at = static_cast<std::size_t>(rank);
      sg4::Actor::create(fmt::format("{}.{}", run, rank), hosts[run][at],
                         RankActor(run, rank, programs[at].last));
    }
    engine.run();
    seconds.push_back(sg4::Engine::get_clock() - begin);
  }
  return seconds;
}

}  // namespace tutti::test
