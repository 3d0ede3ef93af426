// Negative control: a parser with the commonest of defects. It believes a length. Whoever runs the
// fuzz targets must be told of it.
#include <cstring>
#include <string>

#include "fuzz/fuzz.hpp"

namespace tutti::fuzz {
namespace {

constexpr std::string_view kMagic = "note";

struct Note {
  std::size_t length = 0;
  std::string_view text;
};

// "note", the length of a text in one byte, the text.
Note parse(std::string_view input) {
  Note note;
  if (!input.starts_with(kMagic) || input.size() == kMagic.size()) return note;
  note.length = static_cast<unsigned char>(input[kMagic.size()]);
  note.text = input.substr(kMagic.size() + 1, note.length);  // the check of `length` is missing
  return note;
}

}  // namespace
}  // namespace tutti::fuzz

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace tutti::fuzz;
  const Note note = parse(text_of(data, size));
  must_hold(note.text.size() == note.length, "a text is as long as it says");
  return 0;
}
