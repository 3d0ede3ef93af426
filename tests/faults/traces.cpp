#include "faults/traces.hpp"

#include <unistd.h>

#include <fmt/format.h>

#include <filesystem>
#include <fstream>
#include <stdlib.h>

#include "support/check.hpp"

namespace tutti::test {
namespace {

namespace fs = std::filesystem;

std::set<std::string> names_below(const std::string& folder) {
  std::set<std::string> names;
  std::error_code error;
  for (const auto& entry : fs::recursive_directory_iterator(folder, error)) {
    names.insert(entry.path().string());
  }
  return names;
}

// Lines of a file of /proc that hold `text`.
std::string lines_with(const char* file, const std::string& text) {
  std::ifstream stream(file);
  std::string found, line;
  while (std::getline(stream, line)) {
    if (line.find(text) != std::string::npos) found += line + "; ";
  }
  return found;
}

std::string children_of_this_process() {
  std::ifstream stream(fmt::format("/proc/self/task/{}/children", ::getpid()));
  std::string children;
  std::getline(stream, children);
  return children;
}

}  // namespace

Traces::Traces() : shared_memory_(names_below("/dev/shm")) {
  std::string pattern = (fs::temp_directory_path() / "tutti-faults-XXXXXX").string();
  require(::mkdtemp(pattern.data()) != nullptr, "no directory for the sockets");
  directory_ = pattern;
}

Traces::~Traces() {
  std::error_code error;
  fs::remove_all(directory_, error);
}

std::string Traces::left() const {
  std::string left;
  for (const std::string& name : names_below(directory_)) left += fmt::format("file {}; ", name);
  for (const std::string& name : names_below("/dev/shm")) {
    const bool ours = name.find("tutti") != std::string::npos;
    if (ours && !shared_memory_.contains(name)) left += fmt::format("shared memory {}; ", name);
  }
  const std::string sockets = lines_with("/proc/net/unix", directory_);
  if (!sockets.empty()) left += "sockets " + sockets;
  const std::string children = children_of_this_process();
  if (!children.empty()) left += "processes " + children;
  return left;
}

}  // namespace tutti::test
