#pragma once

// The files by which a peer gets its weights and batches: two of safetensors in a folder that goes
// away with the object.

#include <cstdint>
#include <filesystem>
#include <string_view>

#include "data/dataset.h"
#include "train/step_graph.h"
#include "train/weight_file.h"

namespace ridgeline {

// A folder of its own under the system's folder for temporary files.
class TemporaryFolder {
 public:
  explicit TemporaryFolder(std::string_view purpose);
  ~TemporaryFolder();
  TemporaryFolder(TemporaryFolder&& other) noexcept : path_(std::move(other.path_)) {
    other.path_.clear();
  }
  TemporaryFolder& operator=(TemporaryFolder&&) = delete;
  [[nodiscard]] const std::filesystem::path& path() const { return path_; }

 private:
  std::filesystem::path path_;
};

class PeerFiles {
 public:
  // Writes the initial weights of the seed, or those of a file, under our names, and as many whole
  // batches from the beginning of the data as there are, at most `batches`. REQUIRES: the pixels
  // are in memory, at least one batch of them.
  PeerFiles(const StepSpec& step, const Dataset& data, std::uint64_t seed, std::int64_t batches = 3,
            const WeightFile* source = nullptr);

  [[nodiscard]] std::filesystem::path weights() const {
    return folder_.path() / "weights.safetensors";
  }
  [[nodiscard]] std::filesystem::path samples() const {
    return folder_.path() / "batches.safetensors";
  }
  [[nodiscard]] std::int64_t batches() const { return batches_; }

 private:
  TemporaryFolder folder_;
  std::int64_t batches_ = 0;
};

}  // namespace ridgeline
