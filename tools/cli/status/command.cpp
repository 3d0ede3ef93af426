#include "status/command.hpp"

#include <fmt/core.h>

#include <charconv>
#include <chrono>
#include <cmath>

#include "base/try.hpp"
#include "bootstrap/identity.hpp"
#include "exit_code.hpp"
#include "status/print.hpp"
#include "tell.hpp"

namespace tutti::cli {
namespace {

constexpr double kMostSeconds = 1e6;

template <class T>
Result<T> parse_number(std::string_view option, std::string_view text, T most) {
  T value{};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  const bool whole = error == std::errc() && end == text.data() + text.size();
  if (whole && value >= 0 && value <= most) return value;  // also refuses what is no number
  return Status(StatusCode::kInvalidArgument,
                fmt::format("{}: '{}' is no number between 0 and {}", option, text, most));
}

struct Selection {
  Jury jury;
  int operations = 0;
};

Result<Selection> read_question(const StatusArguments& arguments) {
  Selection selection;
  if (!arguments.operations.empty()) {
    TUTTI_ASSIGN(selection.operations, parse_number("--operations", arguments.operations,
                                                    static_cast<int>(kPageRecords)));
  }
  if (!arguments.patience.empty()) {
    TUTTI_ASSIGN(const double seconds,
                 parse_number("--patience", arguments.patience, kMostSeconds));
    selection.jury.patience = std::chrono::nanoseconds(std::llround(seconds * 1e9));
  }
  return selection;
}

// What lies in a folder is looked at as of its last moment: what had not ended by then never did.
Result<FoundPages> find(const StatusArguments& arguments, Jury& jury) {
  if (arguments.merge.empty()) {
    FoundPages found = pages_of_processes();
    // Read after the pages, so that nothing in them lies ahead.
    jury.now_ns = static_cast<std::uint64_t>(
        std::chrono::nanoseconds(std::chrono::steady_clock::now().time_since_epoch()).count());
    return found;
  }
  TUTTI_ASSIGN(FoundPages found, pages_in_folder(arguments.merge, this_process().host_id));
  if (found.pages.empty()) {
    return Status(StatusCode::kInvalidArgument,
                  fmt::format("{} holds no page of a flight recorder; was TUTTI_TRACE_DIR set "
                              "for the ranks, and did one of them fail?",
                              arguments.merge));
  }
  if (arguments.patience.empty()) jury.patience = std::chrono::nanoseconds(0);
  return found;
}

Status keep_group(FoundPages& found, const std::string& name) {
  if (name.empty()) return Status::ok();
  std::erase_if(found.pages, [&](const FoundPage& each) {
    return !fmt::format("{:016x}", each.page.group).starts_with(name);
  });
  if (!found.pages.empty()) return Status::ok();
  return {StatusCode::kInvalidArgument, fmt::format("--group: there is no group {}...", name)};
}

}  // namespace

int run_status(const StatusArguments& arguments) {
  auto selection = read_question(arguments);
  auto found = selection.is_ok() ? find(arguments, selection->jury) : selection.status();
  const Status status = found.is_ok() ? keep_group(*found, arguments.group) : found.status();
  if (!status.is_ok()) {
    tell_line(stderr, "tutti status: {}", status.message());
    return kUsage;
  }
  for (const std::string& refused : found->refused) {
    tell_line(stderr, "tutti status: {}", refused);
  }
  const auto verdicts = judge(found->pages, selection->jury);
  if (arguments.json) {
    tell(stdout, "{}", print_verdicts_json(verdicts, selection->operations));
  } else if (verdicts.empty()) {
    tell_line(stdout, "no group of this user runs here");
  } else {
    tell(stdout, "{}", print_verdicts(verdicts, selection->operations));
  }
  return worst_of(verdicts) == Health::kHealthy ? kSuccess : kFailure;
}

}  // namespace tutti::cli
