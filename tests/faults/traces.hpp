// What a group may leave behind where nobody looks: files, sockets, processes.
#pragma once

#include <set>
#include <string>

namespace tutti::test {

// A fresh directory for TUTTI_RUNTIME_DIR, and what there is besides when it is made.
class Traces {
 public:
  Traces();
  ~Traces();
  Traces(const Traces&) = delete;
  Traces& operator=(const Traces&) = delete;

  const std::string& directory() const { return directory_; }

  // What is there now and was not before: names in the directory and in /dev/shm, sockets bound
  // below the directory, children of this process. Empty if nothing is left.
  std::string left() const;

 private:
  std::string directory_;
  std::set<std::string> shared_memory_;
};

}  // namespace tutti::test
