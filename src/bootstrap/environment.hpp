// "NAME=value" lists, as execve(2) has them, and what a launcher's variables mean for the group.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/knobs.hpp"
#include "bootstrap/join.hpp"

namespace tutti {

class EnvironmentView {
 public:
  explicit EnvironmentView(const std::vector<std::string>& environment)
      : environment_(environment) {}

  // Nothing where it is unset or empty.
  std::optional<std::string_view> text(std::string_view name) const;
  // kInvalidArgument names the variable and its value.
  Result<std::optional<int>> number(std::string_view name, int min) const;
  // Of the first name that is set.
  Result<std::optional<int>> first_number(const std::vector<std::string_view>& names,
                                          int min) const;

 private:
  const std::vector<std::string>& environment_;
};

// What a join reads from outside.
struct Surroundings {
  const std::vector<std::string>& environment;
  const Knobs& knobs;
};
// join_group_from_environment() in given surroundings.
Result<std::unique_ptr<Bootstrap>> join_group_from(const LaunchEnvironment& launch,
                                                   const Surroundings& surroundings,
                                                   Deadline deadline, const JoinOptions& options);

}  // namespace tutti
