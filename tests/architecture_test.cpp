// Code for one architecture stays in its files.

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <regex>

#include "support/source_dir.h"

namespace ridgeline {
namespace {

namespace fs = std::filesystem;

// What a compiler for another architecture does not know.
const std::regex& of_one_architecture() {
  static const std::regex words(
      R"(immintrin\.h|xmmintrin\.h|cpuid\.h|arm_neon\.h|arm_sve\.h|__x86_64__|__aarch64__|)"
      R"(__cpuid|_mm\d*_|xgetbv|rdtsc)");
  return words;
}

bool belongs_to_one(const fs::path& file) {
  const std::string stem = file.stem().string();
  return stem.ends_with("_x86") || stem.ends_with("_arm64") || file.filename() == "arch.h";
}

bool mentions(const fs::path& file) {
  std::ifstream stream(file);
  for (std::string line; std::getline(stream, line);) {
    if (std::regex_search(line, of_one_architecture())) return true;
  }
  return false;
}

TEST(Architecture, ItsInstructionsStandInItsFiles) {
  int own = 0;
  for (const auto& entry :
       fs::recursive_directory_iterator(fs::path(testing::source_dir()) / "src")) {
    const std::string type = entry.path().extension().string();
    if (type != ".h" && type != ".cpp") continue;
    if (belongs_to_one(entry.path())) {
      own += mentions(entry.path()) ? 1 : 0;
    } else {
      EXPECT_FALSE(mentions(entry.path()))
          << entry.path() << ": move this into a file named *_x86 or *_arm64";
    }
  }
  EXPECT_GE(own, 3);  // so that the search is known to find something
}

}  // namespace
}  // namespace ridgeline
