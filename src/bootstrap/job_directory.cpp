#include "bootstrap/job_directory.hpp"

#include <fmt/format.h>

#include "base/try.hpp"
#include "bootstrap/meeting_place.hpp"
#include "bootstrap/private_directory.hpp"
#include "bootstrap/sha256.hpp"

namespace tutti {
namespace {

constexpr std::size_t kMaxIdBytes = 127;

}  // namespace

JobDirectory::JobDirectory(SocketDriver& sockets, const std::string& runtime_directory,
                           std::string_view job)
    : JobDirectory(sockets, runtime_directory,
                   Path{fmt::format("{}/tutti-job-{:016x}", runtime_directory,
                                    first_word(sha256(view_of(job))))}) {}

JobDirectory JobDirectory::of_name(SocketDriver& sockets, const std::string& runtime_directory,
                                   const std::string& name) {
  return {sockets, runtime_directory, Path{runtime_directory + "/" + name}};
}

Status JobDirectory::take_down(const std::string& place, int size) {
  MeetingPlace left_over(sockets_, place, size);
  if (!left_over.is_alive()) {
    MeetingPlace::remove(place, size);
    return Status::ok();
  }
  return {StatusCode::kMismatch, fmt::format("another rank 0 already waits at {}", path_)};
}

Result<GroupId> JobDirectory::publish(int size) {
  TUTTI_TRY(make_private_directory(path_));
  if (const auto left_over = look(); left_over.is_ok() && *left_over) {
    TUTTI_TRY(take_down(runtime_directory_ + "/" + (*left_over)->address(), size));
  }
  TUTTI_ASSIGN(const GroupId id, GroupId::local());
  // Before it is known, so that nobody else has to make it.
  TUTTI_TRY(make_private_directory(runtime_directory_ + "/" + id.address()));
  // Between the two the last rank of the group before may have taken the directory down.
  for (int attempt = 0; attempt < 100; ++attempt) {
    TUTTI_TRY(make_private_directory(path_));
    const Status written = write_private_file(file(), id.to_text());
    if (written.is_ok()) return id;
    if (written.code() != StatusCode::kUnavailable) return written;
  }
  return Status(StatusCode::kSystem, fmt::format("{} disappears again and again", path_));
}

Result<std::optional<GroupId>> JobDirectory::look() const {
  const Status there = check_private_directory(path_);
  if (there.code() == StatusCode::kUnavailable) return std::optional<GroupId>();
  TUTTI_TRY(there);
  TUTTI_ASSIGN(const auto text, read_private_file(file(), kMaxIdBytes));
  if (!text) return std::optional<GroupId>();
  auto id = GroupId::from_text(*text);
  if (!id.is_ok()) return std::optional<GroupId>();  // another version's: rank 0 will replace it
  return std::optional(std::move(id).value());
}

bool JobDirectory::still_published(const GroupId& id) const {
  const auto now = look();
  return now.is_ok() && *now && (*now)->to_text() == id.to_text();
}

void JobDirectory::withdraw(const GroupId& id) {
  if (still_published(id)) remove_file(file());
  remove_directory(path_);
}

}  // namespace tutti
