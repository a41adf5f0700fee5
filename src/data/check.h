#pragma once

// Looks for everything that is wrong with a dataset: images that do not decode, classes without
// images, labels without classes, images that are there twice.

#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "data/image_folder.h"

namespace ridgeline {

struct ClassCount {
  std::string name;
  std::int64_t train = 0, test = 0;
};

struct DataCheck {
  std::string layout;
  std::int64_t train_count = 0, test_count = 0;
  std::vector<ClassCount> classes;
  int least_width = 0, least_height = 0, most_width = 0,
      most_height = 0;  // 0 where nothing decoded
  std::vector<DataProblem> problems;
};

// Decodes every image of a folder or pack completely, on all usable processors. Bad_input when
// there is nothing in it that could be checked.
[[nodiscard]] DataCheck check_data(const std::filesystem::path& path,
                                   const std::function<void(std::int64_t, std::int64_t)>& progress);

}  // namespace ridgeline
