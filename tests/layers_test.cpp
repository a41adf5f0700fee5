// The layers of src: a file includes only what lies below its own folder.

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <fstream>
#include <regex>

#include "base/error.h"
#include "support/source_dir.h"

namespace ridgeline {
namespace {

namespace fs = std::filesystem;

// From the bottom up. docs/design.md draws them.
constexpr std::array<std::string_view, 24> kLayers = {
    "base", "ranks",    "data",  "devices",  "ops",       "graph",   "models", "onnx",
    "plan", "backends", "store", "analysis", "train",     "inspect", "peers",  "measure",
    "lab",  "predict",  "study", "report",   "documents", "audit",   "capi",   "cli"};

std::size_t layer_of(std::string_view folder) {
  return static_cast<std::size_t>(std::find(kLayers.begin(), kLayers.end(), folder) -
                                  kLayers.begin());
}

TEST(Layers, IncludeOnlyWhatLiesBelow) {
  const fs::path source = testing::source_dir() / "src";
  const std::regex include("^#include \"([a-z_]+)/.*");
  std::size_t files = 0;
  for (const fs::directory_entry& entry : fs::recursive_directory_iterator(source)) {
    // OpenCL's sources include one another alone, by names within their backend.
    if (!entry.is_regular_file() || entry.path().extension() == ".cl") continue;
    const fs::path path = fs::relative(entry.path(), source);
    const std::size_t own = layer_of(path.begin()->string());
    ASSERT_LT(own, kLayers.size()) << path << ": the folder has no layer";
    std::ifstream stream(entry.path());
    for (std::string line; std::getline(stream, line);) {
      std::smatch found;
      if (!std::regex_match(line, found, include)) continue;
      const std::size_t used = layer_of(found[1].str());
      EXPECT_LE(used, own) << path << " includes " << line;
    }
    ++files;
  }
  EXPECT_GT(files, 500U);
}

}  // namespace
}  // namespace ridgeline
