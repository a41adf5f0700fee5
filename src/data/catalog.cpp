#include "data/catalog.h"

#include <algorithm>
#include <array>
#include <cstdlib>
#include <limits>
#include <numeric>
#include <optional>

#include "base/error.h"
#include "base/folder.h"
#include "base/parse.h"
#include "base/suggest.h"
#include "base/text.h"
#include "data/cifar.h"
#include "data/csv.h"
#include "data/idx.h"
#include "data/image_folder.h"
#include "data/pack.h"
#include "data/synthetic.h"

namespace ridgeline {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kFashion = "fashion-mnist";
constexpr std::string_view kMnist = "mnist";
constexpr std::string_view kSynthetic = "synthetic";
constexpr std::string_view kDebianFolder = "/usr/share/datasets/fashion-mnist";

constexpr std::array<KnownDataset, 7> kKnown = {{
    {kFashion, "Fashion-MNIST, 60,000 + 10,000 grey images of clothes, 1x28x28, 10 classes"},
    {kMnist, "MNIST, 60,000 + 10,000 grey images of handwritten digits, 1x28x28, 10 classes"},
    {"cifar10",
     "CIFAR-10, 50,000 + 10,000 colour images of things and animals, 3x32x32, 10 classes"},
    {"cifar100", "CIFAR-100, 50,000 + 10,000 colour images, 3x32x32, 100 classes"},
    {"tiny-imagenet", "Tiny-ImageNet, 100,000 + 10,000 photographs, 3x64x64, 200 classes"},
    {"imagenette", "Imagenette, 9,469 + 3,925 photographs, shorter side 320, 10 classes"},
    {kSynthetic, "patterns under noise, any size: synthetic:CxHxW:CLASSES:COUNT"},
}};

std::vector<std::string_view> known_names() {
  std::vector<std::string_view> names;
  for (const KnownDataset& known : kKnown) names.push_back(known.name);
  return names;
}

bool is_csv(const fs::path& path) {
  const std::string name = path.filename().string();
  return name.ends_with(".csv") || name.ends_with(".csv.gz");
}

std::int64_t positive(std::string_view text, std::string_view what, const std::string& spec) {
  const std::int32_t number = number_in<std::int32_t>(text).value_or(0);
  if (number < 1) {
    bad_input(
        "dataset '{}': '{}' is not a {}; expected synthetic:CxHxW:CLASSES:COUNT with whole "
        "numbers from 1, for example synthetic:1x28x28:10:60000",
        spec, text, what);
  }
  return number;
}

Split load_synthetic(const std::string& spec, const LoadOptions& options) {
  const std::vector<std::string_view> pieces = pieces_of(spec, ":");
  SyntheticOptions synthetic{.seed = options.seed};
  if (pieces.size() > 1) {
    const std::vector<std::string_view> sizes = pieces_of(pieces[1], "x");
    if (sizes.size() != 3 || pieces.size() > 4) {
      bad_input(
          "dataset '{}': expected synthetic:CxHxW:CLASSES:COUNT, for example "
          "synthetic:1x28x28:10:60000",
          spec);
    }
    synthetic.channels = positive(sizes[0], "number of channels", spec);
    synthetic.height = positive(sizes[1], "height", spec);
    synthetic.width = positive(sizes[2], "width", spec);
  }
  if (pieces.size() > 2) {
    synthetic.classes = static_cast<std::int32_t>(positive(pieces[2], "number of classes", spec));
  }
  if (pieces.size() > 3) {
    synthetic.count = positive(pieces[3], "number of samples", spec);
    synthetic.test_count = std::max<std::int64_t>(1, synthetic.count / 6);
  }
  return make_synthetic(synthetic);
}

void set_origin(Split& split, const std::string& name, const std::string& source) {
  for (Dataset* part : {&split.train, &split.test}) {
    part->name = name;
    part->source = source;
    part->channels = split.train.channels;
    part->height = split.train.height;
    part->width = split.train.width;
    part->classes = split.train.classes;
    part->class_names = split.train.class_names;
  }
}

std::string counts_text(const Split& split) {
  std::string text = count_text(split.train.count());
  if (!split.test.empty()) text += " + " + count_text(split.test.count());
  return text;
}

bool holds_idx(const fs::path& folder) {
  std::error_code error;
  const std::vector<std::string> names = names_in(folder, error);
  if (error) bad_input("{}: cannot be read: {}", folder.string(), error.message());
  return std::any_of(names.begin(), names.end(), [](const std::string& name) {
    return name.find("-ubyte") != std::string::npos;
  });
}

// A folder in which nothing was recognised.
[[noreturn]] void refuse_folder(const fs::path& folder) {
  std::error_code error;
  const std::vector<std::string> names = names_in(folder, error);
  if (error) bad_input("{}: cannot be read: {}", folder.string(), error.message());
  bad_input(
      "{}: contains no data of a known kind{}; expected a folder of images for each class (perhaps "
      "in "
      "train/ and val/), labels.csv beside images, CIFAR's .bin files, or IDX files such as "
      "train-images-idx3-ubyte",
      folder.string(),
      names.empty() ? std::string(": it is empty")
                    : fmt::format(" (its first entry is '{}')", names.front()));
}

// Pixels in memory become a source that resizes them.
void resize_on_demand(Dataset& data, FrameSize size) {
  if (data.images == nullptr && !data.empty() &&
      (data.height != size.height || data.width != size.width)) {
    if (data.channels != 1 && data.channels != 3) {
      bad_input("{}: images of {} channels cannot be resized; only 1 or 3", data.name,
                data.channels);
    }
    data.images =
        std::make_shared<MemoryImages>(std::move(data.pixels), static_cast<int>(data.channels),
                                       static_cast<int>(data.height), static_cast<int>(data.width));
    data.pixels = {};
    data.image_numbers.resize(data.labels.size());
    std::iota(data.image_numbers.begin(), data.image_numbers.end(), 0);
  }
  data.height = size.height;
  data.width = size.width;
}

Split read_folder(const fs::path& path, const LoadOptions& options, std::string& format) {
  if (holds_idx(path)) {
    format = "IDX folder";
    return read_idx_folder(path, options.classes);
  }
  if (const std::optional<fs::path> cifar = find_cifar(path)) {
    format = "CIFAR folder";
    return read_cifar_folder(*cifar);
  }
  std::optional<ImageListing> listing = list_images(path);
  if (!listing) refuse_folder(path);
  format = listing->layout;
  // Labelled files tell no classes beyond the largest label.
  if (listing->class_names.empty()) {
    listing->classes = std::max(listing->classes, options.classes);
  }
  return listed_datasets(*listing, options.image.height > 0 ? options.image : listing->usual_size);
}

Split load_path(const fs::path& path, const LoadOptions& options) {
  Split split;
  std::string format;
  if (fs::is_directory(path)) {
    split = read_folder(path, options, format);
  } else if (is_csv(path)) {
    split.train = read_csv(path, options.classes);
    format = "CSV file";
  } else if (is_pack(path)) {
    split = open_pack(path, options.image);
    format = "pack";
  } else if (path.extension() == ".bin") {
    split.train = read_cifar_file(path);
    format = "CIFAR file";
  } else {
    bad_input(
        "{}: is neither a folder with data, nor a .csv, .csv.gz or CIFAR .bin file, nor a pack{}",
        path.string(),
        path.filename().string().find("-ubyte") != std::string::npos
            ? "; give the folder of the IDX files instead of one of them"
            : "");
  }
  const fs::path named = path.has_filename() ? path : path.parent_path();
  set_origin(split, split.train.name.empty() ? named.filename().string() : split.train.name,
             fmt::format("{} {}, {}", format, path.string(), counts_text(split)));
  return split;
}

std::string_view title_of(std::string_view name) {
  const auto known = std::find_if(kKnown.begin(), kKnown.end(),
                                  [&](const KnownDataset& data) { return data.name == name; });
  return known->description.substr(0, known->description.find(','));
}

bool is_named(std::string_view name) {
  return name != kSynthetic &&
         std::any_of(kKnown.begin(), kKnown.end(),
                     [&](const KnownDataset& data) { return data.name == name; });
}

Split load_named(std::string_view name, const LoadOptions& options) {
  const fs::path folder = find_dataset_folder(name, dataset_folders(name));
  Split split = load_path(folder, options);
  if (name == kFashion && options.classes == 10) {
    split.train.class_names = {"T-shirt/top", "Trouser", "Pullover", "Dress", "Coat",
                               "Sandal",      "Shirt",   "Sneaker",  "Bag",   "Ankle boot"};
  }
  const std::string from =
      folder == kDebianFolder ? "Debian dataset-fashion-mnist" : folder.string();
  set_origin(split, std::string(name),
             fmt::format("{} ({}), {}", title_of(name), from, counts_text(split)));
  return split;
}

Split load(const std::string& spec, const LoadOptions& options) {
  if (is_named(spec)) return load_named(spec, options);
  if (spec == kSynthetic || spec.starts_with("synthetic:")) return load_synthetic(spec, options);
  std::error_code error;
  if (fs::exists(spec, error)) return load_path(spec, options);
  if (error) bad_input("{}: cannot be read: {}", spec, error.message());
  if (spec.find('/') != std::string::npos || is_csv(spec) || spec.ends_with(".pack")) {
    bad_input("{}: no such file or folder; expected a folder with data, a .csv file or a pack",
              spec);
  }
  const std::vector<std::string_view> names = known_names();
  bad_input(
      "unknown dataset '{}'{} Known are {}, a folder with images or IDX files, a .csv file, "
      "a pack",
      spec, nearest(spec, names) ? did_you_mean(spec, names) : ".", joined(names, ", "));
}

}  // namespace

