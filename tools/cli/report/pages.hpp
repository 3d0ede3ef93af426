// The pages a report consists of, as values.
#pragma once

#include <string>
#include <vector>

#include "bench/record.hpp"
#include "tutti/status.hpp"

namespace tutti::cli {

struct ResultFile {
  std::string path;     // "results/h200x8/all_reduce.json"
  std::string machine;  // "h200x8"
  std::string what;     // "all_reduce"
  Record record;
};

struct Page {
  std::string path, text;
};

// The Markdown page, and one plot for each result file that has more than one size. `docs` is the
// page's path; plots lie beside it in a folder of its name.
std::vector<Page> render_docs(const std::vector<ResultFile>& files, const std::string& docs);

// The figures of the file's largest group of ranks.
std::string render_headline(const ResultFile& file);

// A README names the file its headline comes from:
//   <!-- headline from results/h200x8/all_reduce.json: ... -->
//   <!-- end of headline -->
// `readme` with what is between the two lines replaced; by nothing while there is no such file.
// kInvalidArgument where they are not there once each, in order.
Result<std::string> replace_headline(const std::string& readme,
                                     const std::vector<ResultFile>& files);

// Time over size, one curve per algorithm, both axes logarithmic.
std::string render_plot(const std::vector<const Row*>& rows, const std::string& title);

}  // namespace tutti::cli
