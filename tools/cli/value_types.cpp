#include "value_types.hpp"

#include <algorithm>
#include <iterator>

#include "algorithms/catalogue.hpp"
#include "tutti/types.hpp"

namespace tutti::cli {
namespace {

template <class Values>
std::vector<std::string> names_of(const Values& values) {
  std::vector<std::string> names;
  names.reserve(std::size(values));
  for (const auto value : values) names.emplace_back(to_string(value));
  return names;
}

// Of all collectives: which one is meant may not be typed yet.
std::vector<std::string> names_of_algorithms() {
  std::vector<std::string> names = {"auto", "all"};
  for (const Algorithm& algorithm : catalogue()) names.emplace_back(algorithm.name());
  std::sort(names.begin() + 2, names.end());
  names.erase(std::unique(names.begin(), names.end()), names.end());
  return names;
}

std::vector<std::string> alternatives_of(std::string_view type) {
  std::vector<std::string> words;
  while (!type.empty()) {
    const std::string_view word = type.substr(0, type.find('|'));
    words.emplace_back(word);
    type.remove_prefix(std::min(type.size(), word.size() + 1));
  }
  return words;
}

}  // namespace

std::vector<std::string> words_of_type(std::string_view type) {
  if (type.ends_with(kListEnd)) type.remove_suffix(kListEnd.size());
  if (type == "COLLECTIVE") return names_of(kAllCollectives);
  if (type == "DTYPE") return names_of(kAllDataTypes);
  if (type == "OP") return names_of(kAllOps);
  if (type == "ALGORITHM") return names_of_algorithms();
  if (type.find('|') != std::string_view::npos) return alternatives_of(type);
  return {};
}

}  // namespace tutti::cli
