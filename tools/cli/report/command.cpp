#include "report/command.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <filesystem>
#include <system_error>

#include "base/try.hpp"
#include "exit_code.hpp"
#include "output_file.hpp"
#include "report/pages.hpp"
#include "tell.hpp"

namespace tutti::cli {
namespace {

namespace fs = std::filesystem;

// results/<machine>/<what>.json, in the order of their names. A fresh checkout may have none.
Result<std::vector<ResultFile>> read_results(const std::string& folder) {
  std::error_code error;
  std::vector<fs::path> paths;
  if (folder == ReportArguments{}.results && !fs::exists(folder)) return std::vector<ResultFile>{};
  for (fs::recursive_directory_iterator it(folder, error), end; !error && it != end;
       it.increment(error)) {
    if (it.depth() == 1 && it->path().extension() == ".json") paths.push_back(it->path());
  }
  if (error) {
    return Status(StatusCode::kInvalidArgument,
                  fmt::format("cannot read the folder '{}': {}; --results names another", folder,
                              error.message()));
  }
  std::sort(paths.begin(), paths.end());
  std::vector<ResultFile> files;
  for (const fs::path& path : paths) {
    TUTTI_ASSIGN(const std::string text, read_file(path.string()));
    TUTTI_ASSIGN(Record record, record_from_json_text(text, path.string()));
    files.push_back({.path = path.generic_string(),
                     .machine = path.parent_path().filename().string(),
                     .what = path.stem().string(),
                     .record = std::move(record)});
  }
  return files;
}

Result<std::vector<Page>> render(const ReportArguments& arguments) {
  TUTTI_ASSIGN(const std::vector<ResultFile> files, read_results(arguments.results));
  std::vector<Page> pages = render_docs(files, arguments.docs);
  TUTTI_ASSIGN(const std::string readme, read_file(arguments.readme));
  auto replaced = replace_headline(readme, files);
  if (!replaced.is_ok()) return replaced.status().with_context(arguments.readme);
  pages.push_back({arguments.readme, std::move(*replaced)});
  return pages;
}

bool is_current(const Page& page) {
  const auto there = read_file(page.path);
  return there.is_ok() && *there == page.text;
}

Status write(const Page& page) {
  std::error_code error;
  const fs::path folder = fs::path(page.path).parent_path();
  if (!folder.empty()) fs::create_directories(folder, error);
  return write_file_atomically(page.path, page.text);
}

}  // namespace

int run_report(const ReportArguments& arguments) {
  const auto pages = render(arguments);
  if (!pages.is_ok()) {
    tell_line(stderr, "tutti report: {}", pages.status().message());
    return kUsage;
  }
  int exit_code = kSuccess;
  for (const Page& page : *pages) {
    if (is_current(page)) continue;
    if (arguments.check) {
      tell_line(stderr, "tutti report: {} is stale; `tutti report` renders it again", page.path);
      exit_code = kFailure;
    } else if (const Status status = write(page); !status.is_ok()) {
      tell_line(stderr, "tutti report: {}", status.to_string());
      exit_code = kFailure;
    } else {
      tell_line(stdout, "wrote {}", page.path);
    }
  }
  return exit_code;
}

}  // namespace tutti::cli
