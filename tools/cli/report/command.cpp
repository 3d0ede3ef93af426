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

// Files of other schemas are not of `tutti bench`. Two scripts compare libraries in tables of their
// own: tools/cluster/campaign (docs/internals/network_tables.md), whose files have the interfaces'
// counters, and tools/peers/host_campaign, whose rows have the times of several launches.
bool belongs_in_report(const std::string& text) {
  const auto has = [&text](const char* part) { return text.find(part) != text.npos; };
  return (!has("\"schema\"") || has("\"tutti.bench/")) && !has("\"interface_bytes\"") &&
         !has("\"launches_us\"");
}

// results/<machine>/<what>.json, in the order of their names.
Result<std::vector<ResultFile>> read_results(const std::string& folder) {
  std::error_code error;
  std::vector<fs::path> paths;
  for (fs::recursive_directory_iterator it(folder, error), end; !error && it != end;
       it.increment(error)) {
    if (it.depth() == 1 && it->path().extension() == ".json") paths.push_back(it->path());
  }
  if (error) {
    return Status(StatusCode::kInvalidArgument,
                  fmt::format("cannot read the folder '{}': {}; --results names another", folder,
                              error.message()));
  }
  if (paths.empty()) {
    return Status(StatusCode::kInvalidArgument,
                  fmt::format("'{}' holds no MACHINE/NAME.json; `tutti bench all_reduce --output "
                              "{}/MACHINE/all_reduce.json` writes one",
                              folder, folder));
  }
  std::sort(paths.begin(), paths.end());
  std::vector<ResultFile> files;
  for (const fs::path& path : paths) {
    TUTTI_ASSIGN(const std::string text, read_file(path.string()));
    if (!belongs_in_report(text)) continue;
    TUTTI_ASSIGN(Record record, record_from_json_text(text, path.string()));
    files.push_back({.path = path.generic_string(),
                     .machine = path.parent_path().filename().string(),
                     .what = path.stem().string(),
                     .record = std::move(record)});
  }
  return files;
}

struct Rendered {
  std::vector<Page> pages = {};
  std::string left;  // why the README's headline stays as it is, though it has one
};

// Adds the README with its headline replaced, if there is a README that has one.
Status add_readme(const std::string& named, const std::vector<ResultFile>& files,
                  Rendered& rendered) {
  const std::string path = named.empty() ? "README.md" : named;
  if (named.empty() && !fs::exists(path)) return Status::ok();
  TUTTI_ASSIGN(const std::string readme, read_file(path));
  const auto headline = find_headline(readme);
  if (!headline.is_ok()) return headline.status().with_context(path);
  if (!*headline) return Status::ok();
  const auto& [results, begin, end] = **headline;
  const auto of_headline = [&path = results](const ResultFile& file) { return file.path == path; };
  if (std::none_of(files.begin(), files.end(), of_headline)) {
    rendered.left =
        fmt::format("{} stays as it is: its headline is from {}, which is not among the results",
                    path, results);
    return Status::ok();
  }
  TUTTI_ASSIGN(const std::string text, render_headline(files, results));
  rendered.pages.push_back({path, readme.substr(0, begin) + text + readme.substr(end)});
  return Status::ok();
}

Result<Rendered> render(const ReportArguments& arguments) {
  TUTTI_ASSIGN(const std::vector<ResultFile> files, read_results(arguments.results));
  if (!arguments.html.empty()) return Rendered{{{arguments.html, render_html(files)}}, {}};
  Rendered rendered{render_docs(files, arguments.docs), {}};
  TUTTI_TRY(add_readme(arguments.readme, files, rendered));
  return rendered;
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
  const auto rendered = render(arguments);
  if (!rendered.is_ok()) {
    tell_line(stderr, "tutti report: {}", rendered.status().message());
    return kUsage;
  }
  int exit_code = kSuccess;
  if (!rendered->left.empty()) {
    tell_line(stderr, "tutti report: {}", rendered->left);
    if (arguments.check) exit_code = kFailure;
  }
  for (const Page& page : rendered->pages) {
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
