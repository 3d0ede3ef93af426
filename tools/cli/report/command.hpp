// `tutti report`: what was measured, as pages.
#pragma once

#include <string>

namespace tutti::cli {

struct ReportArguments {
  std::string results = "results";
  std::string docs = "docs/benchmarks.md";
  std::string readme;  // empty: README.md, if there is one
  std::string html;    // one page instead of docs and README; empty: none
  bool check = false;
};

// 0: written, or with `check` nothing would change; 1: stale or not written; 2: broken results.
int run_report(const ReportArguments& arguments);

}  // namespace tutti::cli
