#include "doctor/command.hpp"

#include <unistd.h>

#include <algorithm>

#include "doctor/findings.hpp"
#include "exit_code.hpp"
#include "tell.hpp"

namespace tutti::cli {

int run_doctor(const DoctorArguments& arguments) {
  const Facts facts = gather_facts();
  const std::vector<Finding> findings = judge(facts);
  const bool colour = ::isatty(STDOUT_FILENO) == 1;
  if (arguments.json) {
    tell(stdout, "{}", print_findings_json(findings, facts));
  } else {
    tell_as_is(stdout, print_findings(findings, facts, colour));  // with its colours
  }
  const bool failed = std::any_of(findings.begin(), findings.end(), [](const Finding& finding) {
    return finding.severity == Severity::kFailure;
  });
  return failed ? kFailure : kSuccess;
}

}  // namespace tutti::cli
