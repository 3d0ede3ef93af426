#include "bootstrap/agree.hpp"

#include <fmt/core.h>

#include "base/try.hpp"
#include "bootstrap/bootstrap.hpp"

namespace tutti {

Status agree(Bootstrap& bootstrap, const Status& mine, Deadline deadline) {
  const std::string& text = mine.message();
  const auto* bytes = reinterpret_cast<const std::byte*>(text.data());
  Bytes message(1, std::byte{mine.is_ok()});
  if (!mine.is_ok()) message.insert(message.end(), bytes, bytes + text.size());
  TUTTI_ASSIGN(const auto answers, bootstrap.all_gather(message, deadline));
  for (std::size_t r = 0; r < answers.size(); ++r) {
    const Bytes& answer = answers[r];
    if (answer.size() == 1 && answer[0] == std::byte{1}) continue;
    const char* const why = reinterpret_cast<const char*>(answer.data());
    return {StatusCode::kUnavailable,
            fmt::format("{}: {}", bootstrap.names().of(r),
                        answer.empty() ? "nothing" : std::string(why + 1, answer.size() - 1))};
  }
  return Status::ok();
}

}  // namespace tutti
