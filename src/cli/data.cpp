// ridgeline data: lists, downloads, checks and packs datasets.

#include <cstdlib>
#include <map>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/json_text.h"
#include "base/parallel.h"
#include "base/text.h"
#include "cli/command.h"
#include "cli/options.h"
#include "cli/output.h"
#include "cli/parser.h"
#include "cli/progress.h"
#include "cli/tables.h"
#include "data/catalog.h"
#include "data/check.h"
#include "data/pack.h"
#include "data/published.h"
#include "data/sample_reader.h"

namespace ridgeline::cli {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::ordered_json;

const std::vector<std::string> kDatasetColumns = {"name", "description", "location",
                                                  "published at"};

struct DataOptions {
  std::string path, out, size, from, into;
  bool jpeg = false, skip_broken = false, json = false;
  std::int64_t classes = 10;
  int threads = 0;
};

// Where a named dataset lies, or nothing.
std::string place_of(std::string_view name) {
  for (const fs::path& folder : dataset_folders(name)) {
    std::error_code ignored;
    if (fs::is_directory(folder, ignored)) return folder.string();
  }
  return {};
}

std::string base_of(std::string_view name) {
  for (const PublishedDataset& dataset : published_datasets()) {
    if (dataset.name == name) return std::string(dataset.base);
  }
  return {};
}

int run_list(const DataOptions& options) {
  Json list = Json::array();
  TextTable table(kDatasetColumns, "llll");
  table.important({"name", "location", "description"});
  for (const KnownDataset& known : known_datasets()) {
    const bool made = known.name == "synthetic";
    const std::string place = made ? "" : place_of(known.name), base = base_of(known.name);
    list.push_back({{"name", known.name},
                    {"description", known.description},
                    {"path", text_or_null(place)},
                    {"published_at", text_or_null(base)}});
    table.add_row({std::string(known.name), std::string(known.description),
                   made ? "generated" : (place.empty() ? "not here" : place), base});
  }
  if (options.json) {
    print(json_document(Json{{"datasets", std::move(list)}}));
  } else {
    print(
        shown_main(table) +
        fitted("\n'ridgeline data get NAME' downloads a dataset. --data also accepts the path of a "
               "folder of images, of IDX or of CIFAR files, of a .csv file or of a pack.\n"));
  }
  return 0;
}

fs::path data_folder(const DataOptions& options) {
  if (!options.into.empty()) return options.into;
  const char* folder = std::getenv("RIDGELINE_DATA");
  return folder != nullptr && *folder != '\0' ? folder : "data";
}

int run_get(const DataOptions& options) {
  ProgressBar bar;
  std::string current;
  const fs::path folder =
      get_dataset(options.path, {.folder = data_folder(options), .base = options.from},
                  [&](std::string_view file, std::int64_t done, std::int64_t total) {
                    if (file != current) current = file;
                    bar.show(done, total, current.c_str());
                  });
  bar.clear();
  if (options.json) {
    print(json_document(Json{{"name", options.path}, {"path", folder.string()}}));
  } else {
    print(fmt::format("{} is at {}\n", options.path, folder.string()));
  }
  return 0;
}

void print_check(const DataOptions& options, const DataCheck& check) {
  std::string text = fmt::format("{}: {}, {} training + {} test images, {} classes\n", options.path,
                                 check.layout, count_text(check.train_count),
                                 count_text(check.test_count), check.classes.size());
  if (check.most_width > 0) {
    text += fmt::format("sizes     from {}x{} to {}x{} (width x height)\n", check.least_width,
                        check.least_height, check.most_width, check.most_height);
  }
  if (!check.classes.empty()) {
    const auto fewer = [](const ClassCount& a, const ClassCount& b) { return a.train < b.train; };
    const auto [least, most] =
        std::minmax_element(check.classes.begin(), check.classes.end(), fewer);
    text += fmt::format("balance   from {} ('{}') to {} ('{}') training images per class\n",
                        least->train, least->name, most->train, most->name);
  }
  if (check.problems.empty()) {
    print(text + "no problems\n");
    return;
  }
  TextTable table({"problem", "where", "details"}, "lll");
  std::map<std::string, int> kinds;
  for (const DataProblem& problem : check.problems) {
    if (++kinds[problem.kind] > static_cast<int>(kMostListed)) continue;
    table.add_row({problem.kind, problem.where, problem.what});
  }
  std::string counts;
  bool more = false;
  for (const auto& [kind, count] : kinds) {
    counts += fmt::format("{}{} x {}", counts.empty() ? "" : ", ", count, kind);
    more = more || count > static_cast<int>(kMostListed);
  }
  print(text + '\n' + shown(table) +
        fmt::format("\n{} problems: {}{}\n", check.problems.size(), counts,
                    more ? "; the first ten of each kind are shown, --json lists all" : ""));
}

int run_check(const DataOptions& options) {
  set_thread_count(options.threads);
  ProgressBar bar;
  const DataCheck check = check_data(
      options.path, [&](std::int64_t done, std::int64_t total) { bar.show(done, total, "image"); });
  bar.clear();
  if (options.json) {
    Json classes = Json::array(), problems = Json::array();
    for (const ClassCount& c : check.classes) {
      classes.push_back({{"name", c.name}, {"train", c.train}, {"test", c.test}});
    }
    for (const DataProblem& p : check.problems) {
      problems.push_back({{"problem", p.kind}, {"where", p.where}, {"what", p.what}});
    }
    print(json_document(Json{{"path", options.path},
                             {"layout", check.layout},
                             {"train_images", check.train_count},
                             {"test_images", check.test_count},
                             {"classes", std::move(classes)},
                             {"problems", std::move(problems)}}));
  } else {
    print_check(options, check);
  }
  return check.problems.empty() ? 0 : 1;
}

void tell_enlarged(const Dataset& data) {
  const SmallImages found = small_images(data);
  if (2 * found.small <= found.seen) return;
  message(fmt::format(
      "note: images are enlarged to {0}x{1}: {2} of {3} checked images are smaller, such as "
      "{4}x{5}; --size {4}x{5} makes a smaller pack\n",
      data.height, data.width, found.small, found.seen, found.first.height, found.first.width));
}

int run_pack(const DataOptions& options) {
  if (options.jpeg && !options.size.empty()) {
    bad_input("--jpeg does not decode images and cannot be combined with --size");
  }
  if (options.jpeg && options.skip_broken) {
    bad_input("--jpeg does not decode images and cannot be combined with --skip-broken");
  }
  set_thread_count(options.threads);
  FrameSize size;
  if (!options.size.empty()) size = parse_frame(options.size, "--size");
  check_writable(options.out);
  const Split split = load_dataset(
      options.path, {.classes = static_cast<std::int32_t>(options.classes), .image = size});
  if (!split.skipped.empty()) message("note: " + skipped_text(split.skipped) + '\n');
  if (!options.jpeg) tell_enlarged(split.train);
  ProgressBar bar;
  const PackSummary summary =
      write_pack(split, options.out,
                 {.kind = options.jpeg ? PackKind::encoded : PackKind::decoded,
                  .skip_broken = options.skip_broken},
                 [&](std::int64_t done, std::int64_t total) { bar.show(done, total, "image"); });
  bar.clear();
  if (!summary.skipped.empty()) {
    message(fmt::format("left out {} images:\n  {}\n", summary.skipped.size(),
                        listed(summary.skipped, "\n  ")));
  }
  if (options.json) {
    print(json_document(Json{{"path", options.out},
                             {"kind", options.jpeg ? "jpeg" : "decoded"},
                             {"train_images", summary.train_count},
                             {"test_images", summary.test_count},
                             {"left_out", summary.skipped},
                             {"bytes", summary.bytes}}));
    return 0;
  }
  print(fmt::format("{}: {} training + {} test images of {} classes, {}, {}\n", options.out,
                    count_text(summary.train_count), count_text(summary.test_count),
                    split.train.classes,
                    options.jpeg ? std::string("not decoded")
                                 : fmt::format("decoded to {}x{}x{}", split.train.channels,
                                               split.train.height, split.train.width),
                    bytes_text(summary.bytes)));
  return 0;
}

}  // namespace

