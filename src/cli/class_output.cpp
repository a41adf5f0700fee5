#include "cli/class_output.h"

#include <fmt/core.h>

#include "base/text.h"
#include "cli/output.h"
#include "cli/tables.h"

namespace ridgeline::cli {
namespace {

// "3 cat", or "3".
std::string label_text(std::span<const std::string> names, std::int64_t label) {
  const std::string name = class_name(names, label), number = fmt::format("{}", label);
  return name == number ? number : fmt::format("{} {}", number, name);
}

}  // namespace

std::string percent_or_na(const std::optional<double>& share) {
  return share ? percent_text(*share) : "n/a";
}

std::string confusion_text(const ConfusionMatrix& matrix, std::span<const std::string> names) {
  std::vector<std::string> header = {"true \\ predicted"};
  for (std::int64_t label = 0; label < matrix.classes(); ++label) {
    header.push_back(fmt::format("{}", label));
  }
  for (const char* column : {"samples", "precision", "recall"}) header.emplace_back(column);
  TextTable table(header, 'l' + std::string(header.size() - 1, 'r'));
  for (std::int64_t label = 0; label < matrix.classes(); ++label) {
    std::vector<std::string> row = {label_text(names, label)};
    for (std::int64_t p = 0; p < matrix.classes(); ++p) {
      row.push_back(fmt::format("{}", matrix.count(label, p)));
    }
    row.push_back(fmt::format("{}", matrix.support(label)));
    row.push_back(percent_or_na(matrix.precision(label)));
    row.push_back(percent_or_na(matrix.recall(label)));
    table.add_row(std::move(row));
  }
  return table.text();  // a part of a matrix is of no use
}

std::string per_class_text(const ConfusionMatrix& matrix, std::span<const std::string> names) {
  TextTable table({"class", "samples", "precision", "recall", "most often confused with"}, "lrrrl");
  for (std::int64_t label = 0; label < matrix.classes(); ++label) {
    if (matrix.support(label) == 0 && matrix.predicted(label) == 0) continue;
    std::int64_t worst = -1;
    for (std::int64_t p = 0; p < matrix.classes(); ++p) {
      if (p == label || matrix.count(label, p) == 0) continue;
      if (worst < 0 || matrix.count(label, p) > matrix.count(label, worst)) worst = p;
    }
    table.add_row(
        {label_text(names, label), fmt::format("{}", matrix.support(label)),
         percent_or_na(matrix.precision(label)), percent_or_na(matrix.recall(label)),
         worst < 0 ? std::string()
                   : fmt::format("{} ({})", label_text(names, worst), matrix.count(label, worst))});
  }
  return shown(table);
}

}  // namespace ridgeline::cli
