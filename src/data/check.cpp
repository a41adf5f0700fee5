#include "data/check.h"

#include <algorithm>
#include <map>

#include "base/digest.h"
#include "base/error.h"
#include "base/parallel.h"
#include "data/pack.h"

namespace ridgeline {
namespace {

namespace fs = std::filesystem;

constexpr std::int64_t kImagesPerReport = 256;  // images between two reports of progress

// What one image turned out to be.
struct Finding {
  std::string broken, digest;
  int warnings = 0;
  int width = 0, height = 0;
};

struct Part {
  const ImageSource* images;
  std::vector<std::int32_t> numbers;
  std::vector<std::int32_t> labels;
  bool train;
};

class Checker {
 public:
  Checker(DataCheck& result, const std::function<void(std::int64_t, std::int64_t)>& progress,
          std::int64_t total)
      : result_(result),
        progress_(progress),
        total_(total),
        decoders_(static_cast<std::size_t>(thread_count())) {}

  void run(const Part& part) {
    const auto count = static_cast<std::int64_t>(part.numbers.size());
    for (std::int64_t first = 0; first < count; first += kImagesPerReport) {
      const std::int64_t rows = std::min(kImagesPerReport, count - first);
      std::vector<Finding> findings(static_cast<std::size_t>(rows));
      parallel([&](int thread, int threads) {
        const Range range = share_of(rows, thread, threads);
        for (std::int64_t row = range.begin; row < range.end; ++row) {
          const auto at = static_cast<std::size_t>(row);
          findings[at] = look_at(part, static_cast<std::size_t>(first + row),
                                 decoders_[static_cast<std::size_t>(thread)]);
        }
      });
      for (std::int64_t row = 0; row < rows; ++row) {
        note(part, static_cast<std::size_t>(first + row), findings[static_cast<std::size_t>(row)]);
      }
      done_ += rows;
      progress_(done_, total_);
    }
  }

 private:
  struct Worker {
    ImageDecoder decoder;
    std::vector<std::uint8_t> bytes;
  };

  static Finding look_at(const Part& part, std::size_t at, Worker& worker) {
    Finding finding;
    const std::int32_t number = part.numbers[at];
    try {
      const StoredImage image = part.images->fetch(number, worker.bytes);
      finding.digest = digest_of(DigestKind::sha256, image.bytes);
      if (image.decoded) {
        finding.width = image.width;
        finding.height = image.height;
        return finding;
      }
      const ImageHeader header = worker.decoder.open(image.bytes, part.images->name(number));
      (void)worker.decoder.decode({0, 0, header.width, header.height}, 8);
      finding.width = header.width;
      finding.height = header.height;
      finding.warnings = worker.decoder.warnings();
    } catch (const Error& error) {
      finding.broken = error.what();
    }
    return finding;
  }

  void note(const Part& part, std::size_t at, const Finding& finding) {
    const std::string name = part.images->name(part.numbers[at]);
    if (!finding.broken.empty()) {
      // The reason begins with the name.
      const std::string reason = finding.broken.starts_with(name + ": ")
                                     ? finding.broken.substr(name.size() + 2)
                                     : finding.broken;
      result_.problems.push_back({"broken image", name, reason});
      return;
    }
    if (finding.warnings > 0) {
      result_.problems.push_back({"damaged image", name,
                                  fmt::format("decodes, with {} warning{}", finding.warnings,
                                              finding.warnings == 1 ? "" : "s")});
    }
    const bool first = result_.most_width == 0;
    result_.least_width = first ? finding.width : std::min(result_.least_width, finding.width);
    result_.least_height = first ? finding.height : std::min(result_.least_height, finding.height);
    result_.most_width = std::max(result_.most_width, finding.width);
    result_.most_height = std::max(result_.most_height, finding.height);
    const auto [place, is_new] =
        seen_.try_emplace(finding.digest, Seen{name, part.labels[at], part.train});
    if (is_new) return;
    const Seen& before = place->second;
    std::string what = "the same file as " + before.name;
    if (before.train != part.train) what += ", in the other part";
    if (before.label != part.labels[at]) what += ", with another label";
    result_.problems.push_back({"duplicate", name, std::move(what)});
  }

  struct Seen {
    std::string name;
    std::int32_t label;
    bool train;
  };

  DataCheck& result_;
  const std::function<void(std::int64_t, std::int64_t)>& progress_;
  std::int64_t total_, done_ = 0;
  std::vector<Worker> decoders_;
  std::map<std::string, Seen> seen_;  // by digest
};

std::string class_name(const std::vector<std::string>& names, std::size_t label) {
  return label < names.size() ? names[label] : fmt::format("{}", label);
}

void count_classes(DataCheck& check, const Part& part, std::int32_t classes,
                   const std::vector<std::string>& names) {
  if (check.classes.empty()) {
    for (std::size_t label = 0; label < static_cast<std::size_t>(classes); ++label) {
      check.classes.push_back({.name = class_name(names, label)});
    }
  }
  for (const std::int32_t label : part.labels) {
    ClassCount& count = check.classes[static_cast<std::size_t>(label)];
    ++(part.train ? count.train : count.test);
  }
}

std::vector<std::int32_t> numbers_to(std::size_t count) {
  std::vector<std::int32_t> numbers(count);
  for (std::size_t i = 0; i < count; ++i) numbers[i] = static_cast<std::int32_t>(i);
  return numbers;
}

}  // namespace

DataCheck check_data(const fs::path& path,
                     const std::function<void(std::int64_t, std::int64_t)>& progress) {
  DataCheck check;
  std::vector<Part> parts;
  std::vector<std::shared_ptr<const ImageSource>> sources;
  std::vector<std::string> names;
  std::int32_t classes = 0;
  if (is_pack(path)) {
    const Split split = open_pack(path, {});
    check.layout = "pack";
    names = split.train.class_names;
    classes = split.train.classes;
    sources.push_back(split.train.images);
    parts.push_back({sources[0].get(), split.train.image_numbers, split.train.labels, true});
    parts.push_back({sources[0].get(), split.test.image_numbers, split.test.labels, false});
  } else {
    std::error_code error;
    if (!fs::exists(path, error)) {
      bad_input("{}: {}", path.string(), error ? error.message() : "no such folder or pack");
    }
    if (!fs::is_directory(path, error)) {
      bad_input("{}: is neither a folder with images nor a pack", path.string());
    }
    const std::optional<ImageListing> listing = list_images(path);
    if (!listing) {
      bad_input("{}: contains no images in a known layout; see docs/data.md", path.string());
    }
    check.layout = listing->layout;
    check.problems = listing->problems;
    for (const std::string& file : listing->skipped) {
      check.problems.push_back({"skipped image", file, "is neither JPEG nor PNG"});
    }
    names = listing->class_names;
    classes = listing->classes;
    for (const ListedImages* part : {&listing->train, &listing->test}) {
      sources.push_back(std::make_shared<FileImages>(path, part->files));
      parts.push_back({sources.back().get(), numbers_to(part->files.size()), part->labels,
                       part == &listing->train});
    }
    if (classes < 2) {
      check.problems.push_back({"classes", path.string(), "fewer than two classes"});
    }
  }
  check.train_count = std::ssize(parts[0].labels);
  check.test_count = std::ssize(parts[1].labels);
  Checker checker(check, progress, check.train_count + check.test_count);
  for (const Part& part : parts) {
    count_classes(check, part, classes, names);
    checker.run(part);
  }
  return check;
}

}  // namespace ridgeline
