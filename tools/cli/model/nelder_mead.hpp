// The least value of a function of a few numbers, without its derivatives: Nelder and Mead's
// simplex, started again from the best point, since a simplex may collapse before it is there.
#pragma once

#include <functional>
#include <vector>

namespace tutti::model {

using Point = std::vector<double>;

struct SearchLimits {
  double step = 0.5;        // of the first simplex, in each direction
  double tolerance = 1e-3;  // a simplex whose values differ by less has ended
  int evaluations = 400;    // of each simplex, about
  int restarts = 2;
};

// `start` where nothing less is found.
Point least_of(const std::function<double(const Point&)>& value, Point start,
               const SearchLimits& limits);

}  // namespace tutti::model
