// Plans that were made, by what was asked.
#pragma once

#include <functional>
#include <string>
#include <unordered_map>

#include "algorithms/catalogue.hpp"
#include "base/try.hpp"
#include "planning/plan.hpp"
#include "planning/request.hpp"
#include "tutti/status.hpp"

namespace tutti {

class PlanCache {
 public:
  // What is kept for the request; else what `make` answers, which is kept. The texts that a request
  // names outlive the cache, but for its algorithm's name.
  template <class Make>
  Result<OperationPlan> find(Request request, const Make& make) {
    if (!request.algorithm.empty()) {
      TUTTI_ASSIGN(const Algorithm* const named, named_by(request));
      request.algorithm = named->id;
    }
    if (const auto found = plans_.find(request); found != plans_.end()) return found->second;
    Result<OperationPlan> made = make(request);
    if (!made.is_ok()) return made;
    if (plans_.size() >= kMostPlans) plans_.clear();  // counts may be new in every call
    plans_.emplace(request, *made);
    return made;
  }
  void clear() { plans_.clear(); }

 private:
  // By the text of the descriptor: the caller's may be gone by the next call.
  Result<const Algorithm*> named_by(const Request& request) {
    const bool again =
        last_named_ != nullptr && last_named_->collective == request.collective &&
        (last_named_->id == request.algorithm || last_named_->name() == request.algorithm);
    if (!again) {
      TUTTI_ASSIGN(last_named_, find_algorithm(request.collective, request.algorithm));
    }
    return last_named_;
  }

  struct HashOf {
    std::size_t operator()(const Request& request) const {
      // Of what differs most from call to call; the rest is compared.
      std::uint64_t mixed = request.count * 0x9e3779b97f4a7c15u;
      mixed ^= static_cast<std::uint64_t>(request.collective) << 56 |
               static_cast<std::uint64_t>(request.dtype) << 48 |
               static_cast<std::uint64_t>(request.op) << 40 |
               std::uint64_t{request.symmetric()} << 33 | std::uint64_t{request.in_place} << 32 |
               request.packet_bytes;
      return static_cast<std::size_t>(mixed ^ mixed >> 29);
    }
  };
  static constexpr std::size_t kMostPlans = 4096;
  std::unordered_map<Request, OperationPlan, HashOf> plans_;
  const Algorithm* last_named_ = nullptr;  // calls often name one again and again
};

}  // namespace tutti
