#include "algorithms/combine.hpp"

#include <algorithm>
#include <cstdint>
#include <cstring>

#include "algorithms/instantiate.hpp"
#include "algorithms/reduction.hpp"

namespace tutti {
namespace {

// Elements that are summed up together: they stay in the nearest cache.
constexpr std::size_t kRun = 256;

template <class A>
struct ScalarOfSource {
  A scalar, divisor;
  A of(int) const { return scalar; }
};

template <class T>
const T* elements_at(const std::byte* from, std::size_t count, T* copy) {
  if (reinterpret_cast<std::uintptr_t>(from) % alignof(T) == 0) {
    return reinterpret_cast<const T*>(from);
  }
  std::memcpy(copy, from, count * sizeof(T));
  return copy;
}

template <class Reduction>
class Run {
 public:
  using T = typename Reduction::Element;
  using A = typename Reduction::Accumulator;

  explicit Run(const Combination& work) : work_(work) {}

  void sum(std::size_t first, std::size_t count) {
    for (std::size_t s = 0; s < work_.sources.size(); ++s) {
      T copy[kRun];
      const T* const part = elements_at(work_.sources[s] + first * sizeof(T), count, copy);
      const ScalarOfSource<A> scalars{scalar_of(s), A{1}};
      if (s == 0) {
        for (std::size_t e = 0; e < count; ++e) sums_[e] = widen<Reduction>(part[e], 0, scalars);
      } else {
        for (std::size_t e = 0; e < count; ++e) {
          const A value = widen<Reduction>(part[e], 1, scalars);
          sums_[e] = Reduction::Op::combine(sums_[e], value);
        }
      }
    }
  }

  void keep(std::size_t first, std::size_t count) const {
    const ScalarOfSource<A> scalars{A{1}, static_cast<A>(work_.divisor)};
    T values[kRun];
    for (std::size_t e = 0; e < count; ++e) values[e] = narrow<Reduction>(sums_[e], scalars);
    std::memcpy(work_.into + first * sizeof(T), values, count * sizeof(T));
  }

 private:
  A scalar_of(std::size_t source) const {
    return work_.scalars.empty() ? A{1} : static_cast<A>(work_.scalars[source]);
  }

  const Combination& work_;
  A sums_[kRun];
};

template <class Reduction>
void combine_as(const Combination& work) {
  Run<Reduction> run(work);
  for (std::size_t first = 0; first < work.count; first += kRun) {
    const std::size_t count = std::min(kRun, work.count - first);
    run.sum(first, count);
    run.keep(first, count);
  }
}

}  // namespace

void combine(const Combination& combination) {
  const bool scales = combination.divisor != 1 || !combination.scalars.empty();
  const OpKind op = scales && combination.op == OpKind::kSum ? OpKind::kPreMulSum : combination.op;
  with_reduction(combination.dtype, op, [&](auto reduction) {
    combine_as<typename decltype(reduction)::Type>(combination);
  });
}

}  // namespace tutti
