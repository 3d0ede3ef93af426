// What bodies are written in whose bytes copy engines move: no kernel's threads run them, but the
// host, which enqueues kernels and copies. Executors: CudaStages
// (executors/copy_engine/cuda_stages.hpp), and over the teams of the host TeamStages
// (algorithms/team_stages.hpp).
//
// Kernels run one after the other, and copies too, but for those that no other verb stands between:
// these may be under way at once, in any order. Neither waits for the other unless told to.
// Ranks copy into their own memory alone, so that one that wakes up late disturbs nobody; where a
// program does not keep to that, it says so.
#pragma once

#include <cstddef>

#include "device/team.hpp"

namespace tutti {

class Stages {
 public:
  // What is enqueued so far, of kernels or of copies. Good until 31 more of them are taken.
  using Mark = int;

  virtual ~Stages() = default;

  // A kernel: reduces `part.count` elements, which lie at part.inputs in the order of the ranks, to
  // part.output. If `part.meets`, it then tells every rank's same block that this one has come so
  // far, and waits for them. `publish`: what is released with that where a team does all of it. On
  // GPUs copies that the kernel waited for have ended, as earlier kernels have.
  virtual void reduce(const KernelArgs& part, Publish publish) = 0;

  // Nothing if `bytes` is 0.
  virtual void copy(std::byte* to, const std::byte* from, std::size_t bytes) = 0;

  // Copies from here on come behind those so far.
  virtual void end_batch() = 0;

  // Likewise a copy, but in the order of the kernels, while other copies go on: for what a rank has
  // itself.
  virtual void copy_among_kernels(std::byte* to, const std::byte* from, std::size_t bytes) = 0;

  virtual Mark kernels() = 0;
  virtual Mark copies() = 0;
  virtual void kernels_wait(Mark copies) = 0;
  virtual void copies_wait(Mark kernels) = 0;
};

}  // namespace tutti
