// Runs a program of the network on all ranks as values: an element is which inputs were added to
// make it, and in which order. Chunks are done in any order that the program allows.
#pragma once

#include <cstddef>
#include <cstdint>
#include <random>
#include <string>
#include <vector>

#include "algorithms/catalogue.hpp"
#include "algorithms/network_program.hpp"

namespace tutti::test {

// All that the programs of a group are made of, and how they run.
struct NetworkTrial {
  const Algorithm* row = nullptr;
  NetworkShape shape;  // but for the rank
  std::size_t chunk = 1;
  bool in_place = false;  // where only the root can be, there

  NetworkProgram program(int rank) const;
  std::string text() const;
};

// The order in which chunks of one rank are done, as far as the program says it.
class NetworkOrder {
 public:
  NetworkOrder(const NetworkProgram& program, std::size_t chunk);

  struct Node {
    int step = 0;
    std::size_t chunk = 0;
    std::vector<std::size_t> after;
  };
  const std::vector<Node>& nodes() const { return nodes_; }
  std::size_t node(int step, std::size_t chunk) const {
    return first_[static_cast<std::size_t>(step)] + chunk;
  }
  // Whether one is certain to be done before the other begins.
  bool is_ordered(std::size_t before, std::size_t after) const { return before_[after][before]; }
  bool operator==(const NetworkOrder& other) const { return before_ == other.before_; }

 private:
  std::vector<Node> nodes_;
  std::vector<std::size_t> first_;         // by step
  std::vector<std::vector<bool>> before_;  // by node: all that are done before
};

// Two accesses of one rank to an element that nothing orders, one of which writes; empty: none.
std::string race_of(const NetworkTrial& trial, int rank, const NetworkProgram& program);

// Sends without a receive, or of another length, receives without a send; steps that wait for later
// ones, or reach beyond their buffers. Empty: none.
std::string misfit_of(const NetworkTrial& trial, const std::vector<NetworkProgram>& programs);

// What is wrong with the result of one order of events, or that there is none. Empty: nothing.
std::string wrong_in(const NetworkTrial& trial, const std::vector<NetworkProgram>& programs,
                     std::uint64_t seed);

// All of that.
std::string check_network(const NetworkTrial& trial, std::uint64_t seed);

}  // namespace tutti::test
