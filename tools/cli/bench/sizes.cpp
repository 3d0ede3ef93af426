#include "bench/sizes.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "base/try.hpp"
#include "base/units.hpp"
#include "parse.hpp"

namespace tutti::cli {
namespace {

constexpr std::size_t kMostSizes = 10'000;  // of a sweep

bool has_growth(const BenchArguments& arguments) {
  return !arguments.factor.empty() || !arguments.step.empty();
}

// How sizes of a sweep grow: by a factor, or by a number of bytes.
struct Growth {
  std::size_t factor = 2, step = 0;

  // At most kMostMessageBytes more than `most`.
  std::size_t after(std::size_t bytes, std::size_t most) const {
    if (step > 0) return bytes + step;
    return bytes > most / factor ? most + 1 : bytes * factor;
  }
};

Result<Growth> parse_growth(const BenchArguments& arguments) {
  Growth growth;
  if (!arguments.factor.empty() && !arguments.step.empty()) {
    return wrong("sizes grow by --factor or by --stepbytes, not by both");
  }
  if (!arguments.factor.empty()) {
    TUTTI_ASSIGN(const int factor, parse_int("--factor", arguments.factor, {}));
    if (factor < 2) {
      return wrong(fmt::format("--factor: {} does not make sizes grow; give 2 or more", factor));
    }
    growth.factor = static_cast<std::size_t>(factor);
  }
  if (!arguments.step.empty()) {
    TUTTI_ASSIGN(growth.step, parse_size("--stepbytes", arguments.step));
    if (growth.step == 0) return wrong("--stepbytes: 0 does not make sizes grow");
  }
  return growth;
}

Status check_sweep(BenchOptions& options, const BenchArguments& arguments) {
  std::size_t least = KiB;
  std::size_t most = options.backend == Backend::kCuda ? 64 * MiB : 16 * MiB;
  if (!arguments.min_bytes.empty()) {
    TUTTI_ASSIGN(least, parse_size("--min-bytes", arguments.min_bytes));
    if (arguments.max_bytes.empty()) most = std::max(most, least);
  }
  if (!arguments.max_bytes.empty()) {
    TUTTI_ASSIGN(most, parse_size("--max-bytes", arguments.max_bytes));
    if (arguments.min_bytes.empty()) least = std::min(least, most);
  }
  TUTTI_ASSIGN(const Growth growth, parse_growth(arguments));
  if (least == 0) return wrong("--min-bytes: a sweep cannot start at 0; --bytes 0 measures 0");
  if (least > most) {
    return wrong(fmt::format("--min-bytes {} is larger than --max-bytes {}", format_bytes(least),
                             format_bytes(most)));
  }
  if (growth.step > 0 && (most - least) / growth.step >= kMostSizes) {
    return wrong(fmt::format("--stepbytes {}: that makes more than {} sizes",
                             format_bytes(growth.step), kMostSizes));
  }
  for (std::size_t bytes = least; bytes <= most; bytes = growth.after(bytes, most)) {
    options.bytes.push_back(bytes);
  }
  return Status::ok();
}

Status check_rows(BenchOptions& options, const BenchArguments& arguments) {
  if (arguments.rows.empty() || arguments.hidden.empty()) {
    return wrong("--rows and --hidden come together: a message is rows x hidden elements");
  }
  TUTTI_ASSIGN(options.hidden, parse_int("--hidden", arguments.hidden, {1}));
  for (const std::string_view part : split(arguments.rows)) {
    TUTTI_ASSIGN(const int rows, parse_int("--rows", part, {1}));
    TUTTI_ASSIGN(const std::size_t elements, elements_of(rows, options.hidden, options.dtype));
    options.bytes.push_back(elements * size_of(options.dtype));
  }
  return Status::ok();
}

Status check_swept_sizes(BenchOptions& options, const BenchArguments& arguments) {
  const bool swept =
      !arguments.min_bytes.empty() || !arguments.max_bytes.empty() || has_growth(arguments);
  const bool rows = !arguments.rows.empty() || !arguments.hidden.empty();
  if (static_cast<int>(swept) + static_cast<int>(rows) +
          static_cast<int>(!arguments.bytes.empty()) >
      1) {
    return wrong(
        "sizes come from one of --min-bytes/--max-bytes/--factor/--stepbytes, --bytes, or "
        "--rows/--hidden");
  }
  if (rows) {
    TUTTI_TRY(check_rows(options, arguments));
  } else if (arguments.bytes.empty()) {
    TUTTI_TRY(check_sweep(options, arguments));
  } else {
    for (const std::string_view part : split(arguments.bytes)) {
      TUTTI_ASSIGN(const std::size_t bytes, parse_size("--bytes", part));
      options.bytes.push_back(bytes);
    }
  }
  for (std::size_t& bytes : options.bytes) bytes -= bytes % size_of(options.dtype);
  const auto last = std::unique(options.bytes.begin(), options.bytes.end());
  options.bytes.erase(last, options.bytes.end());
  return Status::ok();
}

// A barrier has no size.
Status check_barrier(BenchOptions& options, const BenchArguments& arguments) {
  const bool sized = !arguments.min_bytes.empty() || !arguments.max_bytes.empty() ||
                     !arguments.rows.empty() || !arguments.hidden.empty() || has_growth(arguments);
  if (sized || (!arguments.bytes.empty() && arguments.bytes != "0")) {
    return wrong("barrier moves nothing: it is measured once, not by sizes");
  }
  options.bytes = {0};
  return Status::ok();
}

}  // namespace

Status check_sizes(BenchOptions& options, const BenchArguments& arguments) {
  if (options.collective == Collective::kBarrier) return check_barrier(options, arguments);
  return check_swept_sizes(options, arguments);
}

}  // namespace tutti::cli
