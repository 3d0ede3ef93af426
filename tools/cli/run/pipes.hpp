// Pipes that do not block.
#pragma once

#include <cstddef>
#include <functional>
#include <string>
#include <string_view>

namespace tutti::cli {

// Hands over what is in `pipe`. False once its other end is closed.
bool read_pipe(int pipe, const std::function<void(std::string_view bytes)>& take);

// What is still to be written.
class Outbox {
 public:
  void add(std::string_view bytes) { bytes_ += bytes; }
  // Writes what `pipe` takes now. False once nobody reads it; SIGPIPE must be outlived.
  bool flush(int pipe);
  std::size_t size() const { return bytes_.size(); }

 private:
  std::string bytes_;
};

void never_block(int descriptor);

// The signal does nothing to this process any more, but ends programs that it starts as usual. Of
// SIGPIPE an error of write(2) is left.
void outlive(int signal);

}  // namespace tutti::cli
