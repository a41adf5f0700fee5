#include "report/files.h"

#include <algorithm>
#include <cctype>
#include <future>
#include <set>

#include "base/error.h"
#include "base/folder.h"
#include "base/suggest.h"
#include "base/text.h"
#include "report/contents.h"
#include "report/csv.h"
#include "report/html.h"
#include "report/latex.h"
#include "report/markdown.h"
#include "report/pictures.h"

namespace ridgeline::report {
namespace {

namespace fs = std::filesystem;

struct FormatName {
  std::string_view name;
  bool ReportFormats::*chosen;
};
constexpr FormatName kFormats[] = {
    {"html", &ReportFormats::html},   {"markdown", &ReportFormats::markdown},
    {"latex", &ReportFormats::latex}, {"csv", &ReportFormats::csv},
    {"svg", &ReportFormats::svg},     {"png", &ReportFormats::png},
    {"pdf", &ReportFormats::pdf},
};

// Ids become names of files.
template <typename Kind>
void check_ids(const std::vector<const Kind*>& all) {
  std::set<std::string> known;
  for (const Kind* each : all) {
    const std::string& id = each->id;
    const bool plain = !id.empty() && std::ranges::all_of(id, [](char c) {
      return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '-';
    });
    ensure(plain, "'{}' is no name for a file of the report", id);
    ensure(known.insert(id).second, "two tables or two figures of the report are named '{}'", id);
  }
}

void write_tables(const std::vector<const Table*>& tables, const ReportFolder& folder,
                  const ReportFormats& formats) {
  for (const Table* table : tables) {
    const std::string name = "tables/" + table->id;
    if (formats.markdown) folder.write(name + ".md", markdown_table(*table));
    if (formats.latex) folder.write(name + ".tex", latex_table(*table));
    if (formats.csv) folder.write(name + ".csv", csv_table(*table));
  }
}

// What Markdown and LaTeX can show of the pictures that there are. SVG has no problems.
PictureFiles pictures_for(const std::vector<PictureProblem>& problems, std::string extension) {
  PictureFiles files;
  files.extension = std::move(extension);
  if (files.extension.empty()) files.why_none = "pictures of this kind were not asked for";
  for (const PictureProblem& problem : problems) {
    if (files.extension == "svg") break;
    if (problem.figure.empty()) {
      files.extension.clear();
      files.why_none = problem.reason;
    } else {
      files.missing.push_back(problem.figure);
    }
  }
  return files;
}

void list_files(const ReportFolder& folder, WrittenReport& report) {
  for (const std::string& name : files_below(folder.path())) {
    if (name.starts_with('.')) continue;
    report.files.push_back({name, static_cast<std::int64_t>(fs::file_size(folder.path() / name))});
  }
}

}  // namespace

ReportFormats formats_of(std::span<const std::string> names) {
  ReportFormats formats{false, false, false, false, false, false, false};
  std::vector<std::string_view> known;
  for (const FormatName& format : kFormats) known.push_back(format.name);
  for (const std::string& name : names) {
    const auto* found = std::ranges::find(kFormats, name, &FormatName::name);
    if (found == std::end(kFormats)) {
      bad_input("--format {}: there are {}{}", name, joined(known, ", "),
                did_you_mean(name, known));
    }
    formats.*found->chosen = true;
  }
  if (names.empty()) bad_input("--format needs at least one of {}", joined(known, ", "));
  return formats;
}

WrittenReport write_report(const Document& document, const ReportFolder& folder,
                           const ReportFormats& formats, const ReportProgress& progress) {
  const std::vector<const Table*> tables = tables_of(document);
  const std::vector<const Figure*> figures = figures_of(document);
  check_ids(tables);
  check_ids(figures);
  WrittenReport report;
  report.tables = tables.size();
  report.figures = figures.size();

  const bool draws = (formats.svg || formats.png || formats.pdf) && !figures.empty();
  if (draws) fs::create_directories(folder.path() / "figures");
  // Pictures are converted by other processes: the page is written meanwhile.
  auto drawn = std::async(std::launch::async, [&] {
    return draw_pictures(
        figures, folder.path() / "figures", {formats.svg, formats.png, formats.pdf},
        [&](std::size_t done) { return progress(done, figures.size(), "figures"); });
  });
  if (formats.html) folder.write("index.html", html_page(document));
  write_tables(tables, folder, formats);
  const std::vector<PictureProblem> problems = drawn.get();

  for (const PictureProblem& problem : problems) {
    report.warnings.push_back(
        problem.figure.empty()
            ? fmt::format("figures were written as SVG only: {}", problem.reason)
            : fmt::format("figure {} was not converted: {}", problem.figure, problem.reason));
    report.failed |= !problem.figure.empty();
  }
  if (draws && fs::is_empty(folder.path() / "figures")) fs::remove(folder.path() / "figures");
  if (formats.markdown) {
    const char* extension = formats.svg ? "svg" : formats.png ? "png" : "";
    folder.write("report.md", markdown_document(document, pictures_for(problems, extension)));
  }
  if (formats.latex) {
    const char* extension = formats.pdf ? "pdf" : formats.png ? "png" : "";
    folder.write("report.tex", latex_document(document, pictures_for(problems, extension)));
  }
  list_files(folder, report);
  return report;
}

}  // namespace ridgeline::report