void add_data(Parser& program, Action& action) {
  auto options = std::make_shared<DataOptions>();
  Parser* command = program.add_subcommand("data", "List, download, check and pack datasets");
  const auto add = [&](const char* name, const char* meaning, int (*run)(const DataOptions&)) {
    Parser* sub = command->add_subcommand(name, meaning);
    sub->callback([options, run, &action] { action = [options, run] { return run(*options); }; });
    return sub;
  };
  Parser* list = add("list", "List the known datasets and where they are", run_list);
  add_json_option(*list, options->json);
  add_table_options(*list, kDatasetColumns);
  list->examples({"ridgeline data list"});

  std::vector<std::string> names;
  for (const PublishedDataset& dataset : published_datasets()) names.emplace_back(dataset.name);
  Parser* get = add("get", "Download a dataset, check it and unpack it", run_get);
  get->add_option("NAME", options->path, "The dataset, such as mnist, fashion-mnist or cifar10")
      ->required()
      ->values(names);
  get->add_option("--from URL", options->from, "Download from another address of the same files");
  get->add_option("--into DIR", options->into,
                  "Folder to put the dataset in [default: $RIDGELINE_DATA or data]");
  add_json_option(*get, options->json);
  get->notes("The same command continues an interrupted download.");
  get->examples(
      {"ridgeline data get cifar10",
       "ridgeline data get imagenette --into /data --from http://mirror.example/fastai/"});

  Parser* check = add("check", "Decode all images of a dataset and report problems", run_check);
  check->add_option("PATH", options->path, "A folder of images, or a pack")->required();
  add_threads_option(*check, options->threads);
  add_json_option(*check, options->json);
  add_table_options(*check);
  check->notes("The exit code is 1 if there are problems.");
  check->examples({"ridgeline data check photos/"});

  Parser* pack = add("pack", "Write a dataset into one file, a pack", run_pack);
  pack->add_option("DATA", options->path, "Any data that 'train --data' accepts")->required();
  pack->add_option("OUT", options->out, "The pack to write, such as photos.pack")->required();
  pack->add_option("--size HxW", options->size,
                   "Size of the decoded images [default: 224x224 for photographs, else their own]");
  pack->add_flag("--jpeg", options->jpeg, "Keep the image files as they are, without decoding");
  pack->add_flag("--skip-broken", options->skip_broken, "Leave out images that cannot be decoded");
  pack->add_option("--classes N", options->classes,
                   "Number of classes, for data that does not say it");
  add_threads_option(*pack, options->threads);
  add_json_option(*pack, options->json);
  pack->examples({"ridgeline data pack photos/ photos.pack --size 224x224",
                  "ridgeline data pack photos/ photos.pack --jpeg"});
  help_without_subcommand(*command, action);
  command->examples({"ridgeline data list", "ridgeline data get cifar10",
                     "ridgeline data check photos/",
                     "ridgeline data pack photos/ photos.pack --size 224x224"});
}

}  // namespace ridgeline::cli
