#include "model/nelder_mead.hpp"

#include <algorithm>
#include <cstddef>
#include <utility>

namespace tutti::model {
namespace {

struct Corner {
  Point at;
  double value = 0;
};

// a + factor x (b - a)
Point between_points(const Point& a, const Point& b, double factor) {
  Point point(a.size());
  for (std::size_t i = 0; i < a.size(); ++i) point[i] = a[i] + factor * (b[i] - a[i]);
  return point;
}

class Simplex {
 public:
  Simplex(const std::function<double(const Point&)>& value, const Point& start, double step)
      : value_(value) {
    corners_.push_back(corner(start));
    for (std::size_t i = 0; i < start.size(); ++i) {
      Point moved = start;
      moved[i] += step;
      corners_.push_back(corner(std::move(moved)));
    }
    sort();
  }

  const Corner& best() const { return corners_.front(); }
  double spread() const { return corners_.back().value - corners_.front().value; }
  int evaluations() const { return evaluations_; }

  void turn() {
    const Point middle = middle_of_all_but_the_worst();
    const Point& worst = corners_.back().at;
    const Corner reflected = corner(between_points(worst, middle, 2));
    if (reflected.value < best().value) {
      const Corner further = corner(between_points(worst, middle, 3));
      replace_worst(further.value < reflected.value ? further : reflected);
    } else if (reflected.value < corners_[corners_.size() - 2].value) {
      replace_worst(reflected);
    } else {
      const bool outside = reflected.value < corners_.back().value;
      const Corner nearer = corner(between_points(worst, middle, outside ? 1.5 : 0.5));
      if (nearer.value < std::min(reflected.value, corners_.back().value)) {
        replace_worst(nearer);
      } else {
        shrink();
      }
    }
  }

 private:
  Corner corner(Point at) {
    ++evaluations_;
    const double value = value_(at);
    return {std::move(at), value};
  }
  void sort() { std::ranges::stable_sort(corners_, {}, &Corner::value); }
  void replace_worst(const Corner& by) {
    corners_.back() = by;
    sort();
  }
  void shrink() {
    for (std::size_t i = 1; i < corners_.size(); ++i) {
      corners_[i] = corner(between_points(best().at, corners_[i].at, 0.5));
    }
    sort();
  }
  Point middle_of_all_but_the_worst() const {
    Point middle(best().at.size());
    const std::size_t others = corners_.size() - 1;
    for (std::size_t i = 0; i < middle.size(); ++i) {
      for (std::size_t k = 0; k < others; ++k) middle[i] += corners_[k].at[i];
      middle[i] /= static_cast<double>(others);
    }
    return middle;
  }

  const std::function<double(const Point&)>& value_;
  std::vector<Corner> corners_;  // the best one first
  int evaluations_ = 0;
};

}  // namespace

Point least_of(const std::function<double(const Point&)>& value, Point start,
               const SearchLimits& limits) {
  if (start.empty()) return start;
  for (int round = 0; round <= limits.restarts; ++round) {
    Simplex simplex(value, start, limits.step);
    while (simplex.spread() > limits.tolerance && simplex.evaluations() < limits.evaluations) {
      simplex.turn();
    }
    start = simplex.best().at;
  }
  return start;
}

}  // namespace tutti::model
