#include "bootstrap/meeting_place.hpp"

#include <fmt/format.h>

#include <chrono>
#include <thread>

#include "base/try.hpp"
#include "bootstrap/private_directory.hpp"

namespace tutti {

std::string MeetingPlace::path(int rank) const { return fmt::format("{}/r{}", directory_, rank); }

Result<SocketAddress> MeetingPlace::address(int rank) const {
  return SocketAddress::unix_path(path(rank));
}

bool MeetingPlace::is_alive() const {
  const auto here = address(0);
  return here.is_ok() && sockets_.connect(*here).status().code() != StatusCode::kUnavailable;
}

void MeetingPlace::remove(const std::string& directory, int size) {
  for (int rank = 0; rank < size; ++rank) remove_file(fmt::format("{}/r{}", directory, rank));
  remove_directory(directory);
}

void MeetingPlace::close() {
  if (listening_ >= 0) remove_file(path(listening_));
  listening_ = -1;
}

void MeetingPlace::end(const Status& outcome) {
  close();
  const bool all = !outcome.is_ok() && outcome.code() != StatusCode::kMismatch;
  remove(directory_, all ? size_ : 0);
}

Result<Fd> MeetingPlace::try_listen(int rank, bool create_directory) {
  TUTTI_TRY(create_directory ? make_private_directory(directory_)
                             : check_private_directory(directory_));
  TUTTI_ASSIGN(const SocketAddress here, address(rank));
  auto listener = sockets_.listen(here);
  if (listener.is_ok() || listener.status().code() != StatusCode::kUnavailable) return listener;
  // In use, or the directory has just been taken down. A socket that nobody answers at is left
  // over.
  const auto probe = sockets_.connect(here);
  if (probe.status().code() == StatusCode::kUnavailable) {
    remove_file(path(rank));
    return listener;
  }
  return Status(
      StatusCode::kMismatch,
      fmt::format("another process listens at {} as rank {}; give every process a rank of "
                  "its own, and every job an id of its own",
                  path(rank), rank));
}

Result<Fd> MeetingPlace::listen(int rank, bool create_directory, Deadline deadline) {
  for (;;) {
    auto listener = try_listen(rank, create_directory);
    const bool again = listener.status().code() == StatusCode::kUnavailable && create_directory;
    if (listener.is_ok()) listening_ = rank;
    if (listener.is_ok() || !again || deadline.passed()) return listener;
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
  }
}

}  // namespace tutti
