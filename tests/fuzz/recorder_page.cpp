// The page in which a rank keeps its last operations, as `tutti status` reads it from another
// process or from a file. An input is the beginning of a page; the rest of it is empty.
#include <algorithm>
#include <array>
#include <cstring>

#include "fuzz/fuzz.hpp"
#include "group/recorder/snapshot.hpp"

namespace tutti::fuzz {
namespace {

bool printable(std::string_view text) {
  return std::all_of(text.begin(), text.end(), [](char c) { return c >= 0x20 && c < 0x7f; });
}

void check_operations(const Snapshot& snapshot) {
  const auto& operations = snapshot.operations;
  must_hold(operations.size() + static_cast<std::size_t>(snapshot.unreadable) <= kPageRecords,
            "a page holds no more than it has room for");
  for (std::size_t k = 0; k < operations.size(); ++k) {
    must_hold(operations[k].sequence > 0, "operations are counted from 1");
    must_hold(k == 0 || operations[k - 1].sequence < operations[k].sequence,
              "operations are in their order, each once");
    must_hold(printable(to_string(operations[k])), "an operation can be printed");
    must_hold(to_string(operations[k].state) != "?", "an operation is in one of the known states");
  }
  must_hold((snapshot.current() == nullptr) == operations.empty(),
            "a rank is in what it has begun");
}

void check_page(const Snapshot& snapshot, const PageHeader& header) {
  must_hold(snapshot.rank >= 0 && snapshot.rank < snapshot.ranks, "a rank is one of its group");
  must_hold(static_cast<std::int32_t>(snapshot.backend) == header.backend,
            "a backend is what was written");
  must_hold(printable(snapshot.host), "a host can be printed");
  for (const int rank : snapshot.waits_for) {
    must_hold(rank >= 0 && rank < snapshot.ranks, "a rank waits for members of its group");
  }
  if (snapshot.failure) {
    must_hold(snapshot.failure->code != StatusCode::kOk, "a failure is no success");
    must_hold(printable(snapshot.failure->text), "a failure can be printed");
  }
  check_operations(snapshot);
}

}  // namespace
}  // namespace tutti::fuzz

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace tutti;
  static std::array<std::byte, kPageBytes> page;
  const std::size_t given = std::min(size, page.size());
  std::copy_n(reinterpret_cast<const std::byte*>(data), given, page.begin());
  const auto snapshot = parse_page(page);
  if (snapshot.is_ok()) {
    fuzz::check_page(*snapshot, from_bytes<PageHeader>(ByteView(page).first(sizeof(PageHeader))));
  } else {
    fuzz::must_hold(snapshot.status().code() == StatusCode::kInvalidArgument, "noise is no page");
  }
  // What is cut off is no page, whatever its header says.
  const Bytes short_of_it(page.begin(), page.begin() + static_cast<std::ptrdiff_t>(given));
  fuzz::must_hold(given == page.size() || !parse_page(short_of_it).is_ok(), "a page is whole");
  std::fill_n(page.begin(), given, std::byte{});
  return 0;
}
