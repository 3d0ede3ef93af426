#include "algorithms/combine.hpp"

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <type_traits>

#include "algorithms/instantiate.hpp"
#include "algorithms/reduction.hpp"

#if defined(__x86_64__)
#include <cpuid.h>
#include <immintrin.h>
#define TUTTI_AVX2 gnu::target("avx2,f16c")
#define TUTTI_AVX512 gnu::target("avx512f,avx512bw,avx512dq,avx512vl,avx2,f16c")
#endif

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

// The processor's conversions of fp16, which compilers do not find. How many elements they took:
// all but the last few.
#if defined(__x86_64__)
constexpr std::size_t kHalves = 8;  // at a time

[[TUTTI_AVX2]] inline std::size_t widen_halves(const Loose<Half>* from, std::size_t count,
                                               float* to) {
  std::size_t e = 0;
  for (; e + kHalves <= count; e += kHalves) {
    const __m128i halves = _mm_loadu_si128(reinterpret_cast<const __m128i*>(from + e));
    _mm256_storeu_ps(to + e, _mm256_cvtph_ps(halves));
  }
  return e;
}

[[TUTTI_AVX2]] inline std::size_t narrow_to_halves(const float* from, std::size_t count, Half* to) {
  const __m128i canonical_nan = _mm_set1_epi16(portable::HalfFormat::kNan);
  std::size_t e = 0;
  for (; e + kHalves <= count; e += kHalves) {
    const __m256 values = _mm256_loadu_ps(from + e);
    const __m256i nan = _mm256_castps_si256(_mm256_cmp_ps(values, values, _CMP_UNORD_Q));
    const __m128i nan_halves =
        _mm_packs_epi32(_mm256_castsi256_si128(nan), _mm256_extracti128_si256(nan, 1));
    const __m128i halves = _mm256_cvtps_ph(values, _MM_FROUND_TO_NEAREST_INT);
    _mm_storeu_si128(reinterpret_cast<__m128i*>(to + e),
                     _mm_blendv_epi8(halves, canonical_nan, nan_halves));
  }
  return e;
}
#else
inline std::size_t widen_halves(const Loose<Half>*, std::size_t, float*) { return 0; }
inline std::size_t narrow_to_halves(const float*, std::size_t, Half*) { return 0; }
#endif

template <class T, CombineWith kInstructions>
constexpr bool kConvertsHalves = std::is_same_v<T, Half>&& kInstructions != CombineWith::kPortable;

template <class Reduction, CombineWith kInstructions>
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
      std::size_t done = 0;
      if constexpr (kConvertsHalves<T, kInstructions>) done = add_halves(s, part, count);
      if (s == 0) {
        for (std::size_t e = done; e < count; ++e)
          sums_[e] = widen<Reduction>(part[e].value, 0, scalars);
      } else {
        for (std::size_t e = done; e < count; ++e) {
          const A value = widen<Reduction>(part[e].value, 1, scalars);
          sums_[e] = Reduction::Op::combine(sums_[e], value);
        }
      }
    }
  }

  void keep(std::size_t first, std::size_t count) {
    const ScalarOfSource<A> scalars{A{1}, static_cast<A>(work_.divisor)};
    T values[kRun];
    std::size_t e = 0;
    if constexpr (kConvertsHalves<T, kInstructions>) {
      if constexpr (Reduction::Op::kScaled) {
        for (; e < count; ++e) sums_[e] = sums_[e] / scalars.divisor;
      }
      e = narrow_to_halves(sums_, count, values);
      for (; e < count; ++e) values[e] = from_accumulator<T>(sums_[e]);
    } else {
      for (; e < count; ++e) values[e] = narrow<Reduction>(sums_[e], scalars);
    }
    std::memcpy(work_.into + first * sizeof(T), values, count * sizeof(T));
  }

 private:
  A scalar_of(std::size_t source) const {
    return work_.scalars.empty() ? A{1} : work_.scalars[source].template to<A>();
  }

  // All but the last few.
  std::size_t add_halves(std::size_t source, const Loose<T>* part, std::size_t count) {
    A wide[kRun];
    const std::size_t widened = widen_halves(part, count, wide);
    const A scalar = scalar_of(source);
    for (std::size_t e = 0; e < widened; ++e) {
      if constexpr (Reduction::Op::kScaled) wide[e] *= scalar;
      sums_[e] = source == 0 ? wide[e] : Reduction::Op::combine(sums_[e], wide[e]);
    }
    return widened;
  }

  const Combination& work_;
  A sums_[kRun];
};

