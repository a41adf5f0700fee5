// Writes the seeds of every fuzz target into a folder: FOLDER/TARGET/0, 1, ...

#include <fmt/core.h>

#include <filesystem>
#include <fstream>

#include "support/fuzz_targets.h"

int main(int argc, char** argv) {
  if (argc != 2) {
    fmt::print(stderr, "usage: fuzz_seeds FOLDER\n");
    return 2;
  }
  for (const auto& target : ridgeline::testing::fuzz_targets()) {
    const std::filesystem::path folder = std::filesystem::path(argv[1]) / target.name;
    std::filesystem::create_directories(folder);
    int number = 0;
    for (const auto& seed : target.seeds()) {
      std::ofstream(folder / std::to_string(number++), std::ios::binary)
          .write(reinterpret_cast<const char*>(seed.data()),
                 static_cast<std::streamsize>(seed.size()));
    }
    fmt::print("{}: {} seeds\n", folder.string(), number);
  }
  return 0;
}
