#include "support/reference.hpp"

#include <cmath>
#include <type_traits>

#include "tutti/device/scalar.hpp"

namespace tutti::test {
namespace {

template <class F>
F combine_floating(OpKind op, F sum, F next) {
  switch (op) {
    case OpKind::kProd:
      return sum * next;
    case OpKind::kMin:
    case OpKind::kMax:
      break;
    default:
      return sum + next;
  }
  if (std::isnan(sum) || std::isnan(next)) return std::nan("") + F{0};
  const bool next_is_less = next < sum || (next == sum && std::signbit(next) && !std::signbit(sum));
  return next_is_less == (op == OpKind::kMin) ? next : sum;
}

// T is the element type, whose signedness decides what is less.
template <class T>
std::uint64_t combine_integers(OpKind op, std::uint64_t sum, std::uint64_t next) {
  const T a = static_cast<T>(sum), b = static_cast<T>(next);
  switch (op) {
    case OpKind::kProd:
      return sum * next;
    case OpKind::kMin:
      return b < a ? next : sum;
    case OpKind::kMax:
      return a < b ? next : sum;
    default:
      return sum + next;
  }
}

template <class T>
T element_at(ByteView bytes, std::size_t i) {
  T value;
  std::memcpy(&value, bytes.data() + i * sizeof(T), sizeof(T));
  return value;
}

template <class F>
void accumulate(OpKind op, bool first, F next, F& sum) {
  sum = first ? next : combine_floating(op, sum, next);
}

}  // namespace

Reference::Reference(DataType dtype, OpKind op, std::size_t count)
    : dtype_(dtype), op_(op), count_(count) {
  if (dtype == DataType::kFloat64) {
    doubles_.resize(count);
  } else if (is_floating(dtype)) {
    floats_.resize(count);
  } else {
    integers_.resize(count);
  }
}

void Reference::add(ByteView input, Scalar scalar) {
  const bool first = ranks_++ == 0;
  const bool scaled = op_ == OpKind::kPreMulSum;
  visit_data_type(dtype_, [&]<class T>() {
    for (std::size_t i = 0; i < count_; ++i) {
      const T value = element_at<T>(input, i);
      if constexpr (std::is_same_v<T, double>) {
        accumulate(op_, first, scaled ? value * scalar.to<double>() : value, doubles_[i]);
      } else if constexpr (std::is_integral_v<T>) {
        auto next = static_cast<std::uint64_t>(value);
        if (scaled) next *= static_cast<std::uint64_t>(scalar.to<T>());
        integers_[i] = first ? next : combine_integers<T>(op_, integers_[i], next);
      } else {
        const float wide = to_float(value);
        accumulate(op_, first, scaled ? wide * scalar.to<float>() : wide, floats_[i]);
      }
    }
  });
}

Bytes Reference::result() const {
  const int divisor = op_ == OpKind::kAvg ? ranks_ : 1;
  return visit_data_type(dtype_, [&]<class T>() {
    Bytes bytes(count_ * sizeof(T));
    for (std::size_t i = 0; i < count_; ++i) {
      T value;
      if constexpr (std::is_same_v<T, double>) {
        value = doubles_[i] / divisor;
      } else if constexpr (std::is_integral_v<T>) {
        value = static_cast<T>(static_cast<T>(integers_[i]) / static_cast<T>(divisor));
      } else {
        value = from_float<T>(floats_[i] / static_cast<float>(divisor));
      }
      std::memcpy(bytes.data() + i * sizeof(T), &value, sizeof(T));
    }
    return bytes;
  });
}

}  // namespace tutti::test
