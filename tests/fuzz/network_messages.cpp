// What ranks send each other over a network. The first byte chooses: a header as it comes from the
// wire, or messages of a member of the group, which an engine has to survive.
#include <algorithm>
#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "executors/network/engine.hpp"
#include "executors/network/message.hpp"
#include "fuzz/fuzz.hpp"

namespace tutti::fuzz {
namespace {

void check_header(ByteView bytes) {
  const auto message = parse_network_message(bytes);
  if (!message.is_ok()) {
    must_hold(message.status().code() == StatusCode::kMismatch, "noise is a mismatch");
    return;
  }
  const NetworkHeader written = to_header(*message);
  must_hold(std::equal(written.begin(), written.end(), bytes.begin(), bytes.end()),
            "a header is the bytes that it was read from");
}

// Sends at once, and nowhere.
class NoWire : public Wire {
 public:
  const Bytes& address() const override { return nothing_; }
  Status connect(int /*peer*/, ByteView /*address*/) override { return Status::ok(); }
  void set_handlers(Handlers handlers) override { this->handlers = std::move(handlers); }
  Result<WireTicket> post(int /*peer*/, ByteView /*header*/, ByteView /*payload*/) override {
    sent_.push_back(++last_);
    return last_;
  }
  bool progress() override {
    const auto sent = std::exchange(sent_, {});
    for (const WireTicket ticket : sent) handlers.sent(ticket);
    return !sent.empty();
  }
  void sleep(Clock::time_point /*until*/) override {}
  void wake() override {}
  Status close_doors() override { return Status::ok(); }
  void cancel_all() override { sent_.clear(); }
  std::string text() const override { return {}; }

  Handlers handlers;

 private:
  Bytes nothing_;
  WireTicket last_ = 0;
  std::vector<WireTicket> sent_;
};

constexpr std::size_t kCount = 24;

// Rank 1 has a half of a vector, rank 0 the other one; the sum goes through scratch.
NetworkProgram halves(const NetworkShape& shape) {
  using Buffer = NetworkPlace::Buffer;
  using Kind = NetworkStep::Kind;
  const std::size_t half = shape.count / 2;
  NetworkProgram program;
  program.scratch = half;
  program.steps = {
      {Kind::kSend, 1, half, half, {{Buffer::kInput, half}}},
      {Kind::kReceive, 1, 0, half, {}, {Buffer::kScratch, 0}},
      {Kind::kSum, -1, 0, half, {{Buffer::kInput, 0}, {Buffer::kScratch, 0}}, {}, true, {1}},
      {Kind::kSend, 1, 0, half, {{Buffer::kOutput, 0}}, {}, false, {2}},
      {Kind::kReceive, 1, half, half, {}, {Buffer::kOutput, half}, false, {0}},
  };
  return program;
}

void check_engine(ByteView bytes) {
  NoWire wire;
  NetworkEngine::Group group;
  group.ranks = 2;
  group.name = [](int rank) { return std::to_string(rank); };
  group.most_scratch_bytes = 16;
  NetworkEngine engine(std::move(group), wire);
  std::array<std::int32_t, kCount> input = {}, output = {};
  const auto start = [&] {
    NetworkOperation operation;
    operation.schedule = halves;
    operation.shape.count = kCount;
    operation.dtype = DataType::kInt32;
    operation.input = reinterpret_cast<const std::byte*>(input.data());
    operation.output = reinterpret_cast<std::byte*>(output.data());
    operation.chunk_bytes = 8;
    operation.deadline = Wire::Clock::time_point::max();
    engine.start(std::move(operation));
  };
  constexpr std::size_t kEach = 7;
  const Bytes payload(2048);
  for (; bytes.size() >= kEach; bytes = bytes.subspan(kEach)) {
    const auto at = [&](std::size_t k) { return std::to_integer<std::uint32_t>(bytes[k]); };
    NetworkMessage message;
    message.kind = static_cast<NetworkMessage::Kind>(at(0) % 4);
    message.domain = static_cast<NetworkMessage::Domain>(at(0) / 4 % 3);
    message.from = 1;
    message.sequence = at(1);
    message.partition = at(2);
    message.step = at(3);
    message.chunk = at(4);
    const NetworkHeader header = to_header(message);
    wire.handlers.arrived(header, ByteView(payload).first((at(5) + 256 * at(6)) % 2048));
    if (at(0) >= 128) start();
    const auto did = engine.progress({});
    must_hold(did.is_ok() || did.status().code() == StatusCode::kMismatch, "noise is a mismatch");
  }
  must_hold(
      engine.kept_bytes() <= 3 * NetworkEngine::kOperationsAhead * NetworkEngine::kUnaskedBytes,
      "little is kept");
  engine.cancel();
}

}  // namespace
}  // namespace tutti::fuzz

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace tutti::fuzz;
  tutti::ByteView bytes = tutti::view_of(text_of(data, size));
  if (take_choice(bytes) % 2 == 0) {
    check_header(bytes);
  } else {
    check_engine(bytes);
  }
  return 0;
}
