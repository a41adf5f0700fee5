#include "peers/handover.h"

#include <stdlib.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <string>
#include <vector>

#include "base/error.h"
#include "base/folder.h"
#include "train/export_weights.h"
#include "train/safetensors.h"

namespace ridgeline {

namespace fs = std::filesystem;

TemporaryFolder::TemporaryFolder(std::string_view purpose) {
  std::error_code error;
  const fs::path parent = fs::temp_directory_path(error);
  if (error) fail("no folder for temporary files: {}", error.message());
  std::string name = (parent / fmt::format("ridgeline-{}-XXXXXX", purpose)).string();
  if (mkdtemp(name.data()) == nullptr) {
    fail("no temporary folder can be made in {}: {}", parent.string(), std::strerror(errno));
  }
  path_ = name;
}

TemporaryFolder::~TemporaryFolder() {
  if (!path_.empty()) remove_tree(path_);
}

PeerFiles::PeerFiles(const StepSpec& step, const Dataset& data, std::uint64_t seed,
                     std::int64_t batches, const WeightFile* source)
    : folder_("batches"), batches_(std::min(batches, data.count() / step.batch)) {
  ensure(batches_ >= 1 && data.images == nullptr, "a peer needs at least one batch in memory");
  const StateDict dict =
      state_dict(evaluation_graph(step).parameters, step.model.name, source, seed, 0);
  write_safetensors(weights(), dict.tensors);

  const std::int64_t count = batches_ * step.batch;
  const auto rows = static_cast<std::size_t>(count);
  const std::vector<WeightTensor> tensors = {
      {.name = "images",
       .type = WeightType::u8,
       .dims = {count, data.channels, data.height, data.width},
       .bytes = std::as_bytes(std::span(data.pixels).first(rows * data.sample_bytes()))},
      {.name = "labels",
       .type = WeightType::i32,
       .dims = {count},
       .bytes = std::as_bytes(std::span(data.labels).first(rows))}};
  write_safetensors(samples(), tensors);
}

}  // namespace ridgeline
