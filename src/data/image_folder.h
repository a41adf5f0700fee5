#pragma once

// Finds the images of a folder and their classes. Nothing is decoded here.

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "data/dataset.h"
#include "data/image_transform.h"

namespace ridgeline {

struct ListedImages {
  std::vector<std::string> files;  // relative to the folder, in the order of the samples
  std::vector<std::int32_t> labels;
};

// Something wrong with a folder, though the rest of it may be usable.
struct DataProblem {
  std::string kind;   // "empty class", "symbolic link", "label", ...
  std::string where;  // the file or folder
  std::string what;
};

struct ImageListing {
  std::filesystem::path root;
  std::string layout;                    // "image folder", for people
  std::vector<std::string> class_names;  // in UTF-8, whatever the folders are called
  std::int32_t classes = 0;
  ListedImages train, test;
  FrameSize usual_size{224, 224};  // of a network's input
  std::vector<DataProblem> problems;
  std::vector<std::string> skipped;  // images of kinds that are not read: .webp, .bmp, ...
};

// Lists the images (.jpg, .jpeg, .png in any case) of one of these layouts, known by its contents:
//   train/CLASS/... and val/, valid/ or test/ with the same classes     image folder
//   CLASS/...                                                           image folder, one part
//   train/nXXXX/images/, val/images/ with val_annotations.txt           Tiny-ImageNet
//   the same with its test images moved to val/nXXXX/                   Tiny-ImageNet
//   cat.0.jpg, dog.17.jpg, in the folder or in its train/               files named by class
//   labels.csv with lines FILE,CLASS                                    labelled files
// Classes are numbered in the order of their names, as torchvision's ImageFolder does. Nothing when
// the folder has none of these. What is wrong inside a layout is told in `problems`. A folder of
// data sets is a bad_input Error.
[[nodiscard]] std::optional<ImageListing> list_images(const std::filesystem::path& root);

// "3 image files are passed over, neither JPEG nor PNG: a.webp, b.webp, c.bmp"; empty for none.
[[nodiscard]] std::string skipped_text(const std::vector<std::string>& files);

// A listing as datasets. The first problem is a bad_input Error; so are fewer than two classes.
[[nodiscard]] Split listed_datasets(const ImageListing& listing, FrameSize size);

}  // namespace ridgeline
