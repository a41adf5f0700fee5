#include "data/image_folder.h"

#include <sys/stat.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <map>
#include <numeric>
#include <set>

#include "base/error.h"
#include "base/folder.h"
#include "base/text.h"
#include "base/utf8.h"
#include "data/file.h"

namespace ridgeline {
namespace {

namespace fs = std::filesystem;

std::string lower_case(std::string text) {
  for (char& c : text) {
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  }
  return text;
}

bool is_image_name(const fs::path& name) {
  const std::string ending = lower_case(name.extension().string());
  return ending == ".jpg" || ending == ".jpeg" || ending == ".png";
}

// Images that other programs read and this one does not.
bool is_foreign_image(const fs::path& name) {
  static constexpr std::array<std::string_view, 13> kEndings = {
      ".webp", ".bmp",  ".gif", ".tif", ".tiff", ".avif", ".heic",
      ".heif", ".jfif", ".jp2", ".jxl", ".pgm",  ".ppm"};
  return std::find(kEndings.begin(), kEndings.end(), lower_case(name.extension().string())) !=
         kEndings.end();
}

bool is_hidden(const fs::path& name) { return name.string().starts_with('.'); }

// A folder's entries by kind, each sorted by name. Links count as what they lead to.
struct Entries {
  std::vector<std::string> folders, images;
};

constexpr const char* kUnreadable = "unreadable";  // a kind of problem
constexpr const char* kTinyImageNet = "Tiny-ImageNet";

struct Identity {
  dev_t device;
  ino_t node;
  bool operator==(const Identity&) const = default;
};

class Lister {
 public:
  explicit Lister(ImageListing& listing) : listing_(listing) {}

  Entries entries(const fs::path& relative) {
    Entries found;
    std::error_code error;
    const fs::path folder = listing_.root / relative;
    for (const auto& [name, type] : entries_in(folder, error)) {
      if (is_hidden(name)) continue;
      std::error_code no_target;
      const bool known = type == fs::file_type::directory || type == fs::file_type::regular;
      if (known ? type == fs::file_type::directory : fs::is_directory(folder / name, no_target)) {
        found.folders.push_back(name);
      } else if (no_target.value() == ELOOP) {
        problem("symbolic link", relative / name, "leads back to itself");
      } else if (is_image_name(name)) {
        found.images.push_back(name);
      } else if (is_foreign_image(name)) {
        skipped_.insert((folder / name).string());
      }
    }
    listing_.skipped.assign(skipped_.begin(), skipped_.end());
    if (error) problem(kUnreadable, relative, error.message());
    return found;
  }

  // All images below a folder: by folder, then by name, as torchvision walks.
  std::vector<std::string> below(const fs::path& relative) {
    std::vector<std::pair<std::string, std::string>> found;
    std::vector<Identity> above;
    walk(relative, above, found);
    std::sort(found.begin(), found.end());
    std::vector<std::string> files;
    files.reserve(found.size());
    for (const auto& [folder, name] : found) files.push_back((fs::path(folder) / name).string());
    return files;
  }

  void problem(const char* kind, const fs::path& where, std::string what) {
    listing_.problems.push_back({kind, (listing_.root / where).string(), std::move(what)});
  }

 private:
  void walk(const fs::path& relative, std::vector<Identity>& above,
            std::vector<std::pair<std::string, std::string>>& found) {
    struct stat status {};
    if (stat((listing_.root / relative).c_str(), &status) != 0) {
      problem(kUnreadable, relative, "cannot be looked at");
      return;
    }
    const Identity self{status.st_dev, status.st_ino};
    if (std::find(above.begin(), above.end(), self) != above.end()) {
      problem("symbolic link", relative, "leads back to a folder above it");
      return;
    }
    above.push_back(self);
    const Entries here = entries(relative);
    for (const std::string& name : here.images) found.emplace_back(relative.string(), name);
    for (const std::string& name : here.folders) walk(relative / name, above, found);
    above.pop_back();
  }

