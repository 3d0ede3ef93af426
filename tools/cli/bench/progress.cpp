#include "bench/progress.hpp"

#include <unistd.h>

#include "base/units.hpp"
#include "tell.hpp"

namespace tutti::cli {
namespace {

constexpr const char* kWipe = "\r\x1b[K";

}  // namespace

Progress::Progress(const BenchOptions& options, std::FILE* stream) : options_(options) {
  const bool rows_show_it = options.format == Format::kTable && ::isatty(STDOUT_FILENO) == 1;
  if (options.speaks && !rows_show_it && ::isatty(::fileno(stream)) == 1) stream_ = stream;
}

Progress::~Progress() {
  if (stream_ != nullptr) tell_as_is(stream_, kWipe);
}

void Progress::show(int ranks, const Measurement& measurement) {
  if (stream_ == nullptr) return;
  tell_as_is(stream_, kWipe);
  tell(stream_, "{} ranks: size {} of {} ({}), {} measured", ranks, measurement.size + 1,
       options_.bytes.size(), format_bytes(options_.bytes[measurement.size]),
       measurement.algorithm);
  std::fflush(stream_);
}

}  // namespace tutti::cli
