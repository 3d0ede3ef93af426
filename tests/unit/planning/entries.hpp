// Tuning entries and machines for tests.
#pragma once

#include "planning/table.hpp"

namespace tutti {

inline TuningEntry entry_of(std::size_t min_bytes, std::size_t max_bytes,
                            std::string algorithm = "all_reduce/one_shot", int ranks = 8) {
  TuningEntry entry;
  entry.gpu = "NVIDIA H200";
  entry.ranks = ranks;
  entry.min_bytes = min_bytes;
  entry.max_bytes = max_bytes;
  entry.algorithm = std::move(algorithm);
  entry.time_us = 4.5;
  entry.date = "2026-11-20";
  entry.driver = "580.159";
  entry.samples = 50;
  return entry;
}

inline Topology eight_h200() {
  Topology topology;
  topology.backend = Backend::kCuda;
  topology.ranks = 8;
  topology.gpu = "NVIDIA H200";
  topology.compute = 90;
  topology.multiprocessors = 132;
  topology.nvlinks = 18;
  topology.within_nodes = peer_ways(Backend::kCuda);
  topology.nccl = true;
  topology.nccl_version = 22907;
  return topology;
}

inline TuningTable table_of(std::vector<TuningSource> sources) {
  return *TuningTable::from_sources(std::move(sources));
}

inline TuningTable cache_of(TuningEntry entry) {
  return table_of({{PlanSource::kUserCache, "cache", {std::move(entry)}}});
}

}  // namespace tutti
