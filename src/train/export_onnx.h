#pragma once

// A network with its weights as an ONNX file.

#include <filesystem>
#include <string>
#include <vector>

#include "models/model.h"
#include "train/export_weights.h"

namespace ridgeline {

struct OnnxExport {
  ModelConfig model;
  const StateDict* weights = nullptr;
  std::vector<std::string> class_names = {};  // empty: none are written
  // Batch norms go into the convolutions before them, and what only training needs is left out:
  // dropout and auxiliary heads.
  bool fold_norms = false;
};

// Written beside and renamed: a failure leaves the old file as it was.
void write_onnx(const OnnxExport& network, const std::filesystem::path& path);

}  // namespace ridgeline
