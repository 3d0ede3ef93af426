// Everything that was measured, on one page: no request to anywhere, no script.
#include <fmt/core.h>

#include "bench/printers/printers.hpp"
#include "report/chart.hpp"
#include "report/pages.hpp"
#include "report/plot.hpp"
#include "report/sections.hpp"

namespace tutti::cli {
namespace {

// Charts take the colours of the page where they are of paper and ink.
constexpr std::string_view kStyle = R"(
:root { color-scheme: light dark; --paper: #ffffff; --ink: #1c1f24; --faint: #5b626d;
  --line: #d9dce1; --mark: #eef3fb; --auto: #0050b5; --other: #b8bcc2; }
@media (prefers-color-scheme: dark) {
  :root { --paper: #14171c; --ink: #e4e7ec; --faint: #a2a9b4; --line: #343a44;
    --mark: #1d2a3f; --auto: #5ea6ff; --other: #545b67; } }
body { background: var(--paper); color: var(--ink); margin: 0 auto; max-width: 1180px;
  padding: 24px; font: 15px/1.5 Helvetica, Arial, sans-serif; }
h1, h2 { line-height: 1.2; } h2 { border-top: 1px solid var(--line); padding-top: 28px; }
a { color: inherit; } nav a { display: inline-block; margin: 0 18px 6px 0; }
p.source { color: var(--faint); margin: 4px 0; }
pre { background: var(--mark); padding: 8px 12px; white-space: pre-wrap; font-size: 13px; }
.charts { display: flex; flex-wrap: wrap; gap: 16px; } .charts svg { flex: 1 1 480px;
  max-width: 760px; border: 1px solid var(--line); fill: var(--ink); }
.charts .paper { fill: var(--paper); } .charts .faint { fill: var(--faint); }
.charts .grid { stroke: var(--line); } .charts .axis { stroke: var(--faint); }
.charts line.auto, .charts polyline.auto { stroke: var(--auto); }
.charts circle.auto, .charts text.auto { fill: var(--auto); }
.charts .other { stroke: var(--other); }
.table { overflow-x: auto; }
table { border-collapse: collapse; font-size: 12px; font-variant-numeric: tabular-nums; }
p.caption { margin: 18px 0 6px; } p.caption span { color: var(--faint); }
th, td { padding: 3px 7px; text-align: right; border-bottom: 1px solid var(--line);
  white-space: nowrap; } .left { text-align: left; } td.chosen { background: var(--mark);
  font-weight: bold; }
)";

std::string anchor_of(const Section& section) {
  return fmt::format("{}-{}", section.file->machine, section.file->what);
}

std::string title_of_section(const Section& section) {
  return fmt::format("{} on {}", section.file->what, section.file->machine);
}

std::string html_table(const Table& table) {
  std::string text = fmt::format(
      "<p class=\"caption\"><b>{}</b> <span>({})</span></p>\n<div class=\"table\"><table>\n<tr>",
      xml_text(table.title), xml_text(table.remark));
  const auto left = [&](std::size_t k) { return table.columns[k].left ? " class=\"left\"" : ""; };
  for (std::size_t k = 0; k < table.columns.size(); ++k) {
    text += fmt::format("<th{}>{}</th>", left(k), xml_text(table.columns[k].title));
  }
  text += "</tr>\n";
  for (const std::vector<Cell>& row : table.rows) {
    text += "<tr>";
    for (std::size_t k = 0; k < row.size(); ++k) {
      text += fmt::format("<td{}>{}</td>", row[k].bold ? " class=\"chosen\"" : left(k),
                          xml_text(row[k].text));
    }
    text += "</tr>\n";
  }
  return text + "</table></div>\n";
}

std::string html_source(const ResultFile& file) {
  return fmt::format("<p class=\"source\">{}: {}.</p>\n<pre>{}</pre>\n", xml_text(file.path),
                     xml_text(provenance(file)), xml_text(file.record.environment.command));
}

std::string html_section(const Section& section) {
  std::string text = fmt::format("<section id=\"{}\">\n<h2>{}</h2>\n", xml_text(anchor_of(section)),
                                 xml_text(title_of_section(section)));
  const std::vector<Group> groups = groups_of(section.rows);
  for (const ResultFile* file : section.all_files()) text += html_source(*file);
  text += "<div class=\"charts\">\n";
  for (const Group* group : drawn_groups(groups)) {
    for (const Plot& plot : plots_of(section, *group)) text += plot.svg;
  }
  text += "</div>\n";
  for (const Group& group : groups) text += html_table(section.table(group));
  return text + "</section>\n";
}

}  // namespace

std::string render_html(const std::vector<ResultFile>& files) {
  const std::vector<Section> sections = sections_of(files);
  std::string text = fmt::format(
      "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\"/>\n"
      "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\"/>\n"
      "<title>tutti benchmarks</title>\n<style>{}</style>\n</head>\n<body>\n"
      "<h1>tutti benchmarks</h1>\n<p>{}</p>\n<nav>\n",
      kStyle, xml_text(how_to_read()));
  for (const Section& section : sections) {
    text += fmt::format("<a href=\"#{}\">{}</a>\n", xml_text(anchor_of(section)),
                        xml_text(title_of_section(section)));
  }
  text += "</nav>\n";
  for (const Section& section : sections) text += html_section(section);
  return text + "</body>\n</html>\n";
}

}  // namespace tutti::cli
