#include "bootstrap/meeting_place.hpp"

#include <fmt/format.h>

#include <charconv>
#include <chrono>
#include <thread>

#include "base/try.hpp"
#include "bootstrap/failure_notice.hpp"
#include "bootstrap/private_directory.hpp"

namespace tutti {
namespace {

constexpr int kMostAttempts = 100;

// "1 8 what happened": rank, code, text.
std::string word_of(const GroupFailure& failure) {
  return fmt::format("{} {} {}", failure.rank, static_cast<unsigned>(failure.code), failure.text);
}

std::optional<GroupFailure> failure_in(std::string_view word, int size) {
  int rank = -1;
  unsigned code = 0;
  const char* const end = word.data() + word.size();
  const auto after_rank = std::from_chars(word.data(), end, rank);
  if (after_rank.ec != std::errc() || after_rank.ptr == end) return std::nullopt;
  const auto after_code = std::from_chars(after_rank.ptr + 1, end, code);
  if (after_code.ec != std::errc() || after_code.ptr == end || code > 0xff) return std::nullopt;
  const GroupFailure said{rank, static_cast<StatusCode>(code), {after_code.ptr + 1, end}};
  // The same limits as for what comes over a connection.
  auto failure = decode_failure(encode_failure(said), size);
  return failure.is_ok() ? std::optional(std::move(failure).value()) : std::nullopt;
}

}  // namespace

std::string MeetingPlace::path(int rank) const { return fmt::format("{}/r{}", directory_, rank); }

Result<SocketAddress> MeetingPlace::address(int rank) const {
  return SocketAddress::unix_path(path(rank));
}

bool MeetingPlace::is_alive() const {
  const auto here = address(0);
  return here.is_ok() && sockets_.connect(*here).status().code() != StatusCode::kUnavailable;
}

std::string MeetingPlace::words_path() const { return directory_ + "/words"; }

std::string MeetingPlace::word_path(int rank) const {
  return fmt::format("{}/x{}", words_path(), rank);
}

void MeetingPlace::remove(const std::string& directory, int size) {
  for (int rank = 0; rank < size; ++rank) {
    remove_file(fmt::format("{}/r{}", directory, rank));
    remove_file(fmt::format("{}/words/x{}", directory, rank));
  }
  remove_directory(directory + "/words");
  remove_directory(directory);
}

void MeetingPlace::leave_word(const std::vector<int>& ranks, const GroupFailure& failure,
                              bool create_directory) const {
  // All appear at once: else who has read his might tell another, who would leave before his comes.
  const std::string draft = fmt::format("{}/words{}", directory_, failure.rank);
  for (int attempt = 0; attempt < kMostAttempts; ++attempt) {
    const Status there =
        create_directory ? make_private_directory(directory_) : check_private_directory(directory_);
    if (!there.is_ok()) return;
    // Between the two the last of those who have left may have taken the directory down.
    const Status made = make_private_directory(draft);
    if (made.code() == StatusCode::kUnavailable) continue;
    if (!made.is_ok()) return;
    for (const int rank : ranks) {
      write_word(fmt::format("{}/x{}", draft, rank), word_of(failure));
    }
    if (move_directory(draft, words_path())) return;
    for (const int rank : ranks) remove_file(fmt::format("{}/x{}", draft, rank));
    return remove_directory(draft);  // another rank has been faster
  }
}

std::optional<GroupFailure> MeetingPlace::word_for(int rank) const {
  const auto word = read_word(word_path(rank));
  if (!word || !check_private_directory(directory_).is_ok()) return std::nullopt;
  return failure_in(*word, size_);
}

void MeetingPlace::close() {
  if (listening_ >= 0) remove_file(path(listening_));
  listening_ = -1;
}

void MeetingPlace::end(int rank, const Status& outcome) {
  close();
  remove_file(word_path(rank));
  remove_directory(words_path());
  const bool all = !outcome.is_ok() && outcome.code() != StatusCode::kMismatch;
  for (int r = 0; all && r < size_; ++r) remove_file(path(r));
  remove_directory(directory_);
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
