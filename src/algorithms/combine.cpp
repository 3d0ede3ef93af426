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

// An element at any address: wires deliver payloads behind headers of odd lengths.
template <class T>
struct [[gnu::packed]] Loose {
  T value;
};

template <class Reduction>
class Run {
 public:
  using T = typename Reduction::Element;
  using A = typename Reduction::Accumulator;

  explicit Run(const Combination& work) : work_(work) {}

  void sum(std::size_t first, std::size_t count) {
    for (std::size_t s = 0; s < work_.sources.size(); ++s) {
      const auto* const part =
          reinterpret_cast<const Loose<T>*>(work_.sources[s] + first * sizeof(T));
      const ScalarOfSource<A> scalars{scalar_of(s), A{1}};
      if (s == 0) {
        for (std::size_t e = 0; e < count; ++e)
          sums_[e] = widen<Reduction>(part[e].value, 0, scalars);
      } else {
        for (std::size_t e = 0; e < count; ++e) {
          const A value = widen<Reduction>(part[e].value, 1, scalars);
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

// Of two sources, which is what rings have: nothing is kept but the result. An element of it is
// written after its like was read, so the result may be one of the sources.
template <class Reduction>
void combine_two(const Combination& work) {
  using At = Loose<typename Reduction::Element>;
  using A = typename Reduction::Accumulator;
  const ScalarOfSource<A> none{A{1}, A{1}};
  const auto* const first = reinterpret_cast<const At*>(work.sources[0]);
  const auto* const second = reinterpret_cast<const At*>(work.sources[1]);
  auto* const into = reinterpret_cast<At*>(work.into);
#if defined(__clang__)
#pragma clang loop vectorize(assume_safety)
#else
#pragma GCC ivdep
#endif
  for (std::size_t e = 0; e < work.count; ++e) {
    const A sum = Reduction::Op::combine(widen<Reduction>(first[e].value, 0, none),
                                         widen<Reduction>(second[e].value, 1, none));
    into[e].value = narrow<Reduction>(sum, none);
  }
}

template <class Reduction>
void combine_as(const Combination& work) {
  if constexpr (!Reduction::Op::kScaled) {
    if (work.sources.size() == 2) return combine_two<Reduction>(work);
  }
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
