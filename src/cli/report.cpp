// ridgeline report: the store as a web page, and as tables and figures for a paper.

#include "documents/report.h"

#include "base/error.h"
#include "base/text.h"
#include "cli/command.h"
#include "cli/interrupt.h"
#include "cli/options.h"
#include "cli/output.h"
#include "cli/parser.h"
#include "cli/progress.h"
#include "report/make_document.h"

namespace ridgeline::cli {
namespace {

using report::WrittenFile;
using report::WrittenReport;

struct ReportOptions {
  std::string store = "ridgeline.db";
  std::string out = "report";
  std::vector<std::string> studies;
  std::string title;
  std::vector<std::string> formats = {"html", "markdown", "latex", "csv", "svg", "png"};
  bool json = false;
};

// Single files by name, those of a folder together.
std::string text_of(const WrittenReport& report, const std::string& folder) {
  TextTable table({"file", "size", "contents"}, "lrl");
  for (const WrittenFile& file : report.files) {
    if (file.name.find('/') == std::string::npos) {
      table.add_row({folder + '/' + file.name, bytes_text(file.bytes),
                     file.name == "index.html" ? "the report: open it in a browser" : ""});
    }
  }
  const std::pair<std::string, std::string> folders[] = {
      {"tables", fmt::format("{} tables", report.tables)},
      {"figures", fmt::format("{} figures", report.figures)}};
  for (const auto& [name, what] : folders) {
    std::vector<WrittenFile> inside;
    for (const WrittenFile& file : report.files) {
      if (file.name.starts_with(name + '/')) inside.push_back(file);
    }
    if (inside.empty()) continue;
    table.add_row({folder + '/' + name + '/', bytes_text(total_bytes(inside)),
                   fmt::format("{} in {} files", what, inside.size())});
  }
  return table.text();
}

int run_report(const ReportOptions& options) {
  const report::ReportFormats formats = report::formats_of(options.formats);
  ProgressBar bar;
  bar.show(0, 1, "reading");
  const report::Document document =
      report::stored_document(options.store, {.title = options.title, .studies = options.studies});
  // Before there is a folder, a signal ends the program at once.
  const InterruptGuard interrupt;
  report::ReportFolder folder(options.out);
  WrittenReport written = report::write_report(
      document, folder, formats, [&](std::size_t done, std::size_t total, const std::string& what) {
        bar.show(static_cast<std::int64_t>(done), static_cast<std::int64_t>(total), what.c_str());
        return !interrupt.raised();
      });
  bar.clear();
  if (interrupt.raised()) {
    message(fmt::format("ridgeline: interrupted; {} is unchanged\n", options.out));
    return 128 + interrupt.signal();
  }
  folder.commit();
  std::string name = options.out;
  while (name.size() > 1 && name.ends_with('/')) name.pop_back();
  for (const std::string& warning : written.warnings) {
    message(fmt::format("ridgeline: {}\n", warning));
  }
  print(options.json ? written_json(written, name) : text_of(written, name));
  return written.failed ? 1 : 0;
}

}  // namespace

void add_report(Parser& program, Action& action) {
  auto options = std::make_shared<ReportOptions>();
  Parser* command =
      program.add_subcommand("report", "Write a web page, tables and figures from the store");
  command->heading("Contents");
  command
      ->add_option("--study NAME,...", options->studies,
                   "Only these studies [default: all studies and all other runs]")
      ->delimiter(',');
  command->add_option("--title TEXT", options->title, "Title of the report");
  add_store_option(*command, options->store);
  add_json_option(*command, options->json);
  command->add_option("--out DIR", options->out,
                      "Folder to write; an earlier report in it is replaced");
  command
      ->add_option("--format NAME,...", options->formats,
                   "Any of html, markdown, latex, csv, svg, png and pdf (figures for LaTeX)")
      ->delimiter(',');
  command->notes(
      "The page is one file and needs no network. PNG and PDF figures need rsvg-convert.\n"
      "'ridgeline store import' adds runs of other machines to the store.");
  command->examples({"ridgeline report",
                     "ridgeline report --study environments --out paper --title \"Three machines\"",
                     "ridgeline report --format html --out page",
                     "ridgeline report --format latex,pdf,csv --out paper"});
  command->callback([options, &action] { action = [options] { return run_report(*options); }; });
}

}  // namespace ridgeline::cli