std::span<const KnownDataset> known_datasets() { return kKnown; }

std::vector<fs::path> dataset_folders(std::string_view name) {
  std::vector<fs::path> folders;
  if (const char* data = std::getenv("RIDGELINE_DATA"); data != nullptr && *data != '\0') {
    folders.push_back(fs::path(data) / name);
  }
  folders.push_back(fs::path("data") / name);
  if (name == kFashion) folders.emplace_back(kDebianFolder);
  return folders;
}

fs::path find_dataset_folder(std::string_view name, std::span<const fs::path> folders) {
  std::string tried;
  for (const fs::path& folder : folders) {
    std::error_code ignored;
    if (fs::is_directory(folder, ignored)) return folder;
    tried += (tried.empty() ? "" : ", ") + folder.string();
  }
  bad_input("dataset '{}' is not here (looked in {}); {}", name, tried,
            name == kFashion
                ? "install it with: apt-get install dataset-fashion-mnist, or get it with: "
                  "ridgeline data "
                  "get fashion-mnist"
                : fmt::format(
                      "get it with: ridgeline data get {0}, or put {1} into one of these folders, "
                      "or set RIDGELINE_DATA to the folder that contains '{0}'",
                      name,
                      name == kMnist ? "its four files (train-images-idx3-ubyte.gz, "
                                       "train-labels-idx1-ubyte.gz, t10k-images-idx3-ubyte.gz, "
                                       "t10k-labels-idx1-ubyte.gz)"
                                     : "its files"));
}

Split load_dataset(const std::string& spec, const LoadOptions& options) {
  Split split = load(spec, options);
  if (options.image.height > 0) {
    resize_on_demand(split.train, options.image);
    resize_on_demand(split.test, options.image);
  }
  return split;
}

}  // namespace ridgeline
