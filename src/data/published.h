#pragma once

// Datasets that can be fetched: where they are published and under which checksums.

#include <filesystem>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "data/download.h"

namespace ridgeline {

struct PublishedFile {
  std::string_view name;
  std::string_view md5;  // empty: not known
};

struct PublishedDataset {
  std::string_view name;
  std::string_view base;  // address of the folder of the files
  std::vector<PublishedFile> files;
  std::string_view inner;  // an archive: the folder in it that is the dataset; empty: plain files
};

[[nodiscard]] std::span<const PublishedDataset> published_datasets();

struct GetOptions {
  std::filesystem::path folder;  // NAME is put below it
  std::string base;              // another address of the same files; empty: the published one
};

// Downloads a dataset, checks and unpacks it. Returns its folder. Told are the file and how much of
// it has arrived. A dataset that is there already is left alone.
std::filesystem::path get_dataset(
    std::string_view name, const GetOptions& options,
    const std::function<void(std::string_view, std::int64_t, std::int64_t)>& progress);

}  // namespace ridgeline
