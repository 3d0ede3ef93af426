#include "drivers/ucx_wire.hpp"

#include <poll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <ctime>
#include <deque>
#include <list>
#include <map>
#include <mutex>
#include <new>
#include <string_view>
#include <utility>

#include "base/fd.hpp"
#include "base/log.hpp"
#include "base/system_error.hpp"
#include "base/try.hpp"
#include "drivers/listening_sockets.hpp"
#include "drivers/ucx_context.hpp"
#include "drivers/ucx_library.hpp"
#include "drivers/ucx_settings.hpp"

namespace tutti {
namespace {

constexpr unsigned kMessageId = 1;  // of the one kind of active messages that there is
constexpr std::chrono::seconds kCloseLimit{2};
// What transports read of the environment alone, in some versions: no call of theirs waits for a
// connection, and a chunk of 64 KiB is received together with its headers. UCX's own limit of 64
// KiB makes messages of some MiB take a third longer where processors are the bottleneck.
constexpr const char* kTransportSettings[] = {"UCX_TCP_CONN_NB=y", "UCX_TCP_RX_SEG_SIZE=128k"};

void warn_not_received(std::size_t bytes, UcxStatus why) {
  log(LogLevel::kWarn, "a message of {} bytes could not be received over UCX: {}", bytes,
      ucx_words(why));
}

class UcxWire final : public Wire {
 public:
  explicit UcxWire(UcxLibrary library) : library_(std::move(library)) {}
  ~UcxWire() override;
  Status open(const WireOptions& options);

  const Bytes& address() const override { return address_; }
  Status connect(int peer, ByteView address) override;
  void set_handlers(Handlers handlers) override { handlers_ = std::move(handlers); }
  Result<WireTicket> post(int peer, ByteView header, ByteView payload) override {
    return post(peer, header, payload, UcxRequestParams::kEager);
  }
  bool reaches_gpus() const override { return opened_.reaches_gpus; }
  Result<WireTicket> post_from_gpu(int peer, ByteView header, ByteView payload) override {
    return post(peer, header, payload, UcxRequestParams::kByRendezvous);
  }
  bool progress() override;
  void sleep(Clock::time_point until) override;
  void wake() override;
  Status close_doors() override;
  void cancel_all() override;
  std::string text() const override { return opened_.text; }

 private:
  struct Peer {
    UcxWire* wire = nullptr;
    int rank = -1;
    UcxEndpoint endpoint = nullptr;
    bool lost = false;
    UcxStatus why = UcxStatus::kOk;
  };
  struct Sending {
    UcxWire* wire = nullptr;
    Peer* peer = nullptr;
    WireTicket ticket = 0;
    std::array<std::byte, kMostHeaderBytes> header;  // UCX reads it until the message was sent
  };
  // What UCX calls with.
  struct Arrived {
    const void* header;
    std::size_t header_bytes;
    void* data;
    std::size_t bytes;
    const UcxArrival* how;
  };
  // A message whose payload comes after its header.
  struct Receiving {
    UcxWire* wire = nullptr;
    Bytes header;
    std::unique_ptr<std::byte[]> own;
    std::byte* into = nullptr;  // `own`, or what was placed
    std::size_t bytes = 0;
    std::list<Receiving>::iterator place;
    ByteView payload() const { return {into, bytes}; }
    bool is_placed() const { return own == nullptr; }
  };

  // What UCX calls.
  static void on_sent(void* request, UcxStatus status, void* sending);
  static void on_lost(void* peer, UcxEndpoint endpoint, UcxStatus status);
  static void on_received(void* request, UcxStatus status, std::size_t bytes, void* receiving);

  Status make_worker();
  Status take_address();
  Status find_doors(const std::vector<ListeningSocket>& before);
  Result<WireTicket> post(int peer, ByteView header, ByteView payload, std::uint32_t how);
  Sending* take_record();
  void lose(Peer& peer, UcxStatus why);
  void deliver(ByteView header, ByteView payload);
  UcxStatus arrived(const Arrived& message);
  UcxStatus receive(ByteView header, void* descriptor, std::size_t bytes);
  void forget(const Receiving& message);
  bool report();
  void close_endpoint(Peer& peer);
  void take_closed();