// Of two sources, which is what rings have: nothing is kept but the result. An element of it is
// written after its like was read, so the result may be one of the sources.
template <class Reduction>
inline void combine_two(const Combination& work) {
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

template <class Reduction, CombineWith kInstructions>
inline void combine_as(const Combination& work) {
  if constexpr (!Reduction::Op::kScaled &&
                !kConvertsHalves<typename Reduction::Element, kInstructions>) {
    if (work.sources.size() == 2) return combine_two<Reduction>(work);
  }
  Run<Reduction, kInstructions> run(work);
  for (std::size_t first = 0; first < work.count; first += kRun) {
    const std::size_t count = std::min(kRun, work.count - first);
    run.sum(first, count);
    run.keep(first, count);
  }
}

#if defined(__x86_64__)
// All that they call is compiled as part of them, and so for their instructions.
template <class Reduction>
[[gnu::flatten, TUTTI_AVX2]] void combine_with_avx2(const Combination& work) {
  combine_as<Reduction, CombineWith::kAvx2>(work);
}
template <class Reduction>
[[gnu::flatten, TUTTI_AVX512]] void combine_with_avx512(const Combination& work) {
  combine_as<Reduction, CombineWith::kAvx512>(work);
}

bool converts_halves() {
  unsigned a = 0, b = 0, c = 0, d = 0;
  return __get_cpuid(1, &a, &b, &c, &d) != 0 && (c & bit_F16C) != 0;
}
#endif

template <class Reduction>
void combine_with(const Combination& work, [[maybe_unused]] CombineWith instructions) {
#if defined(__x86_64__)
  using T = typename Reduction::Element;
  // Memory is the limit of wider types.
  if constexpr (!std::is_same_v<typename Reduction::Accumulator, T>) {
    if (instructions == CombineWith::kAvx512) return combine_with_avx512<Reduction>(work);
    if (instructions == CombineWith::kAvx2) return combine_with_avx2<Reduction>(work);
  }
#endif
  combine_as<Reduction, CombineWith::kPortable>(work);
}

}  // namespace

bool can_combine_with(CombineWith instructions) {
  switch (instructions) {
    case CombineWith::kPortable:
      return true;
#if defined(__x86_64__)
    case CombineWith::kAvx2:
      return __builtin_cpu_supports("avx2") && converts_halves();
    case CombineWith::kAvx512:
      return can_combine_with(CombineWith::kAvx2) && __builtin_cpu_supports("avx512f") &&
             __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512dq") &&
             __builtin_cpu_supports("avx512vl");
#else
    default:
      break;
#endif
  }
  return false;
}

CombineWith fastest_to_combine_with() {
  static const CombineWith fastest = [] {
    if (can_combine_with(CombineWith::kAvx512)) return CombineWith::kAvx512;
    return can_combine_with(CombineWith::kAvx2) ? CombineWith::kAvx2 : CombineWith::kPortable;
  }();
  return fastest;
}

void combine(const Combination& combination, CombineWith instructions) {
  const bool scales = combination.divisor != 1 || !combination.scalars.empty();
  const OpKind op = scales && combination.op == OpKind::kSum ? OpKind::kPreMulSum : combination.op;
  with_reduction(combination.dtype, op, [&](auto reduction) {
    combine_with<typename decltype(reduction)::Type>(combination, instructions);
  });
}

}  // namespace tutti
