// What the JSON library says of a document, as people are told it.
#pragma once

#include <nlohmann/json.hpp>

#include <string_view>

namespace tutti {

// "line 3, column 7: syntax error ..." or "key 'ranks' not found": without the names of the
// library's exceptions. Valid as long as the exception.
inline std::string_view text_of(const nlohmann::json::exception& error) {
  std::string_view text = error.what();
  if (text.starts_with("[json.exception.")) text.remove_prefix(text.find("] ") + 2);
  constexpr std::string_view kAt = "parse error at ";
  if (text.starts_with(kAt)) text.remove_prefix(kAt.size());
  return text;
}

}  // namespace tutti
