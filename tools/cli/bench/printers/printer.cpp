#include "bench/printers/printers.hpp"

namespace tutti::cli {
namespace {

// What cannot be printed before all of it is known.
class AtTheEnd : public Printer {
 public:
  explicit AtTheEnd(PrintRecord print) : print_(std::move(print)) {}
  std::string end(const Record& record) override { return print_(record); }

 private:
  PrintRecord print_;
};

}  // namespace

std::string Printer::whole(const Record& record) {
  std::string text = begin(record);
  text += add(record.rows);
  text += end(record);
  return text;
}

std::unique_ptr<Printer> print_at_the_end(PrintRecord print) {
  return std::make_unique<AtTheEnd>(std::move(print));
}

std::unique_ptr<Printer> make_printer(Format format, const BenchOptions& options,
                                      const Look& look) {
  switch (format) {
    case Format::kMarkdown:
      return print_at_the_end([](const Record& record) { return print_markdown(record); });
    case Format::kCsv:
      return make_csv_printer();
    case Format::kJson:
      return print_at_the_end([](const Record& record) { return to_json_text(record); });
    default:
      return make_table_printer(options, look);
  }
}

}  // namespace tutti::cli