  UcxLibrary library_;
  const UcxCalls& ucx_ = library_.calls;
  OpenedUcx opened_;
  UcxWorker worker_ = nullptr;
  Bytes address_;
  int event_ = -1;  // UCX's own
  Fd wake_;
  std::vector<ListeningSocket> doors_;
  bool doors_unknown_ = false;

  Handlers handlers_;
  std::map<int, Peer> peers_;
  WireTicket last_ticket_ = 0;
  bool cancelled_ = false;
  std::deque<Sending> records_;
  std::vector<Sending*> free_records_;
  std::size_t under_way_ = 0;  // records that UCX holds
  std::list<Receiving> receiving_;
  std::size_t placed_ = 0;  // of receiving_
  // What is to be told to the handlers.
  std::vector<WireTicket> sent_;
  std::vector<Peer*> lost_;
  std::vector<void*> closing_;  // requests
};

// --- opening
// --------------------------------------------------------------------------------------

Status UcxWire::make_worker() {
  UcxWorkerParams params;
  params.field_mask = UcxWorkerParams::kThreadMode;
  params.thread_mode = UcxWorkerParams::kSerialized;
  UcxStatus status = ucx_.worker_create(opened_.context, &params, &worker_);
  if (status != UcxStatus::kOk) {
    worker_ = nullptr;
    return ucx_failure("making a worker", status);
  }
  status = ucx_.worker_get_efd(worker_, &event_);
  if (status != UcxStatus::kOk) return ucx_failure("asking for its event descriptor", status);
  UcxHandlerParams handler;
  handler.field_mask = UcxHandlerParams::kAll;
  handler.id = kMessageId;
  handler.flags = UcxHandlerParams::kWholeMessages;
  handler.arrived = [](void* wire, auto... arguments) {
    return static_cast<UcxWire*>(wire)->arrived({arguments...});
  };
  handler.arg = this;
  status = ucx_.set_handler(worker_, &handler);
  return status == UcxStatus::kOk ? Status() : ucx_failure("setting a handler", status);
}

Status UcxWire::take_address() {
  UcxAddress address = nullptr;
  std::size_t bytes = 0;
  const UcxStatus status = ucx_.worker_get_address(worker_, &address, &bytes);
  if (status != UcxStatus::kOk) return ucx_failure("asking for its address", status);
  const auto* first = reinterpret_cast<const std::byte*>(address);
  address_.assign(first, first + bytes);
  ucx_.worker_release_address(worker_, address);
  if (bytes <= kMostAddressBytes) return {};
  return {StatusCode::kUnsupported,
          fmt::format("UCX's address has {} bytes, at most {} can be exchanged: name fewer "
                      "interfaces (TUTTI_SOCKET_IFNAME)",
                      bytes, kMostAddressBytes)};
}

// The port, most significant byte first, is somewhere in what peers connect to.
bool address_names_port(const Bytes& address, std::uint16_t port) {
  const std::array<std::byte, 2> bytes = {std::byte(port >> 8), std::byte(port & 0xFF)};
  return std::search(address.begin(), address.end(), bytes.begin(), bytes.end()) != address.end();
}

Status UcxWire::find_doors(const std::vector<ListeningSocket>& before) {
  TUTTI_ASSIGN(const std::vector<ListeningSocket> now, listening_sockets());
  for (const ListeningSocket& socket : now) {
    const bool is_old =
        std::any_of(before.begin(), before.end(),
                    [&socket](const ListeningSocket& old) { return old.inode == socket.inode; });
    if (is_old) continue;
    if (address_names_port(address_, socket.address.port())) {
      doors_.push_back(socket);
    } else {
      doors_unknown_ = true;
    }
  }
  doors_unknown_ = doors_unknown_ && doors_.empty();
  return {};
}

Status UcxWire::open(const WireOptions& options) {
  wake_ = Fd(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  if (!wake_.valid()) return system_failure("making an event descriptor", errno);
  // One at a time, so that each knows its own ports.
  static std::mutex opening;
  const std::lock_guard lock(opening);
  TUTTI_ASSIGN(const std::vector<ListeningSocket> before, listening_sockets());
  {
    const MoreEnvironment settings(kTransportSettings);
    TUTTI_ASSIGN(opened_, open_ucx_context(library_, options));
    TUTTI_TRY(make_worker());
  }
  TUTTI_TRY(take_address());
  return find_doors(before);
}

UcxWire::~UcxWire() {
  if (worker_ != nullptr) {
    cancel_all();
    ucx_.worker_destroy(worker_);
  }
  if (opened_.context != nullptr) ucx_.cleanup(opened_.context);
}

// --- messages
// -------------------------------------------------------------------------------------

Status UcxWire::connect(int peer, ByteView address) {
  if (address.empty() || address.size() > kMostAddressBytes) {
    return {StatusCode::kInvalidArgument,
            fmt::format("the address of rank {} has {} bytes: from 1 to {} are possible", peer,
                        address.size(), kMostAddressBytes)};
  }
  if (cancelled_) return {StatusCode::kAborted, "the wire was cancelled"};
  const auto [at, is_new] = peers_.try_emplace(peer);
  if (!is_new) {
    return {StatusCode::kInvalidArgument, fmt::format("rank {} is connected already", peer)};
  }
  at->second.wire = this;
  at->second.rank = peer;
  const Bytes aligned = to_bytes(address);  // which a view need not be
  UcxEndpointParams params;
  params.field_mask = UcxEndpointParams::kRemoteAddress | UcxEndpointParams::kErrorMode |
                      UcxEndpointParams::kErrorHandler;
  params.address = reinterpret_cast<UcxAddress>(const_cast<std::byte*>(aligned.data()));
  params.error_mode = UcxEndpointParams::kReportPeers;
  params.error_handler = {&UcxWire::on_lost, &at->second};
  const UcxStatus status = ucx_.ep_create(worker_, &params, &at->second.endpoint);
  if (status == UcxStatus::kOk) return {};
  peers_.erase(at);
  return ucx_failure("it cannot be reached over " + opened_.text, status);
}

UcxWire::Sending* UcxWire::take_record() {
  if (free_records_.empty()) {
    records_.emplace_back().wire = this;
    return &records_.back();
  }
  Sending* record = free_records_.back();
  free_records_.pop_back();
  return record;
}

Result<WireTicket> UcxWire::post(int peer, ByteView header, ByteView payload, std::uint32_t how) {
  if (cancelled_) return Status(StatusCode::kAborted, "the wire was cancelled");
  const auto at = peers_.find(peer);
  if (at == peers_.end()) {
    return Status(StatusCode::kInvalidArgument, fmt::format("rank {} is not connected", peer));
  }
  if (header.size() > kMostHeaderBytes) {
    return Status(StatusCode::kInvalidArgument,
                  fmt::format("a header of {} bytes: at most {}", header.size(), kMostHeaderBytes));
  }
  if (at->second.lost) {
    return ucx_failure(fmt::format("rank {} is lost", peer), at->second.why);
  }
  Sending* record = take_record();
  record->peer = &at->second;
  record->ticket = ++last_ticket_;
  std::copy(header.begin(), header.end(), record->header.begin());
  UcxRequestParams params;
  params.mask =
      UcxRequestParams::kCallback | UcxRequestParams::kUserData | UcxRequestParams::kMemoryType;
  if (opened_.reaches_gpus) {
    params.mask |= UcxRequestParams::kFlags;
    params.flags = how;
  }
  if (how == UcxRequestParams::kByRendezvous) params.memory_type = opened_.gpu_memory;
  params.sent = &UcxWire::on_sent;
  params.user_data = record;
  void* answer = ucx_.send(at->second.endpoint, kMessageId, record->header.data(), header.size(),
                           payload.data(), payload.size(), &params);
  if (answer != nullptr && !ucx_is_failure(answer)) {
    ++under_way_;
    return record->ticket;
  }
  free_records_.push_back(record);
  if (answer == nullptr) {
    sent_.push_back(record->ticket);
    return record->ticket;
  }
  lose(at->second, ucx_failure_of(answer));
  return ucx_failure(fmt::format("sending to rank {}", peer), ucx_failure_of(answer));
}

void UcxWire::on_sent(void* request, UcxStatus status, void* sending) {
  auto* record = static_cast<Sending*>(sending);
  UcxWire* wire = record->wire;
  if (status == UcxStatus::kOk) {
    wire->sent_.push_back(record->ticket);
  } else if (!wire->cancelled_) {
    wire->lose(*record->peer, status);
  }
  --wire->under_way_;
  wire->free_records_.push_back(record);
  wire->ucx_.request_free(request);
}

void UcxWire::lose(Peer& peer, UcxStatus why) {
  if (std::exchange(peer.lost, true)) return;
  peer.why = why;
  lost_.push_back(&peer);
}

void UcxWire::on_lost(void* peer, UcxEndpoint, UcxStatus status) {
  auto* lost = static_cast<Peer*>(peer);
  lost->wire->lose(*lost, status);
}

void UcxWire::deliver(ByteView header, ByteView payload) {
  if (!cancelled_ && handlers_.arrived) handlers_.arrived(header, payload);
}

UcxStatus UcxWire::arrived(const Arrived& message) {
  const ByteView header(static_cast<const std::byte*>(message.header), message.header_bytes);
  if ((message.how->attributes & UcxArrival::kRendezvous) != 0) {
    return receive(header, message.data, message.bytes);
  }
  deliver(header, {static_cast<const std::byte*>(message.data), message.bytes});
  return UcxStatus::kOk;
}

// The payload is still with the sender: in memory of its GPU, or where a setting of UCX's asks for
// rendezvous.
UcxStatus UcxWire::receive(ByteView header, void* descriptor, std::size_t bytes) {
  if (cancelled_) return UcxStatus::kOk;
  std::byte* const placed = handlers_.place ? handlers_.place(header, bytes) : nullptr;
  std::unique_ptr<std::byte[]> own(placed == nullptr ? new (std::nothrow) std::byte[bytes]
                                                     : nullptr);
  if (placed == nullptr && own == nullptr) {
    log(LogLevel::kWarn, "a message of {} bytes was dropped: there is no memory for it", bytes);
    return UcxStatus::kNoMemory;
  }
  std::byte* const into = placed == nullptr ? own.get() : placed;
  Receiving& message =
      receiving_.emplace_back(Receiving{this, to_bytes(header), std::move(own), into, bytes, {}});
  message.place = std::prev(receiving_.end());
  if (message.is_placed()) ++placed_;
  UcxRequestParams params;
  params.mask =
      UcxRequestParams::kCallback | UcxRequestParams::kUserData | UcxRequestParams::kMemoryType;
  if (message.is_placed()) params.memory_type = opened_.gpu_memory;
  params.received = &UcxWire::on_received;
  params.user_data = &message;
  void* answer = ucx_.receive(worker_, descriptor, into, bytes, &params);
  if (answer == nullptr) deliver(message.header, message.payload());
  if (ucx_is_failure(answer)) warn_not_received(bytes, ucx_failure_of(answer));
  if (answer == nullptr || ucx_is_failure(answer)) forget(message);
  return UcxStatus::kInProgress;  // the descriptor is UCX's
}

// Of a message that failed, only the deadline of whoever waits for it tells, if its sender is
// there.
void UcxWire::on_received(void* request, UcxStatus status, std::size_t, void* receiving) {
  auto* message = static_cast<Receiving*>(receiving);
  UcxWire* wire = message->wire;
  if (status == UcxStatus::kOk) {
    wire->deliver(message->header, message->payload());
  } else if (!wire->cancelled_) {
    warn_not_received(message->bytes, status);
  }
  wire->ucx_.request_free(request);
  wire->forget(*message);
}

void UcxWire::forget(const Receiving& message) {
  if (message.is_placed()) --placed_;
  receiving_.erase(message.place);
}

// --- progress
// -------------------------------------------------------------------------------------

bool UcxWire::progress() {
  const bool any = ucx_.worker_progress(worker_) != 0;
  take_closed();
  return report() || any;
}

bool UcxWire::report() {
  if (sent_.empty() && lost_.empty()) return false;
  // Handlers may post, and so add to both.
  for (const WireTicket ticket : std::exchange(sent_, {})) {
    if (!cancelled_ && handlers_.sent) handlers_.sent(ticket);
  }
  for (Peer* peer : std::exchange(lost_, {})) {
    close_endpoint(*peer);
    if (cancelled_ || !handlers_.lost) continue;
    handlers_.lost(peer->rank, {StatusCode::kPeerFailed,
                                fmt::format("the connection to rank {} over {} ended: "
                                            "{}",
                                            peer->rank, opened_.text, ucx_words(peer->why))});
  }
  return true;
}

void UcxWire::sleep(Clock::time_point until) {
  if (cancelled_ || !sent_.empty() || !lost_.empty()) return;
  // It says what has to be progressed before a sleep.
  if (ucx_.worker_arm(worker_) != UcxStatus::kOk) return;
  const auto left = std::max(until - Clock::now(), Clock::duration::zero());
  const auto seconds = std::chrono::duration_cast<std::chrono::seconds>(left);
  const auto rest = std::chrono::duration_cast<std::chrono::nanoseconds>(left - seconds);
  const timespec limit = {static_cast<std::time_t>(seconds.count()),
                          static_cast<long>(rest.count())};
  std::array<pollfd, 2> events = {{{event_, POLLIN, 0}, {wake_.get(), POLLIN, 0}}};
  if (::ppoll(events.data(), events.size(), &limit, nullptr) <= 0) return;
  std::uint64_t count = 0;
  if (events[1].revents != 0) (void)!::read(wake_.get(), &count, sizeof count);
}

void UcxWire::wake() {
  const std::uint64_t one = 1;
  (void)!::write(wake_.get(), &one, sizeof one);
}

// --- the end
// --------------------------------------------------------------------------------------

Status UcxWire::close_doors() {
  if (doors_unknown_) {
    return {StatusCode::kInternal,
            "a port was opened while UCX was started, and it cannot be told whose it is"};
  }
  for (const ListeningSocket& door : doors_) TUTTI_TRY(refuse_connections(door));
  return {};
}

void UcxWire::close_endpoint(Peer& peer) {
  if (peer.endpoint == nullptr) return;
  UcxRequestParams params;
  params.mask = UcxRequestParams::kFlags;
  params.flags = UcxRequestParams::kCloseByForce;
  void* answer = ucx_.ep_close(std::exchange(peer.endpoint, nullptr), &params);
  if (answer != nullptr && !ucx_is_failure(answer)) closing_.push_back(answer);
}

void UcxWire::take_closed() {
  std::erase_if(closing_, [this](void* request) {
    if (ucx_.request_status(request) == UcxStatus::kInProgress) return false;
    ucx_.request_free(request);
    return true;
  });
}

void UcxWire::cancel_all() {
  if (std::exchange(cancelled_, true)) return;
  for (auto& [rank, peer] : peers_) close_endpoint(peer);
  const Clock::time_point limit = Clock::now() + kCloseLimit;
  while (under_way_ + placed_ > 0 || !closing_.empty()) {
    ucx_.worker_progress(worker_);
    take_closed();
    if (Clock::now() < limit) continue;
    log(LogLevel::kWarn, "UCX has not given back {} messages and {} connections within {} s",
        under_way_ + placed_, closing_.size(), kCloseLimit.count());
    break;
  }
}

}  // namespace

Result<std::unique_ptr<Wire>> open_ucx_wire(const WireOptions& options) {
  TUTTI_ASSIGN(UcxLibrary library, find_ucx(options.library));
  auto wire = std::make_unique<UcxWire>(std::move(library));
  TUTTI_TRY(wire->open(options));
  return std::unique_ptr<Wire>(std::move(wire));
}

}  // namespace tutti
