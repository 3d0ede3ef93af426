#include "bench/all_gather_matmul/ranks/together.hpp"

#include "base/bytes.hpp"
#include "base/deadline.hpp"
#include "base/try.hpp"
#include "bootstrap/bootstrap.hpp"
#include "group/communicator_impl.hpp"
#include "tutti/collectives.hpp"

namespace tutti::cli {

Result<RanksTogether> RanksTogether::make(Communicator& communicator, const Reporter& reporter,
                                          std::chrono::milliseconds timeout) {
  RanksTogether together(communicator, reporter, timeout);
  TUTTI_ASSIGN(together.word_, communicator.allocate(sizeof(float)));
  return together;
}

// An all-reduce of one element ends when every rank has begun it.
Status RanksTogether::align(Stream stream) {
  const auto now = std::chrono::steady_clock::now();
  if (now - last_sign_of_life_ >= std::chrono::seconds(1)) {
    last_sign_of_life_ = now;
    TUTTI_TRY((*report_)(Alive{}));
  }
  return all_reduce(*communicator_,
                    {.input = word_.data(), .output = word_.data(), .count = 1, .stream = stream});
}

Result<std::vector<std::string>> RanksTogether::exchange(const std::string& mine) {
  const ByteView bytes = std::as_bytes(std::span(mine));
  TUTTI_ASSIGN(const auto all,
               communicator_->impl().bootstrap().all_gather(bytes, Deadline(timeout_)));
  std::vector<std::string> texts;
  texts.reserve(all.size());
  for (const Bytes& each : all) {
    texts.emplace_back(reinterpret_cast<const char*>(each.data()), each.size());
  }
  return texts;
}

}  // namespace tutti::cli
