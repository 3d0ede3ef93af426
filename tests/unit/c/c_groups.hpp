// Groups of the C API: threads on the host, with all the time they need.
#pragma once

#include <chrono>
#include <cstddef>
#include <functional>
#include <thread>
#include <vector>

#include "support/check.hpp"
#include "support/patience.hpp"
#include "tutti/tutti.h"

namespace tutti::test {

inline void require_c(tutti_status_t status) { require(status == TUTTI_OK, tutti_last_error()); }

class CGroup {
 public:
  explicit CGroup(int ranks, std::chrono::milliseconds timeout = kPatience)
      : handles_(static_cast<std::size_t>(ranks)) {
    tutti_communicator_options_t options = tutti_communicator_options_init();
    options.backend = TUTTI_BACKEND_HOST;
    options.timeout_ms = timeout.count();
    require_c(tutti_communicator_create_in_process(nullptr, ranks, &options, handles_.data()));
  }
  ~CGroup() {
    for (tutti_communicator_t* const handle : handles_) (void)tutti_communicator_destroy(handle);
  }
  CGroup(const CGroup&) = delete;
  CGroup& operator=(const CGroup&) = delete;

  tutti_communicator_t* operator[](int rank) const {
    return handles_[static_cast<std::size_t>(rank)];
  }

  // Every rank runs it, each on a thread of its own.
  void run(const std::function<void(int rank, tutti_communicator_t* group)>& body) const {
    std::vector<std::jthread> threads;
    for (std::size_t r = 0; r < handles_.size(); ++r) {
      (void)threads.emplace_back([&, r] { body(static_cast<int>(r), handles_[r]); });
    }
  }

 private:
  std::vector<tutti_communicator_t*> handles_;
};

inline tutti_failure_t last_c_failure() {
  tutti_failure_t failure = tutti_failure_init();
  require_c(tutti_last_failure(&failure));
  return failure;
}

}  // namespace tutti::test
