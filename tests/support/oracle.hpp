// What one rank puts in and what must come out, remembered from one question to the next.
#pragma once

#include "base/bytes.hpp"
#include "support/inputs.hpp"

namespace tutti::test {

struct Answer {
  Bytes input;     // this rank's
  Bytes expected;  // every rank's output
  Scalar scalar = 1.0;
};

class Oracle {
 public:
  explicit Oracle(int rank) : rank_(rank) {}

  // At least `count` elements. Stays valid until a question with another spec or a larger count;
  // asked from the largest count down, a spec is computed once.
  const Answer& answer(const InputSpec& spec, std::size_t count);

 private:
  int rank_;
  InputSpec spec_;
  std::size_t count_ = 0;
  bool known_ = false;
  Answer answer_;
};

}  // namespace tutti::test
