// How ranks that a launcher started on one host, and that share nothing but a job's name, agree on
// a group id: rank 0 invents one and writes it into a 0700 directory named after the job. What a
// crashed job has left there leads nowhere and is replaced.
#pragma once

#include <optional>
#include <string>

#include "bootstrap/bootstrap.hpp"
#include "drivers/sockets.hpp"

namespace tutti {

class JobDirectory {
 public:
  // `job` tells apart the jobs of this user on this host.
  JobDirectory(SocketDriver& sockets, const std::string& runtime_directory, std::string_view job);
  // One that was found, by the name of its directory.
  static JobDirectory of_name(SocketDriver& sockets, const std::string& runtime_directory,
                              const std::string& name);

  // Rank 0: takes down what an earlier job has left, and publishes a new id. kMismatch where a job
  // of this name is just starting.
  Result<GroupId> publish(int size);
  // The other ranks: what is published now; nothing yet.
  Result<std::optional<GroupId>> look() const;
  bool still_published(const GroupId& id) const;
  // The group is made, or cannot be made: nobody will look for this id any more.
  void withdraw(const GroupId& id);

  const std::string& path() const { return path_; }

 private:
  struct Path {
    std::string text;
  };
  JobDirectory(SocketDriver& sockets, const std::string& runtime_directory, Path path)
      : sockets_(sockets), runtime_directory_(runtime_directory), path_(std::move(path.text)) {}
  Status take_down(const std::string& place, int size);
  std::string file() const { return path_ + "/id"; }

  SocketDriver& sockets_;
  const std::string runtime_directory_;
  const std::string path_;
};

}  // namespace tutti
