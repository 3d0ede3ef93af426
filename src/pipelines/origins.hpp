// Which row of the gathered A each row of a buffer holds.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "pipelines/lower.hpp"

namespace tutti::pipelines {

// Rows of one buffer. Their origins grow by one from row to row within a range.
class OriginMap {
 public:
  struct Range {
    Rows rows;
    std::size_t origin = 0;  // of the first row
  };

  void assign(const Rows& rows, std::size_t origin);
  void forget() { ranges_.clear(); }
  // In order. Rows that hold no row of A are left out.
  std::vector<Range> find(const Rows& rows) const;

 private:
  std::map<std::size_t, Range> ranges_;  // by their first row
};

// All buffers of all ranks. Each function is told what happens next, in an order without races. A
// text says what is wrong; empty: nothing.
class Origins {
 public:
  explicit Origins(const Program& program) : program_(program) {}

  // Each rank's A holds its shard; all else holds nothing.
  void begin_call(int rank);
  std::string move(const Move& move);
  // Row i of A becomes row i of C.
  std::string multiply(const Multiply& multiply) const;
  // Whether a gathered A that is an output holds all rows in order.
  std::string end_call(int rank) const;

 private:
  OriginMap& of(int rank, BufferId buffer) { return maps_[{rank, buffer}]; }
  std::string require(const Place& place, const std::vector<Rows>& expected,
                      std::string_view what) const;

  const Program& program_;
  std::map<std::pair<int, BufferId>, OriginMap> maps_;
};

}  // namespace tutti::pipelines
