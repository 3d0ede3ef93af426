#include "drivers/sockets.hpp"

#include <fcntl.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <unistd.h>

#include <fmt/format.h>

#include <cerrno>
#include <condition_variable>
#include <cstring>
#include <memory>
#include <mutex>
#include <system_error>
#include <thread>

#include "base/system_error.hpp"
#include "base/try.hpp"

namespace tutti {
namespace {

bool would_block(int error) { return error == EAGAIN || error == EWOULDBLOCK || error == EINTR; }

const sockaddr* raw(const SocketAddress& address) {
  return reinterpret_cast<const sockaddr*>(address.data());
}

// Small messages leave at once, and a host that vanished without a word is noticed in ~10 s.
void tune_tcp(int socket) {
  const auto set = [&](int level, int option, int value) {
    ::setsockopt(socket, level, option, &value, sizeof value);
  };
  set(IPPROTO_TCP, TCP_NODELAY, 1);
  set(SOL_SOCKET, SO_KEEPALIVE, 1);
  set(IPPROTO_TCP, TCP_KEEPIDLE, 5);
  set(IPPROTO_TCP, TCP_KEEPINTVL, 1);
  set(IPPROTO_TCP, TCP_KEEPCNT, 5);
  set(IPPROTO_TCP, TCP_USER_TIMEOUT, 10'000);
}

void let_addresses_be_reused(int socket) {
  const int yes = 1;
  ::setsockopt(socket, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes);
}

Result<Fd> open_socket(const SocketAddress& address) {
  Fd socket(::socket(raw(address)->sa_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!socket.valid()) return system_failure("cannot open a socket", errno);
  return socket;
}

// getaddrinfo(3) knows no deadline, so it runs on a thread that owns what it touches and is left
// behind where it is too slow.
struct Lookup {
  std::mutex mutex;
  std::condition_variable changed;
  bool done = false;
  int error = 0;
  std::vector<SocketAddress> found;
};

void look_up(const std::string& host, std::uint16_t port, Lookup& lookup) {
  addrinfo hints{};
  hints.ai_family = AF_UNSPEC;
  hints.ai_socktype = SOCK_STREAM;
  addrinfo* list = nullptr;
  const int error = ::getaddrinfo(host.c_str(), std::to_string(port).c_str(), &hints, &list);
  const std::lock_guard lock(lookup.mutex);
  lookup.error = error;
  for (const addrinfo* entry = list; error == 0 && entry != nullptr; entry = entry->ai_next) {
    lookup.found.push_back(SocketAddress::from_system(entry->ai_addr, entry->ai_addrlen));
  }
  if (list != nullptr) ::freeaddrinfo(list);
  lookup.done = true;
  lookup.changed.notify_all();
}

// Takes the descriptors out of a received control message. False where some were lost: then all are
// closed again, since who is short of descriptors should not keep a part.
bool take_descriptors(msghdr& message, std::vector<Fd>& descriptors) {
  const std::size_t before = descriptors.size();
  for (cmsghdr* control = CMSG_FIRSTHDR(&message); control != nullptr;
       control = CMSG_NXTHDR(&message, control)) {
    if (control->cmsg_level != SOL_SOCKET || control->cmsg_type != SCM_RIGHTS) continue;
    const std::size_t count = (control->cmsg_len - CMSG_LEN(0)) / sizeof(int);
    for (std::size_t i = 0; i < count; ++i) {
      int fd = -1;
      std::memcpy(&fd, CMSG_DATA(control) + i * sizeof fd, sizeof fd);
      descriptors.emplace_back(fd);
    }
  }
  const bool complete = (message.msg_flags & MSG_CTRUNC) == 0;
  if (!complete) descriptors.resize(before);
  return complete;
}

union ControlBuffer {
  cmsghdr align;
  char bytes[CMSG_SPACE(SocketDriver::kMaxDescriptors * sizeof(int))];
};

void attach_descriptors(msghdr& message, ControlBuffer& control, std::span<const int> descriptors) {
  std::memset(&control, 0, sizeof control);
  message.msg_control = control.bytes;
  message.msg_controllen = CMSG_SPACE(descriptors.size_bytes());
  cmsghdr* header = CMSG_FIRSTHDR(&message);
  header->cmsg_level = SOL_SOCKET;
  header->cmsg_type = SCM_RIGHTS;
  header->cmsg_len = CMSG_LEN(descriptors.size_bytes());
  std::memcpy(CMSG_DATA(header), descriptors.data(), descriptors.size_bytes());
}

class RealSockets final : public SocketDriver {
 public:
  Result<std::vector<SocketAddress>> resolve(const std::string& host, std::uint16_t port,
                                             Deadline deadline) override {
    // "localhost" is this machine whether or not its files say so (RFC 6761, 6.3).
    if (auto numeric = SocketAddress::tcp(host == "localhost" ? "127.0.0.1" : host, port);
        numeric.is_ok()) {
      return std::vector<SocketAddress>{*numeric};
    }
    auto lookup = std::make_shared<Lookup>();
    try {
      std::thread([host, port, lookup] { look_up(host, port, *lookup); }).detach();
    } catch (const std::system_error& error) {
      return Status(StatusCode::kResourceExhausted,
                    fmt::format("cannot start a thread: {}", error.what()));
    }
    std::unique_lock lock(lookup->mutex);
    if (!deadline.wait(lookup->changed, lock, [&] { return lookup->done; })) {
      return Status(StatusCode::kTimeout, fmt::format("the name \"{}\" was not resolved in time; "
                                                      "give a numeric address",
                                                      host));
    }
    if (lookup->error != 0 || lookup->found.empty()) {
      return Status(StatusCode::kUnavailable, fmt::format("the name \"{}\" has no address: {}",
                                                          host, gai_strerror(lookup->error)));
    }
    return lookup->found;
  }

  Result<Fd> hold_port(const SocketAddress& address) override {
    TUTTI_ASSIGN(Fd socket, open_socket(address));
    let_addresses_be_reused(socket.get());
    if (::bind(socket.get(), raw(address), static_cast<socklen_t>(address.size())) == 0) {
      return socket;
    }
    if (errno == EADDRNOTAVAIL) {
      return Status(StatusCode::kInvalidArgument,
                    fmt::format("{} is no address of this machine", address.host()));
    }
    return system_failure(fmt::format("cannot hold a port at {}", address.host()), errno);
  }

  Result<Fd> listen(const SocketAddress& address) override {
    TUTTI_ASSIGN(Fd socket, open_socket(address));
    if (!address.is_unix()) let_addresses_be_reused(socket.get());
    if (::bind(socket.get(), raw(address), static_cast<socklen_t>(address.size())) != 0 ||
        ::listen(socket.get(), SOMAXCONN) != 0) {
      const int error = errno;
      if (error == EADDRINUSE || error == ENOENT) {
        return Status(StatusCode::kUnavailable,
                      fmt::format("cannot listen at {}: {}", address.text(),
                                  std::generic_category().message(error)));
      }
      return system_failure(fmt::format("cannot listen at {}", address.text()), error);
    }
    return socket;
  }

  Result<Fd> accept(int listener) override {
    Fd socket(::accept4(listener, nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
    if (!socket.valid() && !would_block(errno) && errno != ECONNABORTED) {
      return system_failure("cannot accept a connection", errno);
    }
    if (socket.valid()) tune_tcp(socket.get());  // harmless on a UNIX socket
    return socket;
  }

  Result<Fd> connect(const SocketAddress& address) override {
    TUTTI_ASSIGN(Fd socket, open_socket(address));
    if (!address.is_unix()) tune_tcp(socket.get());
    if (::connect(socket.get(), raw(address), static_cast<socklen_t>(address.size())) == 0 ||
        errno == EINPROGRESS) {
      return socket;
    }
    return connect_failure(address.text(), errno);
  }

  Status connected(int socket) override {
    int error = 0;
    socklen_t length = sizeof error;
    if (::getsockopt(socket, SOL_SOCKET, SO_ERROR, &error, &length) != 0) error = errno;
    return error == 0 ? Status::ok() : connect_failure("its address", error);
  }

  Result<SocketAddress> local_address(int socket) override {
    sockaddr_storage address{};
    socklen_t length = sizeof address;
    if (::getsockname(socket, reinterpret_cast<sockaddr*>(&address), &length) != 0) {
      return system_failure("cannot read a socket's address", errno);
    }
    return SocketAddress::from_system(&address, length);
  }

  Result<SocketAddress> remote_address(int socket) override {
    sockaddr_storage address{};
    socklen_t length = sizeof address;
    if (::getpeername(socket, reinterpret_cast<sockaddr*>(&address), &length) != 0) {
      return system_failure("cannot read a peer's address", errno);
    }
    return SocketAddress::from_system(&address, length);
  }

  Result<SocketPeer> peer(int socket) override {
    ucred credentials{};
    socklen_t length = sizeof credentials;
    if (::getsockopt(socket, SOL_SOCKET, SO_PEERCRED, &credentials, &length) != 0) {
      return system_failure("cannot read who is at the other end", errno);
    }
    return SocketPeer{credentials.pid, credentials.uid};
  }

  std::uint32_t user_id() override { return ::geteuid(); }

  Result<SocketTransfer> send(int socket, std::span<const ByteView> parts,
                              std::span<const int> descriptors) override {
    std::array<iovec, 4> vectors{};
    if (parts.size() > vectors.size() || descriptors.size() > kMaxDescriptors) {
      return Status(StatusCode::kInternal, "too many parts or descriptors in one message");
    }
    msghdr message{};
    message.msg_iov = vectors.data();
    for (const ByteView part : parts) {
      vectors[message.msg_iovlen++] = {const_cast<std::byte*>(part.data()), part.size()};
    }
    ControlBuffer control;
    if (!descriptors.empty()) attach_descriptors(message, control, descriptors);
    const ssize_t sent = ::sendmsg(socket, &message, MSG_NOSIGNAL | MSG_DONTWAIT);
    if (sent >= 0) return SocketTransfer{.bytes = static_cast<std::size_t>(sent)};
    if (would_block(errno)) return SocketTransfer{};
    if (errno == EPIPE || errno == ECONNRESET) return SocketTransfer{.closed = true};
    return system_failure("cannot send", errno);
  }

  Result<SocketTransfer> receive(int socket, std::span<std::byte> into,
                                 std::vector<Fd>& descriptors) override {
    iovec vector{into.data(), into.size()};
    ControlBuffer control;
    msghdr message{};
    message.msg_iov = &vector;
    message.msg_iovlen = 1;
    message.msg_control = control.bytes;
    message.msg_controllen = sizeof control.bytes;
    const ssize_t received = ::recvmsg(socket, &message, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
    if (received < 0) {
      if (would_block(errno)) return SocketTransfer{};
      if (errno == ECONNRESET) return SocketTransfer{.closed = true};
      return system_failure("cannot receive", errno);
    }
    const bool complete = take_descriptors(message, descriptors);
    return SocketTransfer{.bytes = static_cast<std::size_t>(received),
                          .closed = received == 0 && !into.empty(),
                          .lost_descriptors = !complete};
  }

  Status wait(std::span<SocketWait> waits, std::optional<Deadline> deadline) override {
    std::vector<pollfd> polls;
    polls.reserve(waits.size());
    for (const SocketWait& wait : waits) {
      short events = POLLRDHUP;
      if (wait.read) events |= POLLIN;
      if (wait.write) events |= POLLOUT;
      polls.push_back({wait.fd, events, 0});
    }
    int count = 0;
    do {
      count = ::poll(polls.data(), polls.size(), deadline ? deadline->poll_ms() : -1);
    } while (count == 0 && deadline && !deadline->passed());
    if (count < 0 && errno != EINTR) return system_failure("cannot wait for sockets", errno);
    for (std::size_t i = 0; i < waits.size(); ++i) {
      const short seen = count > 0 ? polls[i].revents : short{0};
      waits[i].hung_up = (seen & (POLLRDHUP | POLLHUP | POLLERR | POLLNVAL)) != 0;
      waits[i].readable = (seen & POLLIN) != 0 || (waits[i].read && waits[i].hung_up);
      waits[i].writable = (seen & POLLOUT) != 0 || (waits[i].write && waits[i].hung_up);
    }
    return Status::ok();
  }

  Status reserve(std::size_t descriptors) override {
    // One at a time: ranks that are threads would each count what the others try.
    static std::mutex mutex;
    const std::lock_guard lock(mutex);
    std::vector<Fd> held;
    while (held.size() < descriptors) {
      held.emplace_back(::eventfd(0, EFD_CLOEXEC));
      if (held.back().valid()) continue;
      return system_failure(fmt::format("cannot open {} descriptors", descriptors), errno);
    }
    return Status::ok();
  }

  Result<Fd> make_event() override {
    Fd event(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
    if (!event.valid()) return system_failure("cannot open an event", errno);
    return event;
  }

  void wake(int event) override {
    const std::uint64_t one = 1;
    // The only failure is a counter at its maximum, which is readable already.
    [[maybe_unused]] const ssize_t written = ::write(event, &one, sizeof one);
  }

  void clear(int event) override {
    std::uint64_t count = 0;
    [[maybe_unused]] const ssize_t seen = ::read(event, &count, sizeof count);
  }

  Result<Fd> watch_process(std::int64_t process_id) override {
    Fd process(static_cast<int>(::syscall(SYS_pidfd_open, static_cast<pid_t>(process_id), 0)));
    if (!process.valid()) {
      return Status(StatusCode::kUnavailable, fmt::format("cannot watch process {}: {}", process_id,
                                                          std::generic_category().message(errno)));
    }
    ::fcntl(process.get(), F_SETFD, FD_CLOEXEC);
    return process;
  }

 private:
  static Status connect_failure(std::string_view where, int error) {
    const std::string what = fmt::format("cannot connect to {}", where);
    switch (error) {
      case ENOENT:
      case ECONNREFUSED:
      case ECONNRESET:
      case ETIMEDOUT:
      case EHOSTUNREACH:
      case ENETUNREACH:
        return {StatusCode::kUnavailable,
                fmt::format("{}: {}", what, std::generic_category().message(error))};
      case EAGAIN:
        return {StatusCode::kResourceExhausted,
                fmt::format("{}: too many wait there to be let in", what)};
      default:
        return system_failure(what, error);
    }
  }
};

}  // namespace

SocketDriver& real_sockets() {
  static RealSockets sockets;
  return sockets;
}

}  // namespace tutti