  ImageListing& listing_;
  std::set<std::string> skipped_;  // a folder may be listed more than once
};

bool is_folder(const fs::path& path) {
  std::error_code ignored;
  return fs::is_directory(path, ignored);
}

void add(ListedImages& part, std::vector<std::string> files, std::int32_t label) {
  part.labels.insert(part.labels.end(), files.size(), label);
  part.files.insert(part.files.end(), std::make_move_iterator(files.begin()),
                    std::make_move_iterator(files.end()));
}

std::vector<std::string> lines_of(const fs::path& path) {
  const std::vector<std::uint8_t> bytes = read_file(path);
  std::vector<std::string> lines;
  std::string line;
  for (const std::uint8_t byte : bytes) {
    if (byte != '\n') {
      line += static_cast<char>(byte);
      continue;
    }
    lines.push_back(std::move(line));
    line.clear();
  }
  if (!line.empty()) lines.push_back(std::move(line));
  for (std::string& text : lines) {
    if (text.ends_with('\r')) text.pop_back();
  }
  return lines;
}

std::optional<std::int32_t> label_of(const std::vector<std::string>& names,
                                     const std::string& name) {
  const auto at = std::lower_bound(names.begin(), names.end(), name);
  if (at == names.end() || *at != name) return std::nullopt;
  return static_cast<std::int32_t>(at - names.begin());
}

// "cat.17.jpg" -> "cat"; nothing for other names.
std::optional<std::string> class_in_name(const std::string& name) {
  const std::string stem = fs::path(name).stem().string();
  const std::size_t dot = stem.rfind('.');
  if (dot == std::string::npos || dot == 0 || dot + 1 == stem.size()) return std::nullopt;
  if (!std::all_of(stem.begin() + static_cast<std::ptrdiff_t>(dot) + 1, stem.end(),
                   [](char c) { return c >= '0' && c <= '9'; })) {
    return std::nullopt;
  }
  return stem.substr(0, dot);
}

bool named_by_class(const std::vector<std::string>& images) {
  return !images.empty() && std::all_of(images.begin(), images.end(), [](const std::string& name) {
    return class_in_name(name).has_value();
  });
}

void list_named_files(ImageListing& listing, const fs::path& relative,
                      const std::vector<std::string>& images) {
  std::map<std::string, std::vector<std::string>> classes;
  for (const std::string& name : images) {
    classes[*class_in_name(name)].push_back((relative / name).string());
  }
  for (auto& [name, files] : classes) {
    add(listing.train, std::move(files), static_cast<std::int32_t>(listing.class_names.size()));
    listing.class_names.push_back(valid_utf8(name));
  }
  listing.layout = "files named by class";
}

void list_labels_csv(ImageListing& listing, Lister& lister) {
  listing.layout = "labelled files";
  std::vector<std::string> seen;
  std::int64_t number = 0;
  for (const std::string& line : lines_of(listing.root / "labels.csv")) {
    ++number;
    if (line.empty()) continue;
    const std::size_t comma = line.rfind(',');
    std::int32_t label = -1;
    const char* const end = line.data() + line.size();
    const bool numeric = comma != std::string::npos &&
                         std::from_chars(line.data() + comma + 1, end, label).ptr == end &&
                         comma + 1 < line.size();
    if (!numeric && number == 1) continue;  // the names of the columns
    const std::string where = fmt::format("labels.csv line {}", number);
    if (!numeric || label < 0 || label > 1'000'000) {
      lister.problem("label", where,
                     fmt::format("'{}' is not FILE,CLASS with a class from 0", line));
      continue;
    }
    std::string file = line.substr(0, comma);
    if (file.size() >= 2 && file.front() == '"' && file.back() == '"') {
      file = file.substr(1, file.size() - 2);
    }
    if (!is_there(listing.root / file)) {
      lister.problem("label", where, fmt::format("names '{}', which is not there", file));
      continue;
    }
    listing.classes = std::max(listing.classes, label + 1);
    seen.push_back(file);
    listing.train.files.push_back(std::move(file));
    listing.train.labels.push_back(label);
  }
  std::sort(seen.begin(), seen.end());
  for (const std::string& name : lister.entries("").images) {
    if (!std::binary_search(seen.begin(), seen.end(), name)) {
      lister.problem("label", name, "has no line in labels.csv");
    }
  }
}

// The labels of val/images/, one line for each file.
void list_annotated(ImageListing& listing, Lister& lister, const std::vector<std::string>& ids) {
  const std::vector<std::string> images = lister.entries("val/images").images;
  std::int64_t number = 0;
  for (const std::string& line : lines_of(listing.root / "val/val_annotations.txt")) {
    ++number;
    const std::size_t tab = line.find('\t');
    const std::string where = fmt::format("val/val_annotations.txt line {}", number);
    if (tab == std::string::npos) {
      lister.problem("label", where, fmt::format("'{}' is not FILE<tab>CLASS", line));
      continue;
    }
    const std::string file = line.substr(0, tab);
    const std::string id = line.substr(tab + 1, line.find('\t', tab + 1) - tab - 1);
    const std::optional<std::int32_t> label = label_of(ids, id);
    if (!label) {
      lister.problem("label", where, fmt::format("class '{}' has no folder in train", id));
    } else if (!std::binary_search(images.begin(), images.end(), file)) {
      lister.problem("label", where, fmt::format("names '{}', which is not in val/images", file));
    } else {
      listing.test.files.push_back((fs::path("val/images") / file).string());
      listing.test.labels.push_back(*label);
    }
  }
}

// The test part beside train/: the first of these folders that has classes.
void list_test_part(ImageListing& listing, Lister& lister, const std::vector<std::string>& ids) {
  for (const char* part : {"val", "valid", "test"}) {
    if (!is_folder(listing.root / part)) continue;
    const std::vector<std::string> folders = lister.entries(part).folders;
    if (folders.empty()) continue;
    for (const std::string& name : folders) {
      const std::optional<std::int32_t> label = label_of(ids, name);
      std::vector<std::string> files = lister.below(fs::path(part) / name);
      if (label) {
        add(listing.test, std::move(files), *label);
      } else if (listing.layout != kTinyImageNet || name != "images") {  // where they were before
        lister.problem("label", fs::path(part) / name, "is a class that train does not have");
      }
    }
    return;
  }
}

bool is_tiny_imagenet(const fs::path& root) {
  return is_there(root / "val/val_annotations.txt") ||
         (is_there(root / "words.txt") && is_there(root / "wnids.txt"));
}

// As published, the test images are in val/images/; many people move them to val/CLASS/ and leave
// the annotations where they were.
void list_tiny_imagenet(ImageListing& listing, Lister& lister) {
  listing.layout = kTinyImageNet;
  listing.usual_size = {64, 64};
  const std::vector<std::string> ids = lister.entries("train").folders;
  for (std::size_t i = 0; i < ids.size(); ++i) {
    std::vector<std::string> files = lister.below(fs::path("train") / ids[i]);
    if (files.empty()) lister.problem("empty class", fs::path("train") / ids[i], "no images");
    add(listing.train, std::move(files), static_cast<std::int32_t>(i));
  }
  const std::vector<std::string> parts = lister.entries("val").folders;
  const bool moved = std::any_of(parts.begin(), parts.end(), [&](const std::string& name) {
    return label_of(ids, name).has_value();
  });
  if (moved || !is_there(listing.root / "val/val_annotations.txt")) {
    list_test_part(listing, lister, ids);
  } else {
    list_annotated(listing, lister, ids);
  }
  std::map<std::string, std::string> words;
  if (is_there(listing.root / "words.txt")) {
    for (const std::string& line : lines_of(listing.root / "words.txt")) {
      const std::size_t tab = line.find('\t');
      if (tab != std::string::npos) words[line.substr(0, tab)] = line.substr(tab + 1);
    }
  }
  for (const std::string& id : ids) {
    const auto word = words.find(id);
    listing.class_names.push_back(valid_utf8(word != words.end() ? word->second : id));
  }
}

void list_class_folders(ImageListing& listing, Lister& lister, const fs::path& relative,
                        const std::vector<std::string>& folders) {
  listing.layout = "image folder";
  for (const std::string& name : folders) {
    std::vector<std::string> files = lister.below(relative / name);
    if (files.empty()) {
      lister.problem("empty class", relative / name, "contains no .jpg, .jpeg or .png file");
    }
    add(listing.train, std::move(files), static_cast<std::int32_t>(listing.class_names.size()));
    listing.class_names.push_back(valid_utf8(name));
  }
}

// A folder of data sets is no data set whose classes are these.
void refuse_folder_of_data(const fs::path& root, const std::vector<std::string>& folders) {
  for (const std::string& name : folders) {
    if (!is_folder(root / name / "train")) continue;
    bad_input(
        "{}: is not a folder of classes: '{}' in it has a 'train' folder of its own; give the data "
        "set's own folder, {}",
        root.string(), name, (root / name).string());
  }
}

// Where the only class has folders of its own, those are likely the classes.
std::string suggested_folder(const ImageListing& listing) {
  ImageListing above;
  above.root = listing.root;
  const std::vector<std::string> folders = Lister(above).entries("").folders;
  if (folders.size() != 1) return {};
  const fs::path only = listing.root / folders[0];
  return Lister(above).entries(folders[0]).folders.size() < 2
             ? std::string()
             : fmt::format("; did you mean {}?", only.string());
}

}  // namespace

std::string skipped_text(const std::vector<std::string>& files) {
  if (files.empty()) return {};
  return fmt::format("{} image file{} passed over, neither JPEG nor PNG: {}", files.size(),
                     files.size() == 1 ? " is" : "s are", listed(files));
}

std::optional<ImageListing> list_images(const fs::path& root) {
  ImageListing listing;
  listing.root = root;
  Lister lister(listing);
  if (is_there(root / "labels.csv")) {
    list_labels_csv(listing, lister);
    return listing;
  }
  const bool parts = is_folder(root / "train");
  if (parts && is_tiny_imagenet(root)) {
    list_tiny_imagenet(listing, lister);
  } else {
    const fs::path part = parts ? "train" : "";
    const Entries entries = lister.entries(part);
    if (named_by_class(entries.images) && entries.folders.empty()) {
      list_named_files(listing, part, entries.images);
    } else if (!entries.folders.empty() && (parts || entries.images.empty())) {
      if (!parts) refuse_folder_of_data(root, entries.folders);
      list_class_folders(listing, lister, part, entries.folders);
      if (parts) list_test_part(listing, lister, entries.folders);
    } else if (listing.problems.empty()) {
      return std::nullopt;
    }
  }
  if (listing.train.files.empty() && listing.problems.empty()) return std::nullopt;
  listing.classes = static_cast<std::int32_t>(listing.class_names.size());
  return listing;
}

Split listed_datasets(const ImageListing& listing, FrameSize size) {
  const auto unreadable =
      std::find_if(listing.problems.begin(), listing.problems.end(),
                   [](const DataProblem& problem) { return problem.kind == kUnreadable; });
  if (unreadable != listing.problems.end()) {
    bad_input("{}: cannot be read: {}", unreadable->where, unreadable->what);
  }
  const bool all_empty = listing.train.files.empty();
  if (all_empty) {
    bad_input("{}: none of its {} folders contains a .jpg, .jpeg or .png file{}",
              listing.root.string(), listing.class_names.size(),
              listing.skipped.empty() ? "" : "; " + skipped_text(listing.skipped));
  }
  if (!listing.problems.empty()) {
    const DataProblem& first = listing.problems.front();
    bad_input("{}: {}: {}{}; 'ridgeline data check {}' lists all problems", first.where, first.kind,
              first.what,
              listing.problems.size() > 1
                  ? fmt::format(" ({} problems in all)", listing.problems.size())
                  : std::string(),
              listing.root.string());
  }
  if (listing.classes < 2) {
    bad_input(
        "{}: contains only one class{}; a folder for each of two or more classes was expected{}",
        listing.root.string(),
        listing.class_names.empty() ? "" : ", '" + listing.class_names[0] + "'",
        suggested_folder(listing));
  }
  const auto dataset = [&](const ListedImages& part) {
    Dataset data;
    data.channels = 3;
    data.height = size.height;
    data.width = size.width;
    data.classes = listing.classes;
    data.class_names = listing.class_names;
    data.labels = part.labels;
    data.images = std::make_shared<FileImages>(listing.root, part.files);
    data.image_numbers.resize(part.labels.size());
    std::iota(data.image_numbers.begin(), data.image_numbers.end(), 0);
    data.photos = true;
    return data;
  };
  return {dataset(listing.train), dataset(listing.test), listing.skipped};
}

}  // namespace ridgeline
