#include "support/lane.hpp"

#include <exception>
#include <thread>

#include "support/check.hpp"

namespace tutti::test {

void Lane::check(const Trial& trial) {
  const std::string text = bench_.check(trial);
  require(text.empty(), text);
}

void Lane::expect_right(const Trial& trial) {
  require_ok(run(prepare(trial)));
  check(trial);
}

void run_together(const std::function<void()>& here, const std::function<void()>& beside) {
  std::exception_ptr failure;
  {
    const std::jthread thread([&] {
      try {
        beside();
      } catch (...) {
        failure = std::current_exception();
      }
    });
    here();
  }
  if (failure) std::rethrow_exception(failure);
}

}  // namespace tutti::test
