// An Ethernet switch between network namespaces that delivers every frame DELAY later, for machines
// whose kernel has no netem. `cluster up --delay` starts it.
//
//   delay_switch DELAY_NS RATE CONTROL PORT...
//
// A PORT is NAMESPACE/INTERFACE, or /INTERFACE for the namespace of this process: a TAP interface
// that the switch makes and that ends with it. RATE, in bits per second, limits what each namespace
// receives, as a token bucket of 64 KB; frames that would wait more than 50 ms for it are dropped.
// 0 is no limit. What a namespace sends is limited by its own qdisc. /INTERFACE has no limit.
//
// CONTROL is a FIFO. `cut N` lets port N, counted from 0, lose all frames; `restore N` ends that;
// `count` prints the counters. SIGTERM prints them and ends the switch.
#include <fcntl.h>
#include <signal.h>
#include <sys/epoll.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <unistd.h>

#include <linux/if.h>
#include <linux/if_tun.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <sched.h>
#include <span>
#include <sstream>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

namespace {

// In front of each frame: a virtio_net_hdr of Linux.
struct Header {
  std::uint8_t flags = 0, segmented = 0;
  std::uint16_t linear_bytes = 0, segment_bytes = 0, tcp_offset = 0, checksum_offset = 0;
};

constexpr std::size_t kHeaderBytes = sizeof(Header);
constexpr std::size_t kMostFrameBytes = kHeaderBytes + 65600;  // several segments of TCP together
constexpr std::size_t kAddressBytes = 6;
constexpr double kBurstBytes = 65536;
constexpr std::int64_t kMostWaitNs = 50'000'000;  // for the rate, beyond the delay
constexpr std::int64_t kLateNs = 200'000;
constexpr int kReadsAtOnce = 16;
constexpr std::int64_t kMostIdleNs = 1'000'000'000;

volatile sig_atomic_t ended = 0;

[[noreturn]] void fail(const std::string& what) {
  std::fprintf(stderr, "delay_switch: %s: %s\n", what.c_str(), std::strerror(errno));
  std::_Exit(1);
}

std::int64_t now_ns() {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(
             std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

struct Frame {
  std::vector<std::byte> bytes;  // a Header, then Ethernet
  std::int64_t due_ns = 0;
};

struct Port {
  int fd = -1;
  bool limited = false, cut = false;
  std::deque<Frame> queue = {};  // in the order of their due times
  double tokens = kBurstBytes;   // bytes that may leave at once, at `tokens_at_ns`
  std::int64_t tokens_at_ns = 0;
};

struct Counters {
  std::uintmax_t frames = 0, dropped = 0, lost_to_cuts = 0;
  std::uintmax_t late = 0;  // frames, by more than kLateNs: the switch had no core
};

// What the frame occupies on the wire: each segment of TCP has headers of its own.
std::size_t wire_bytes(std::span<const std::byte> bytes) {
  Header header;
  std::memcpy(&header, bytes.data(), kHeaderBytes);
  const auto frame = bytes.subspan(kHeaderBytes);
  constexpr std::size_t kDataOffset = 12;  // of TCP's header: its length in words, four bits
  const std::size_t at = header.tcp_offset + kDataOffset;
  if (header.segmented == 0 || header.segment_bytes == 0 || at >= frame.size()) {
    return frame.size();
  }
  const std::size_t headers = header.tcp_offset + std::to_integer<std::size_t>(frame[at] >> 4) * 4;
  const std::size_t data = frame.size() - std::min(headers, frame.size());
  const std::size_t segments = (data + header.segment_bytes - 1) / header.segment_bytes;
  return headers * std::max<std::size_t>(segments, 1) + data;
}

std::uint64_t address_at(std::span<const std::byte> bytes, std::size_t offset) {
  std::uint64_t address = 0;
  std::memcpy(&address, bytes.data() + offset, kAddressBytes);
  return address;
}

class Switch {
 public:
  Switch(std::int64_t delay_ns, double bits_per_second, const char* control)
      : delay_ns_(delay_ns), bytes_per_ns_(bits_per_second / 8e9) {
    control_ = ::open(control, O_RDWR | O_NONBLOCK | O_CLOEXEC);
    if (control_ < 0) fail(control);
    watch(control_, kControl);
  }

  void add_port(const std::string& name);
  void run();
  void print_counters() const {
    std::printf("frames %ju dropped %ju lost_to_cuts %ju late %ju\n", counters_.frames,
                counters_.dropped, counters_.lost_to_cuts, counters_.late);
  }

 private:
  static constexpr std::uint32_t kControl = UINT32_MAX;

  void watch(int fd, std::uint32_t what) const {
    epoll_event event{.events = EPOLLIN, .data = {.u32 = what}};
    if (::epoll_ctl(epoll_, EPOLL_CTL_ADD, fd, &event) != 0) fail("epoll_ctl");
  }
  void obey();
  void receive(std::size_t from);
  void forward(std::size_t from, std::vector<std::byte> bytes);
  void enqueue(Port& port, std::vector<std::byte> bytes, std::int64_t now);
  void send_due(Port& port);
  timespec time_to_next() const;

  int epoll_ = ::epoll_create1(EPOLL_CLOEXEC);
  int control_ = -1;
  std::int64_t delay_ns_;
  double bytes_per_ns_;
  std::vector<Port> ports_;
  std::unordered_map<std::uint64_t, std::size_t> port_of_;  // of an Ethernet address
  std::vector<std::byte> buffer_ = std::vector<std::byte>(kMostFrameBytes);
  Counters counters_;
};

// A TAP interface belongs to the namespace of the thread that opens it.
void Switch::add_port(const std::string& name) {
  const std::size_t slash = name.find('/');
  if (slash == std::string::npos) fail(name + " is not NAMESPACE/INTERFACE");
  const int home = ::open("/proc/self/ns/net", O_RDONLY | O_CLOEXEC);
  if (slash > 0) {
    const int there = ::open(("/run/netns/" + name.substr(0, slash)).c_str(), O_RDONLY | O_CLOEXEC);
    if (there < 0 || ::setns(there, CLONE_NEWNET) != 0) fail(name);
    ::close(there);
  }
  const int fd = ::open("/dev/net/tun", O_RDWR | O_NONBLOCK | O_CLOEXEC);
  ifreq request{};
  name.copy(request.ifr_name, IFNAMSIZ - 1, slash + 1);
  request.ifr_flags = IFF_TAP | IFF_NO_PI | IFF_VNET_HDR;
  // The kernel hands over several segments of TCP as one frame, and takes them back as one.
  if (fd < 0 || ::ioctl(fd, TUNSETIFF, &request) != 0 ||
      ::ioctl(fd, TUNSETOFFLOAD, TUN_F_CSUM | TUN_F_TSO4 | TUN_F_TSO6) != 0) {
    fail(name);
  }
  if (::setns(home, CLONE_NEWNET) != 0) fail("the way back from " + name);
  ::close(home);
  watch(fd, static_cast<std::uint32_t>(ports_.size()));
  ports_.push_back({.fd = fd, .limited = slash > 0 && bytes_per_ns_ > 0});
}

// A writer's line is read as a whole, since it is short.
void Switch::obey() {
  std::array<char, 4096> text{};
  if (::read(control_, text.data(), text.size() - 1) <= 0) return;
  std::istringstream words(text.data());
  std::size_t port = 0;
  for (std::string word; words >> word;) {
    if (word == "count") {
      print_counters();
    } else if (words >> port && port < ports_.size()) {
      ports_[port].cut = word == "cut";
    }
  }
}

// The due time is that of the delay, or later if the port's bucket has too few tokens by then.
void Switch::enqueue(Port& port, std::vector<std::byte> bytes, std::int64_t now) {
  std::int64_t due = now + delay_ns_;
  if (port.limited) {
    const auto wire = static_cast<double>(wire_bytes(bytes));
    const auto passed = static_cast<double>(due - port.tokens_at_ns);
    const double tokens = std::min(port.tokens + passed * bytes_per_ns_, kBurstBytes) - wire;
    const auto wait = static_cast<std::int64_t>(std::max(0.0, -tokens) / bytes_per_ns_);
    if (wait > kMostWaitNs) return void(++counters_.dropped);
    port.tokens = tokens;  // negative: the debt of frames that wait
    port.tokens_at_ns = due;
    due += wait;
  }
  port.queue.push_back({.bytes = std::move(bytes), .due_ns = due});
}

void Switch::forward(std::size_t from, std::vector<std::byte> bytes) {
  const std::uint64_t to = address_at(bytes, kHeaderBytes);
  port_of_[address_at(bytes, kHeaderBytes + kAddressBytes)] = from;
  if (ports_[from].cut) {
    ++counters_.lost_to_cuts;
    return;
  }
  const std::int64_t now = now_ns();
  if (const auto known = port_of_.find(to); known != port_of_.end()) {
    if (known->second != from) enqueue(ports_[known->second], std::move(bytes), now);
    return;
  }
  for (std::size_t port = 0; port < ports_.size(); ++port) {
    if (port != from) enqueue(ports_[port], bytes, now);
  }
}

void Switch::receive(std::size_t from) {
  for (int k = 0; k < kReadsAtOnce; ++k) {
    const ssize_t got = ::read(ports_[from].fd, buffer_.data(), buffer_.size());
    if (got < static_cast<ssize_t>(kHeaderBytes + 2 * kAddressBytes)) return;
    forward(from, {buffer_.begin(), buffer_.begin() + got});
  }
}

void Switch::send_due(Port& port) {
  while (!port.queue.empty()) {
    Frame& frame = port.queue.front();
    const std::int64_t now = now_ns();
    if (frame.due_ns > now) return;
    if (now - frame.due_ns > kLateNs) ++counters_.late;
    if (port.cut) {
      ++counters_.lost_to_cuts;
    } else if (::write(port.fd, frame.bytes.data(), frame.bytes.size()) < 0) {
      ++(errno == EIO ? counters_.lost_to_cuts : counters_.dropped);  // EIO: it is not up
    } else {
      ++counters_.frames;
    }
    port.queue.pop_front();
  }
}

timespec Switch::time_to_next() const {
  const std::int64_t now = now_ns();
  std::int64_t due = now + kMostIdleNs;
  for (const Port& port : ports_) {
    if (!port.queue.empty()) due = std::min(due, port.queue.front().due_ns);
  }
  const std::int64_t wait = std::max<std::int64_t>(due - now, 0);
  return {.tv_sec = wait / 1'000'000'000, .tv_nsec = wait % 1'000'000'000};
}

void Switch::run() {
  std::array<epoll_event, 64> events{};
  while (ended == 0) {
    const timespec limit = time_to_next();
    const int count =
        ::epoll_pwait2(epoll_, events.data(), static_cast<int>(events.size()), &limit, nullptr);
    if (count < 0 && errno != EINTR) fail("epoll_pwait2");
    for (int k = 0; k < count; ++k) {
      const std::uint32_t what = events.at(static_cast<std::size_t>(k)).data.u32;
      if (what == kControl) {
        obey();
      } else {
        receive(what);
      }
    }
    for (Port& port : ports_) send_due(port);
  }
}

}  // namespace

int main(int count, char** words) {
  if (count < 6) {
    std::fprintf(stderr, "usage: delay_switch DELAY_NS RATE CONTROL PORT PORT...\n");
    return 2;
  }
  struct sigaction action {};
  action.sa_handler = [](int) { ended = 1; };
  for (const int signal : {SIGTERM, SIGINT}) ::sigaction(signal, &action, nullptr);
  ::signal(SIGHUP, SIG_IGN);
  // The switch stands for hardware: it goes before what is measured, where that is allowed.
  const sched_param priority{.sched_priority = 10};
  ::sched_setscheduler(0, SCHED_FIFO, &priority);
  ::prctl(PR_SET_TIMERSLACK, 1UL, 0UL, 0UL, 0UL);
  Switch between(std::strtoll(words[1], nullptr, 10), std::strtod(words[2], nullptr), words[3]);
  for (int k = 4; k < count; ++k) between.add_port(words[k]);
  std::setvbuf(stdout, nullptr, _IOLBF, 0);  // each line is seen at once
  std::printf("ready\n");
  between.run();
  between.print_counters();
  return 0;
}
