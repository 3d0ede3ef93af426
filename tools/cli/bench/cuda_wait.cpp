#include "bench/cuda_wait.hpp"

#include <fmt/core.h>

#include <thread>

#include "base/deadline.hpp"
#include "base/try.hpp"

namespace tutti::cli {

Status wait_for(CudaDriver& cuda, Communicator& communicator, Stream stream,
                std::chrono::milliseconds patience) {
  const Deadline deadline(patience);
  while (true) {
    TUTTI_TRY(communicator.status());
    TUTTI_ASSIGN(const bool finished, cuda.stream_finished(stream));
    if (finished) return communicator.status();
    if (deadline.passed()) {
      return {StatusCode::kTimeout,
              fmt::format("GPU {} did not finish its work; `nvidia-smi` shows what it does",
                          communicator.device())};
    }
    std::this_thread::sleep_for(std::chrono::microseconds(20));
  }
}

}  // namespace tutti::cli
