#pragma once

// Data as studies name it: the known datasets, those of the published studies, synthetic images.

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace ridgeline::study {

// What is known of data before it is read; 0: nothing.
struct DataShape {
  std::int64_t channels = 0, height = 0, width = 0, classes = 0, samples = 0;
};

struct StudyDataset {
  std::string_view name;
  DataShape shape;  // as published
  // Where it is looked for below a folder of data, first choice first: folders and files.
  std::vector<std::string_view> places;
};
[[nodiscard]] std::span<const StudyDataset> study_datasets();
[[nodiscard]] const StudyDataset* find_study_dataset(std::string_view name);

[[nodiscard]] bool is_synthetic(std::string_view data);
// A name of study_datasets(), synthetic images, or a path. Throws bad_input for anything else.
void check_data_name(const std::string& data);
// Nothing is known of a path.
[[nodiscard]] DataShape shape_of_data(const std::string& data);

}  // namespace ridgeline::study
