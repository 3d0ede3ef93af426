#include "run/wire.hpp"

#include <signal.h>
#include <sys/wait.h>

#include <cstdint>
#include <cstring>
#include <optional>
#include <type_traits>
#include <utility>

#include "run/hosts.hpp"
#include "run/rank_group.hpp"

namespace tutti::cli {
namespace {

class WireWriter {
 public:
  void operator()(int& number) {
    const auto fixed = static_cast<std::int32_t>(number);
    bytes_.append(reinterpret_cast<const char*>(&fixed), sizeof fixed);
  }
  void operator()(bool& flag) { bytes_.push_back(flag ? '\1' : '\0'); }
  void operator()(std::string& text) {
    auto length = static_cast<int>(text.size());
    (*this)(length);
    bytes_ += text;
  }
  void operator()(std::vector<std::string>& texts) {
    auto count = static_cast<int>(texts.size());
    (*this)(count);
    for (std::string& text : texts) (*this)(text);
  }
  std::string take() { return std::move(bytes_); }

 private:
  std::string bytes_;
};

class WireReader {
 public:
  explicit WireReader(std::string_view bytes) : rest_(bytes) {}

  void operator()(int& number) {
    std::int32_t fixed = 0;
    const std::string_view bytes = next(sizeof fixed);
    if (!bytes.empty()) std::memcpy(&fixed, bytes.data(), sizeof fixed);
    number = fixed;
  }
  void operator()(bool& flag) {
    const std::string_view byte = next(1);
    good_ = good_ && (byte[0] == '\0' || byte[0] == '\1');
    flag = good_ && byte[0] == '\1';
  }
  void operator()(std::string& text) { text = next(length()); }
  void operator()(std::vector<std::string>& texts) {
    const std::size_t count = length();  // each has a length of its own
    for (std::size_t i = 0; i < count && good_; ++i) (*this)(texts.emplace_back());
  }
  bool read_all() const { return good_ && rest_.empty(); }

 private:
  // No more than there are bytes.
  std::size_t length() {
    int length = 0;
    (*this)(length);
    good_ = good_ && length >= 0 && static_cast<std::size_t>(length) <= rest_.size();
    return good_ ? static_cast<std::size_t>(length) : 0;
  }
  std::string_view next(std::size_t bytes) {
    good_ = good_ && bytes <= rest_.size();
    if (!good_) return {};
    const std::string_view taken = rest_.substr(0, bytes);
    rest_.remove_prefix(bytes);
    return taken;
  }

  std::string_view rest_;
  bool good_ = true;
};

// The fields of each message, in the order of the wire, for both directions.
void fields(auto& io, RankPlace& m) {
  io(m.rank), io(m.ranks), io(m.local_rank), io(m.local_ranks), io(m.master), io(m.port);
}
void fields(auto& io, StartRanks& m) {
  fields(io, m.first);
  io(m.settings), io(m.folder), io(m.program), io(m.arguments);
  io(m.grace_seconds), io(m.bind), io(m.input);
}
void fields(auto& io, SignalRanks& m) { io(m.number); }
void fields(auto& io, RankInput& m) { io(m.bytes); }
void fields(auto& io, AgentReady& m) { io(m.port), io(m.root_port); }
void fields(auto& io, AgentFailed& m) { io(m.why); }
void fields(auto& io, RankPrinted& m) { io(m.rank), io(m.stream), io(m.bytes); }
void fields(auto& io, RankEnded& m) { io(m.rank), io(m.wait_status); }
void fields(auto& /*io*/, InputWanted& /*m*/) {}

bool is_port(int port) { return port > 0 && port <= UINT16_MAX; }
bool is_rank(int rank) { return rank >= 0 && rank < kMostRanks; }

bool is_valid(const StartRanks& m) {
  const RankPlace& first = m.first;
  return is_rank(first.rank) && first.ranks > 0 && first.ranks <= kMostRanks &&
         first.local_ranks > 0 && first.local_rank == 0 &&
         first.local_ranks <= first.ranks - first.rank && is_port(first.port) &&
         m.grace_seconds >= 0;
}
bool is_valid(const SignalRanks& m) {
  return m.number == SIGINT || m.number == SIGTERM || m.number == SIGKILL;
}
bool is_valid(const RankPrinted& m) {
  return is_rank(m.rank) && m.stream >= 0 && m.stream < static_cast<int>(kRankStreams);
}
bool is_valid(const AgentReady& m) { return is_port(m.port) && is_port(m.root_port); }
bool is_valid(const RankEnded& m) {
  return is_rank(m.rank) && m.wait_status >= 0 && m.wait_status <= UINT16_MAX &&
         (WIFEXITED(m.wait_status) || WIFSIGNALED(m.wait_status));
}
bool is_valid(const auto& /*m*/) { return true; }

template <class Message>
std::string encode_any(Message& message) {
  WireWriter writer;
  auto kind = static_cast<int>(message.index());
  writer(kind);
  std::visit([&](auto& m) { fields(writer, m); }, message);
  return writer.take();
}

template <class Message, std::size_t kKind = 0>
std::optional<Message> of_kind(int kind) {
  if constexpr (kKind < std::variant_size_v<Message>) {
    if (kind == static_cast<int>(kKind)) return Message(std::in_place_index<kKind>);
    return of_kind<Message, kKind + 1>(kind);
  } else {
    return std::nullopt;
  }
}

template <class Message>
Result<Message> decode_any(std::string_view bytes) {
  WireReader reader(bytes);
  int kind = -1;
  reader(kind);
  auto message = bytes.size() >= sizeof(std::int32_t) ? of_kind<Message>(kind) : std::nullopt;
  if (message) {
    std::visit([&](auto& m) { fields(reader, m); }, *message);
    const bool valid = std::visit([](const auto& m) { return is_valid(m); }, *message);
    if (reader.read_all() && valid) return *std::move(message);
  }
  return Status(StatusCode::kMismatch, "what came is no message of this version of tutti");
}

}  // namespace

std::string encode(ToAgent message) { return encode_any(message); }
std::string encode(FromAgent message) { return encode_any(message); }

Result<ToAgent> decode_to_agent(std::string_view bytes) { return decode_any<ToAgent>(bytes); }
Result<FromAgent> decode_from_agent(std::string_view bytes) { return decode_any<FromAgent>(bytes); }

}  // namespace tutti::cli
