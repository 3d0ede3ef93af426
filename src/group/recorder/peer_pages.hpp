// The pages of the other ranks of a group, in this process.
#pragma once

#include <memory>
#include <mutex>
#include <optional>
#include <vector>

#include "base/deadline.hpp"
#include "group/recorder/comparison.hpp"
#include "group/recorder/flight_recorder.hpp"
#include "memory/mapping.hpp"

namespace tutti {

class Bootstrap;

class PeerPages {
 public:
  // Collective, where every rank can send descriptors to every other. A rank whose recorder has no
  // page, or a lack of descriptors, makes that nothing is compared. `own` outlives the answer.
  static Result<std::unique_ptr<PeerPages>> open(Bootstrap& bootstrap, const FlightRecorder& own,
                                                 Deadline deadline);

  // A rank that has run another operation than this one, if there is one. From any thread.
  struct Found {
    int rank;
    DifferentOperations operations;
  };
  std::optional<Found> look();

 private:
  struct Peer {
    int rank;
    std::shared_ptr<Mapping> page;
    PageComparison comparison;
  };
  void add(int rank, const FlightRecorder& own, std::shared_ptr<Mapping> page);

  std::mutex mutex_;
  std::vector<Peer> peers_;
};

}  // namespace tutti
