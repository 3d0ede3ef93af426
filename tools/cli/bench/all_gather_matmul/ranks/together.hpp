// The ranks of a communicator as those that take samples of matmuls together.
#pragma once

#include <chrono>
#include <string>
#include <vector>

#include "bench/matmul/device.hpp"
#include "bench/rank.hpp"
#include "tutti/communicator.hpp"

namespace tutti::cli {

class RanksTogether final : public MatmulRanks {
 public:
  // Collective. `communicator` and `reporter`, which hears signs of life, must outlive it.
  static Result<RanksTogether> make(Communicator& communicator, const Reporter& reporter,
                                    std::chrono::milliseconds timeout);

  Status align(Stream stream) override;
  Status status() override { return communicator_->status(); }
  Result<std::vector<std::string>> exchange(const std::string& mine) override;

 private:
  RanksTogether(Communicator& communicator, const Reporter& reporter,
                std::chrono::milliseconds timeout)
      : communicator_(&communicator), report_(&reporter), timeout_(timeout) {}

  Communicator* communicator_;
  const Reporter* report_;
  std::chrono::milliseconds timeout_;
  SymmetricMemory word_;
  std::chrono::steady_clock::time_point last_sign_of_life_ = std::chrono::steady_clock::now();
};

}  // namespace tutti::cli
