// Finds studies: those that the program carries, and files.

#include <algorithm>
#include <array>
#include <filesystem>

#include "base/embedded.h"
#include "base/error.h"
#include "base/suggest.h"
#include "base/text.h"
#include "base/text_file.h"
#include "study/study.h"

namespace ridgeline::study {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kFolder = "studies/", kEnding = ".toml";
// Listed in this order, others behind them.
constexpr std::array<std::string_view, 6> kOrder = {"quick",    "environments", "from-scratch",
                                                    "roofline", "profiling",    "backends"};

std::size_t place_of(const std::string& name) {
  return static_cast<std::size_t>(std::find(kOrder.begin(), kOrder.end(), name) - kOrder.begin());
}

}  // namespace

std::vector<std::string> built_in_studies() {
  std::vector<std::string> names;
  for (const EmbeddedFile& file : embedded_files()) {
    if (!file.name.starts_with(kFolder) || !file.name.ends_with(kEnding)) continue;
    names.emplace_back(
        file.name.substr(kFolder.size(), file.name.size() - kFolder.size() - kEnding.size()));
  }
  std::sort(names.begin(), names.end(), [](const std::string& a, const std::string& b) {
    return std::pair(place_of(a), a) < std::pair(place_of(b), b);
  });
  return names;
}

Study find_study(const std::string& name_or_file) {
  const std::string file = std::string(kFolder) + name_or_file + std::string(kEnding);
  if (const std::optional<std::string_view> text = embedded_file(file)) {
    return parse_study(*text, file);
  }
  std::error_code ignored;
  if (fs::is_regular_file(name_or_file, ignored)) {
    return parse_study(read_text(name_or_file), name_or_file);
  }
  const std::vector<std::string> names = built_in_studies();
  const std::vector<std::string_view> known(names.begin(), names.end());
  bad_input("there is neither a study nor a file '{}'{}{} Built in: {}", name_or_file,
            did_you_mean(name_or_file, known), nearest(name_or_file, known) ? "" : ".",
            joined(names, ", "));
}

}  // namespace ridgeline::study
