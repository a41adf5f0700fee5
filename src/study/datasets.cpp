#include "study/datasets.h"

#include <array>

#include "base/error.h"
#include "base/parse.h"
#include "base/suggest.h"
#include "base/text.h"

namespace ridgeline::study {
namespace {

constexpr std::string_view kSynthetic = "synthetic";
// As data/synthetic.h has it where nothing is told.
constexpr DataShape kUsualSynthetic{1, 28, 28, 10, 0};

std::int64_t number_of(std::string_view text, const std::string& data) {
  const std::int64_t number = number_in<std::int64_t>(text).value_or(0);
  if (number < 1) {
    bad_input("data '{}': expected synthetic[:CxHxW[:CLASSES[:COUNT]]] with whole numbers from 1",
              data);
  }
  return number;
}

DataShape synthetic_shape(const std::string& data) {
  DataShape shape = kUsualSynthetic;
  const std::vector<std::string_view> pieces = pieces_of(data, ":");
  if (pieces.size() > 4) number_of("", data);
  if (pieces.size() > 1) {
    const std::vector<std::string_view> sizes = pieces_of(pieces[1], "x");
    if (sizes.size() != 3) number_of("", data);
    shape.channels = number_of(sizes[0], data);
    shape.height = number_of(sizes[1], data);
    shape.width = number_of(sizes[2], data);
  }
  if (pieces.size() > 2) shape.classes = number_of(pieces[2], data);
  if (pieces.size() > 3) shape.samples = number_of(pieces[3], data);
  return shape;
}

}  // namespace

std::span<const StudyDataset> study_datasets() {
  static const std::array<StudyDataset, 8> datasets = {{
      {"fashion-mnist", {1, 28, 28, 10, 60000}, {"fashion-mnist"}},
      {"mnist", {1, 28, 28, 10, 60000}, {"mnist"}},
      {"digit-recognizer",
       {1, 28, 28, 10, 42000},
       {"digit-recognizer/train.csv", "digit-recognizer.csv", "digit-recognizer/train.csv.gz"}},
      {"cifar10", {3, 32, 32, 10, 50000}, {"cifar10", "cifar-10-batches-bin"}},
      {"cifar100", {3, 32, 32, 100, 50000}, {"cifar100", "cifar-100-binary"}},
      {"tiny-imagenet", {3, 64, 64, 200, 100000}, {"tiny-imagenet", "tiny-imagenet-200"}},
      {"imagenette",
       {3, 224, 224, 10, 9469},
       {"imagenette", "imagenette2-320", "imagenette2", "imagenette2-160"}},
      {"cats-dogs",
       {3, 224, 224, 2, 8005},
       {"cats-dogs", "cats_dogs", "cats-vs-dogs", "cats_vs_dogs", "dogs-vs-cats", "cat-and-dog"}},
  }};
  return datasets;
}

const StudyDataset* find_study_dataset(std::string_view name) {
  for (const StudyDataset& dataset : study_datasets()) {
    if (dataset.name == name) return &dataset;
  }
  return nullptr;
}

bool is_synthetic(std::string_view data) {
  return data == kSynthetic || data.starts_with("synthetic:");
}

void check_data_name(const std::string& data) {
  if (is_synthetic(data)) {
    (void)synthetic_shape(data);
    return;
  }
  if (find_study_dataset(data) != nullptr || data.find('/') != std::string::npos) return;
  std::vector<std::string_view> names;
  for (const StudyDataset& dataset : study_datasets()) names.push_back(dataset.name);
  names.push_back(kSynthetic);
  bad_input("unknown data '{}'{}{} Known: {}, or a path with a '/' in it", data,
            did_you_mean(data, names), nearest(data, names) ? "" : ".", joined(names, ", "));
}

DataShape shape_of_data(const std::string& data) {
  if (is_synthetic(data)) return synthetic_shape(data);
  const StudyDataset* known = find_study_dataset(data);
  return known != nullptr ? known->shape : DataShape{};
}

}  // namespace ridgeline::study
