// ridgeline audit: are other people's results believable?

#include "audit/audit.h"

#include <filesystem>

#include "audit/document.h"
#include "base/error.h"
#include "base/parse.h"
#include "cli/audit_output.h"
#include "cli/command.h"
#include "cli/options.h"
#include "cli/output.h"
#include "cli/parser.h"
#include "cli/tables.h"
#include "report/files.h"
#include "report/html.h"
#include "store/store.h"

namespace ridgeline::cli {
namespace {

struct AuditOptions {
  std::vector<std::string> files, maps;
  audit::Defaults defaults;
  std::string image, store, out, title;
  bool json = false, roles = false, checks = false, all_columns = false;
};

// "224", "3x224x224": networks take square images.
std::int64_t image_size(const std::string& text) {
  const std::size_t cross = text.rfind('x');
  const auto size =
      number_in<std::int64_t>(cross == std::string::npos ? text : text.substr(cross + 1));
  if (!size || *size < 1 || *size > 100'000) {
    bad_input("--image '{}': expected a size such as 224 or 3x224x224", text);
  }
  return *size;
}

audit::Request request_of(const AuditOptions& options) {
  audit::Request request{.files = options.files, .rules = {}, .defaults = options.defaults};
  for (const std::string& map : options.maps) request.rules.push_back(audit::parse_rule(map));
  if (!options.image.empty()) request.defaults.image = image_size(options.image);
  if (request.defaults.batch && *request.defaults.batch < 1) {
    bad_input("--batch {}: must be at least 1", *request.defaults.batch);
  }
  if (request.defaults.classes && *request.defaults.classes < 2) {
    bad_input("--classes {}: must be at least 2", *request.defaults.classes);
  }
  return request;
}

void write_page(const audit::Audit& audit, const AuditOptions& options) {
  const report::Document document = audit::audit_document(audit, options.title);
  if (std::filesystem::path(options.out).extension() == ".html") {
    write_file_atomically(options.out, report::html_page(document));
    return;
  }
  report::ReportFolder folder(options.out);
  const std::vector<std::string> formats = {"html", "markdown", "csv"};
  (void)report::write_report(document, folder, report::formats_of(formats),
                             [](std::size_t, std::size_t, const std::string&) { return true; });
  folder.commit();
}

int run_audit(const AuditOptions& options) {
  if (options.roles || options.checks) {
    print(options.roles ? roles_text() : checks_text());
    return 0;
  }
  if (options.files.empty()) bad_input("audit: needs a FILE or a FOLDER of results");
  const audit::Request request = request_of(options);
  if (std::filesystem::path(options.out).extension() == ".html") check_writable(options.out);
  audit::Facts facts;
  if (!options.store.empty()) {
    audit::use_measured_ceilings(Store::open_existing(options.store), facts);
  }
  const audit::Audit audit = audit_files(request, facts);
  if (!options.out.empty()) write_page(audit, options);
  print(options.json ? audit_json(audit) : audit_text(audit, options.all_columns));
  return audit.count(audit::Severity::error) > 0 ? 1 : 0;
}

}  // namespace

void add_audit(Parser& program, Action& action) {
  auto options = std::make_shared<AuditOptions>();
  Parser* command =
      program.add_subcommand("audit", "Check results from elsewhere for errors of method");
  command->heading("Files");
  command->add_option("FILE", options->files,
                      "CSV, TSV, JSON, JSON lines or PyTorch profiler traces; or folders of them");
  command->add_option("--map RULE", options->maps,
                      "COLUMN=ROLE or COLUMN=ROLE:UNIT: what a column means, such as "
                      "t=batch-time:ms; may be repeated");
  command->add_flag("--all-columns", options->all_columns, "Also show columns that are not used");
  command->add_flag("--roles", options->roles, "List the roles that a column can have");
  command->add_flag("--checks", options->checks, "List the checks");
  command->heading("Values that the files lack");
  command->add_option("--hardware NAME", options->defaults.hardware,
                      "Device of all rows that name none, such as T4 or 'RTX 4090'");
  command->add_option("--model NAME", options->defaults.model, "Model of rows that name none");
  command->add_option("--batch N", options->defaults.batch, "Samples per step");
  command->add_option("--image SIZE", options->image,
                      "Image size, such as 64 [default: the dataset's, else the model's]");
  command->add_option("--classes N", options->defaults.classes, "Number of classes");
  command->heading(kStoreHeading);
  command->add_option("--store FILE", options->store,
                      "Use the measured ceilings of this store instead of data sheets");
  add_json_option(*command, options->json);
  command->add_option("--out FILE", options->out,
                      "Write a page: FILE.html, or a folder with the page, Markdown and CSV");
  command->add_option("--title TEXT", options->title, "Title of the page");
  add_table_options(*command);
  command->notes(
      "Columns are recognised by name, unit and content; the table of columns shows how.\n"
      "The exit code is 1 if an error was found, 2 if a file cannot be read as results.");
  command->examples({"ridgeline audit results.csv", "ridgeline audit results.csv --hardware T4",
                     "ridgeline audit times.csv --model resnet50 --batch 64 --map t=batch-time:ms",
                     "ridgeline audit published/ --out audit.html",
                     "ridgeline audit results.csv --json"});
  command->callback([options, &action] { action = [options] { return run_audit(*options); }; });
}

}  // namespace ridgeline::cli
