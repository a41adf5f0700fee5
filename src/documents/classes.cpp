#include "documents/classes.h"

#include <fmt/core.h>

#include "base/json_text.h"

namespace ridgeline {
namespace {

using Json = nlohmann::ordered_json;

}  // namespace

std::string class_name(std::span<const std::string> names, std::int64_t label) {
  const auto index = static_cast<std::size_t>(label);
  return index < names.size() ? names[index] : fmt::format("{}", label);
}

Json confusion_json(const ConfusionMatrix& matrix, std::span<const std::string> names) {
  Json counts = Json::array(), classes = Json::array();
  for (std::int64_t label = 0; label < matrix.classes(); ++label) {
    Json row = Json::array();
    for (std::int64_t p = 0; p < matrix.classes(); ++p) row.push_back(matrix.count(label, p));
    counts.push_back(std::move(row));
    classes.push_back({{"class", label},
                       {"name", class_name(names, label)},
                       {"samples", matrix.support(label)},
                       {"precision", or_null(matrix.precision(label))},
                       {"recall", or_null(matrix.recall(label))}});
  }
  return {{"counts", std::move(counts)}, {"classes", std::move(classes)}};
}

}  // namespace ridgeline
