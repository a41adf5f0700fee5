#pragma once

// Finds the data that a user names: a folder, a file or one of the known datasets.

#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "data/dataset.h"
#include "data/image_transform.h"

namespace ridgeline {

struct KnownDataset {
  std::string_view name;
  std::string_view description;
};
[[nodiscard]] std::span<const KnownDataset> known_datasets();

struct LoadOptions {
  std::int32_t classes = 10;  // labels must lie below; synthetic data tells its own
  std::uint64_t seed = 0;     // of synthetic data
  FrameSize image = {};       // the network's input; 0x0: what is usual for the data
};

// `spec` is one of
//   fashion-mnist, mnist, cifar10, cifar100, tiny-imagenet, imagenette
//                                    in $RIDGELINE_DATA, ./data, or where Debian installs it
//   synthetic[:CxHxW[:CLASSES[:COUNT]]]   a sixth as many test samples come along
//   a folder with IDX files, CIFAR's .bin files or images (see image_folder.h)
//                                    the test part is empty when the folder has none
//   a .csv or .csv.gz file, a CIFAR .bin file      the test part is empty; hold_out makes one
//   a pack (see pack.h)
// Anything else is a bad_input Error that suggests what was meant.
[[nodiscard]] Split load_dataset(const std::string& spec, const LoadOptions& options = {});

// The folders in which a named dataset is looked for, first choice first.
[[nodiscard]] std::vector<std::filesystem::path> dataset_folders(std::string_view name);

// The first of the folders that exists; else a bad_input Error that says how to get the dataset.
[[nodiscard]] std::filesystem::path find_dataset_folder(
    std::string_view name, std::span<const std::filesystem::path> folders);

}  // namespace ridgeline
