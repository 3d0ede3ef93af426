#include "tune/agree.hpp"

#include <cstring>

#include "base/bytes.hpp"
#include "base/try.hpp"
#include "bench/statistics.hpp"
#include "bootstrap/bootstrap.hpp"
#include "group/communicator_impl.hpp"

namespace tutti::cli {

Result<std::vector<double>> most_of_ranks(Communicator& communicator,
                                          const std::vector<double>& mine,
                                          std::chrono::milliseconds timeout) {
  Bytes message(mine.size() * sizeof(double));
  if (!mine.empty()) std::memcpy(message.data(), mine.data(), message.size());
  TUTTI_ASSIGN(const auto answers,
               communicator.impl().bootstrap().all_gather(message, Deadline(timeout)));
  std::vector<std::vector<double>> values;
  for (const Bytes& answer : answers) {
    std::vector<double>& each = values.emplace_back(answer.size() / sizeof(double));
    if (!each.empty()) std::memcpy(each.data(), answer.data(), each.size() * sizeof(double));
  }
  return slowest_rank(values);
}

}  // namespace tutti::cli
