// The pages a report consists of, as values.
#pragma once

#include <optional>
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

// The Markdown page, and its plots. `docs` is the page's path; plots lie next to it in a folder of
// its name.
std::vector<Page> render_docs(const std::vector<ResultFile>& files, const std::string& docs);

// The same as one page of HTML, with the plots in it. It is well-formed XML.
std::string render_html(const std::vector<ResultFile>& files);

// A machine, its versions, and when: "4 x NVIDIA H200, driver ..., NCCL 2.28.3, tutti 0.1.0, ..."
std::string provenance(const ResultFile& file);

// At most six sizes of the largest group of ranks of the file at `path`, next to what other
// libraries take. kInvalidArgument where it holds no choice of auto's that can be compared.
Result<std::string> render_headline(const std::vector<ResultFile>& files, const std::string& path);

// A README names the file its headline comes from:
//   <!-- headline from results/h200x8/all_reduce.json: ... -->
//   <!-- end of headline -->
struct Headline {
  std::string path;                // of the results
  std::size_t begin = 0, end = 0;  // of what stands between the two lines
};
// Nothing where neither line is there. kInvalidArgument where they are not there once each, in
// order.
Result<std::optional<Headline>> find_headline(const std::string& readme);

}  // namespace tutti::cli
