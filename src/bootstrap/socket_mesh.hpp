// A connection to every other rank, and one thread that reads them all, finishes what could not be
// sent at once, and notices when a peer's process ends.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "bootstrap/mesh.hpp"
#include "bootstrap/worker.hpp"

namespace tutti {

class SocketMesh final : public Mesh {
 public:
  struct Setup {
    SocketDriver* sockets = nullptr;
    int rank = 0;
    std::vector<Fd> connections;  // by rank; proved, all frames before this mesh read; own: invalid
    Digest secret{};
    bool is_unix = true;
  };
  // A failure names this rank, and has been told to the others.
  static Result<std::shared_ptr<SocketMesh>> start(Setup setup);
  // Once established, says goodbye and waits at most kGoodbye for the answers, so that nothing sent
  // before is lost.
  ~SocketMesh() override;

  int rank() const override { return setup_.rank; }
  int size() const override { return static_cast<int>(peers_.size()); }
  Inbox& inbox() override { return inbox_; }
  void send(int to, Message message) override;
  std::vector<int> flush(const std::vector<int>& members, Deadline deadline) override;
  bool catch_up(Deadline deadline) override;
  bool carries_descriptors() const override { return setup_.is_unix; }
  const Digest& secret() const override { return setup_.secret; }

  // The first group has come about. From now on processes of this host are watched as well: a
  // forked child can hold a dead peer's connection open, but not its process id. Where the kernel
  // cannot watch processes, /proc is read now and then.
  void established(const std::vector<PeerIdentity>& identities);

 private:
  static constexpr std::chrono::milliseconds kGoodbye{1000}, kBetweenLooks{250};

  struct Peer {
    Fd socket, process;
    PeerIdentity looked_for;  // in /proc, where `process` cannot be had; else of no process
    FrameReader reader;       // of the thread alone
    FrameWriter writer;
    bool open = false;
    bool send_failed = false;  // found by a sender; the thread reads what is left, and closes
    bool said_goodbye = false, saw_goodbye = false;
  };

  explicit SocketMesh(Setup setup);
  Status start_thread();
  void run();
  void serve_until_stopped();
  bool wait_for_work(std::vector<SocketWait>& waits);
  void watch_locked(Peer& peer, const PeerIdentity& identity);
  void look_for_ended();
  void read_all_if_asked();
  void serve(int peer, const SocketWait& socket, const SocketWait& process);
  void lose(int peer, std::string why);
  // False once the connection is at its end; `why` says how.
  bool read_from(int peer, bool to_the_end, std::string& why);
  bool take(int peer, Message message, std::string& why);
  void drop(int peer, const std::string& why);
  void flush_locked(Peer& peer);
  void say_goodbye();

  Setup setup_;
  SocketDriver& sockets_;
  Fd event_;
  Inbox inbox_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<Peer> peers_;
  bool stopping_ = false, established_ = false;
  std::uint64_t asked_to_read_ = 0, has_read_ = 0;  // all that had come
  bool looks_ = false;                              // for somebody in /proc
  Deadline::Clock::time_point looked_;
  Worker worker_;
};

}  // namespace tutti
