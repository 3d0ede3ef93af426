#include "conformance/covering.hpp"

#include <algorithm>
#include <numeric>
#include <random>

namespace tutti::test {
namespace {

// Two dimensions, d < e, and a value of each.
struct Pair {
  int d, a, e, b;
};

class Search {
 public:
  Search(const std::vector<int>& sizes, const Allowed& allowed, std::uint64_t seed)
      : sizes_(sizes), allowed_(allowed), random_(seed) {
    for (const int size : sizes) {
      starts_.push_back(values_);
      values_ += size;
    }
    open_.assign(static_cast<std::size_t>(values_) * values_, false);
    for (int d = 0; d < dimensions(); ++d) {
      for (int e = d + 1; e < dimensions(); ++e) open_pairs(d, e);
    }
    std::shuffle(order_.begin(), order_.end(), random_);
  }

  std::vector<Combination> run() {
    std::vector<Combination> found;
    for (const Pair& pair : order_) {
      if (!is_open(pair.d, pair.a, pair.e, pair.b)) continue;
      Combination best = complete(pair);
      if (best.empty()) continue;
      close(best);
      found.push_back(std::move(best));
    }
    return found;
  }

 private:
  int dimensions() const { return static_cast<int>(sizes_.size()); }

  std::vector<bool>::reference cell(int d, int a, int e, int b) {
    const auto row = static_cast<std::size_t>(starts_[d] + a);
    return open_[row * static_cast<std::size_t>(values_) +
                 static_cast<std::size_t>(starts_[e] + b)];
  }
  bool is_open(int d, int a, int e, int b) { return d < e ? cell(d, a, e, b) : cell(e, b, d, a); }

  void open_pairs(int d, int e) {
    for (int a = 0; a < sizes_[d]; ++a) {
      for (int b = 0; b < sizes_[e]; ++b) {
        cell(d, a, e, b) = true;
        order_.push_back({d, a, e, b});
      }
    }
  }

  void close(const Combination& all) {
    for (int d = 0; d < dimensions(); ++d) {
      for (int e = d + 1; e < dimensions(); ++e) cell(d, all[d], e, all[e]) = false;
    }
  }

  // How many open pairs value `a` of dimension `d` would close with what is chosen.
  int gain(const Combination& chosen, int d, int a) {
    int count = 0;
    for (int e = 0; e < dimensions(); ++e) {
      if (e != d && chosen[e] != kAny && is_open(d, a, e, chosen[e])) ++count;
    }
    return count;
  }

  // A combination with this pair that closes many others; empty if none was found.
  Combination complete(const Pair& pair) {
    constexpr int kTries = 30;
    for (int attempt = 0; attempt < kTries; ++attempt) {
      Combination chosen(sizes_.size(), kAny);
      chosen[pair.d] = pair.a;
      chosen[pair.e] = pair.b;
      if (!allowed_(chosen)) return {};
      if (fill(chosen)) return chosen;
    }
    return {};
  }

  bool fill(Combination& chosen) {
    std::vector<int> rest;
    for (int d = 0; d < dimensions(); ++d) {
      if (chosen[d] == kAny) rest.push_back(d);
    }
    std::shuffle(rest.begin(), rest.end(), random_);
    return std::all_of(rest.begin(), rest.end(), [&](int d) { return choose(chosen, d); });
  }

  bool choose(Combination& chosen, int d) {
    std::vector<int> values(static_cast<std::size_t>(sizes_[d]));
    std::iota(values.begin(), values.end(), 0);
    std::shuffle(values.begin(), values.end(), random_);
    int best = kAny, best_gain = -1;
    for (const int a : values) {
      const int now = gain(chosen, d, a);
      if (now <= best_gain) continue;
      chosen[d] = a;
      if (!allowed_(chosen)) continue;
      best = a;
      best_gain = now;
    }
    chosen[d] = best;
    return best != kAny;
  }

  const std::vector<int>& sizes_;
  const Allowed& allowed_;
  std::mt19937_64 random_;
  int values_ = 0;
  std::vector<int> starts_;  // of each dimension's values among all
  std::vector<bool> open_;   // pairs that are still to be covered
  std::vector<Pair> order_;
};

void extend(const std::vector<int>& sizes, const Allowed& allowed, Combination& chosen,
            std::vector<Combination>& found) {
  const auto next = std::find(chosen.begin(), chosen.end(), kAny);
  if (next == chosen.end()) {
    found.push_back(chosen);
    return;
  }
  for (int a = 0; a < sizes[static_cast<std::size_t>(next - chosen.begin())]; ++a) {
    *next = a;
    if (allowed(chosen)) extend(sizes, allowed, chosen, found);
  }
  *next = kAny;
}

}  // namespace

std::vector<Combination> pairwise(const std::vector<int>& sizes, const Allowed& allowed,
                                  std::uint64_t seed) {
  return Search(sizes, allowed, seed).run();
}

std::vector<Combination> product(const std::vector<int>& sizes, const Allowed& allowed) {
  std::vector<Combination> found;
  Combination chosen(sizes.size(), kAny);
  if (allowed(chosen)) extend(sizes, allowed, chosen, found);
  return found;
}

}  // namespace tutti::test
