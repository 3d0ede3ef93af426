// The directory in which the ranks of a local group find each other: a socket r<k> per rank, there
// for as long as the group forms. Who has no descriptor left for a socket leaves a word to each
// rank instead: a symbolic link words/x<k>, which is made and read without one.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/deadline.hpp"
#include "bootstrap/bootstrap.hpp"
#include "drivers/sockets.hpp"

namespace tutti {

class MeetingPlace {
 public:
  MeetingPlace(SocketDriver& sockets, std::string directory, int size)
      : sockets_(sockets), directory_(std::move(directory)), size_(size) {}
  // Takes the place of a socket whose process is gone. kMismatch where another process is this
  // rank.
  Result<Fd> listen(int rank, bool create_directory, Deadline deadline);
  Result<SocketAddress> address(int rank) const;
  // Rank 0 of some group listens here.
  bool is_alive() const;
  // Leaves a word to each of `ranks` that the group cannot come about. Best effort.
  void leave_word(const std::vector<int>& ranks, const GroupFailure& failure,
                  bool create_directory) const;
  // What another rank has left for this one, if anything.
  std::optional<GroupFailure> word_for(int rank) const;
  // Nobody will look for this rank any more.
  void close();
  // Takes down what is left for `rank`. After success only the directory, once it is empty; after a
  // failure also the sockets of the others, who may have been killed; but not where this process is
  // the one that does not fit (kMismatch).
  void end(int rank, const Status& outcome);

  const std::string& directory() const { return directory_; }

  // What a group that ended half-way may have left.
  static void remove(const std::string& directory, int size);

 private:
  Result<Fd> try_listen(int rank, bool create_directory);
  std::string path(int rank) const;
  std::string words_path() const;
  std::string word_path(int rank) const;

  SocketDriver& sockets_;
  const std::string directory_;
  const int size_;
  int listening_ = -1;
};

}  // namespace tutti
