// What a stream is to a group, and how its eager operations are ordered across streams. On the host
// backend there are none, and an operation has ended when it returns.
#pragma once

#include <cstdint>
#include <memory>

#include "tutti/status.hpp"
#include "tutti/types.hpp"

namespace tutti {

class CudaDriver;

// A stream as an operation meets it.
struct StreamState {
  bool capturing = false;
  std::uint64_t capture_id = 0;
  void* graph = nullptr;
};

class Streams {
 public:
  virtual ~Streams() = default;

  // kInvalidArgument if the stream's capture has been invalidated.
  virtual Result<StreamState> state(Stream stream) = 0;

  // Around an operation on `stream`, which was found in this state: it begins behind the last one
  // that was in none, or the same, capture, whatever stream that was on.
  virtual Status enter(Stream stream, const StreamState& state) = 0;
  virtual Status leave(Stream stream, const StreamState& state) = 0;

  // What `later` is given from now on begins behind what `earlier` has been given so far. Within a
  // capture both are part of it.
  virtual Status follow(Stream later, Stream earlier) = 0;

  // Within this rank's memory, in the order of the stream; host: at once. Disjoint.
  virtual Status copy(void* to, const void* from, std::size_t bytes, Stream stream) = 0;

  // Whether every operation between enter() and leave(), in no capture, has ended. From any thread.
  // `if_broken`: the answer of a device that runs nothing any more.
  virtual bool caught_up(bool if_broken = false) = 0;
};

Result<std::unique_ptr<Streams>> make_cuda_streams(CudaDriver& cuda, int device);
std::unique_ptr<Streams> make_host_streams();

}  // namespace tutti
