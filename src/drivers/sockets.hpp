// Stream sockets, UNIX and TCP, as bootstrap needs them: nothing here ever blocks but wait() and
// resolve(), and both take a deadline. All descriptors are close-on-exec.
#pragma once

#include <atomic>
#include <cstdint>
#include <limits>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/bytes.hpp"
#include "base/deadline.hpp"
#include "base/fd.hpp"
#include "tutti/status.hpp"

namespace tutti {

// Where a socket listens: a path on this host, or a numeric address and a port.
class SocketAddress {
 public:
  SocketAddress() = default;
  // kInvalidArgument where the path is longer than the system's sun_path.
  static Result<SocketAddress> unix_path(std::string_view path);
  // `host` is numeric ("127.0.0.1", "::1"); names go through SocketDriver::resolve().
  static Result<SocketAddress> tcp(std::string_view host, std::uint16_t port);
  // What accept(2) and friends filled in.
  static SocketAddress from_system(const void* address, std::size_t bytes);

  SocketAddress with_port(std::uint16_t port) const;
  SocketAddress wildcard() const;  // every interface, same family and port
  bool is_unix() const;
  bool is_loopback() const;
  std::uint16_t port() const;
  std::string host() const;  // numeric, or the path
  std::string text() const;  // "127.0.0.1:4000", "[::1]:4000", or the path

  const std::byte* data() const { return storage_.data(); }
  std::size_t size() const { return size_; }

 private:
  alignas(8) std::array<std::byte, 128> storage_{};
  std::size_t size_ = 0;
};

// Splits "host:port", "[v6]:port". kInvalidArgument says what is wrong.
struct HostPort {
  std::string host;
  std::uint16_t port = 0;
};
Result<HostPort> parse_host_port(std::string_view text);

// What one send or receive did. bytes == 0 and not closed: it would have blocked.
struct SocketTransfer {
  std::size_t bytes = 0;
  bool closed = false;
  bool lost_descriptors = false;  // some came with these bytes, but this process may open no more
};

// One line of a wait: what is asked for, and what is the case afterwards.
struct SocketWait {
  int fd = -1;  // negative: skipped
  bool read = false, write = false;
  bool readable = false, writable = false;
  bool hung_up = false;  // the other end will send nothing more; unread bytes may be left
};

struct SocketPeer {
  std::int64_t process_id = 0;
  std::uint32_t user_id = 0;
};

class SocketDriver {
 public:
  static constexpr std::size_t kMaxDescriptors = 253;  // the system's limit for one message

  virtual ~SocketDriver() = default;

  // Addresses of `host` (a name or numeric), best first.
  virtual Result<std::vector<SocketAddress>> resolve(const std::string& host, std::uint16_t port,
                                                     Deadline deadline) = 0;
  // kUnavailable where the address is in use or its directory is missing.
  virtual Result<Fd> listen(const SocketAddress& address) = 0;
  // TCP. A socket that is bound and does not listen. While it is open, nobody is given its port who
  // asks for any, or binds without SO_REUSEADDR; listen() succeeds there, in any process.
  // kInvalidArgument where the address is none of this machine.
  virtual Result<Fd> hold_port(const SocketAddress& address) = 0;
  // An invalid Fd where nobody waits.
  virtual Result<Fd> accept(int listener) = 0;
  // The connection may still be under way; once writable, connected() tells. kUnavailable where
  // nobody listens (yet), kResourceExhausted where somebody does whose queue is full.
  virtual Result<Fd> connect(const SocketAddress& address) = 0;
  virtual Status connected(int socket) = 0;
  virtual Result<SocketAddress> local_address(int socket) = 0;
  virtual Result<SocketAddress> remote_address(int socket) = 0;
  virtual Result<SocketPeer> peer(int socket) = 0;  // UNIX only; told by the kernel
  virtual std::uint32_t user_id() = 0;              // of this process, as peers see it

  // `descriptors` (UNIX only) go with the first byte. Never raises SIGPIPE.
  virtual Result<SocketTransfer> send(int socket, std::span<const ByteView> parts,
                                      std::span<const int> descriptors) = 0;
  // Appends the descriptors that came with these bytes, unless they were lost.
  virtual Result<SocketTransfer> receive(int socket, std::span<std::byte> into,
                                         std::vector<Fd>& descriptors) = 0;

  // Returns when something is the case, or at the deadline. Without one, for who can be woken.
  virtual Status wait(std::span<SocketWait> waits, std::optional<Deadline> deadline) = 0;

  // Whether this process may open so many descriptors now; none is kept. kResourceExhausted names
  // the limit.
  virtual Status reserve(std::size_t descriptors) = 0;

  // A descriptor that is readable from wake() until clear().
  virtual Result<Fd> make_event() = 0;
  virtual void wake(int event) = 0;
  virtual void clear(int event) = 0;

  // Readable once the process has ended. kUnavailable where the kernel cannot say.
  virtual Result<Fd> watch_process(std::int64_t process_id) = 0;
};

SocketDriver& real_sockets();

}  // namespace tutti
