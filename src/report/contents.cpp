#include "report/contents.h"

#include <fmt/core.h>

#include <algorithm>
#include <cctype>

namespace ridgeline::report {

std::vector<const Table*> tables_of(const Document& document) {
  std::vector<const Table*> tables;
  each_block<Table>(document.sections, [&](const Table& table) { tables.push_back(&table); });
  return tables;
}

std::vector<const Figure*> figures_of(const Document& document) {
  std::vector<const Figure*> figures;
  each_block<Figure>(document.sections, [&](const Figure& figure) {
    if (!figure.empty()) figures.push_back(&figure);
  });
  return figures;
}

std::string slug(std::string_view text) {
  std::string name;
  for (const char c : text) {
    const bool plain = (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9');
    const char lower = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
    if (plain || (c >= 'A' && c <= 'Z')) {
      name += lower;
    } else if (!name.empty() && name.back() != '-') {
      name += '-';
    }
  }
  // It becomes a file's name.
  constexpr std::size_t kMostLetters = 60;
  name.resize(std::min(name.size(), kMostLetters));
  while (!name.empty() && name.back() == '-') name.pop_back();
  return name;
}

std::string runs_text(std::vector<RunId> runs) {
  std::ranges::sort(runs);
  runs.erase(std::unique(runs.begin(), runs.end()), runs.end());
  std::string text;
  for (std::size_t first = 0; first < runs.size();) {
    std::size_t last = first;
    while (last + 1 < runs.size() && runs[last + 1] == runs[last] + 1) ++last;
    if (!text.empty()) text += ", ";
    text += std::to_string(runs[first]);
    if (last > first) text += (last > first + 1 ? "–" : ", ") + std::to_string(runs[last]);
    first = last + 1;
  }
  return text.empty() ? text : (runs.size() == 1 ? "run " : "runs ") + text;
}

std::string note_mark(std::size_t index) {
  std::string mark;
  for (++index; index > 0; index = (index - 1) / 26) {
    mark.insert(mark.begin(), static_cast<char>('a' + (index - 1) % 26));
  }
  return mark;
}

std::string note_marks(const Cell& cell) {
  std::string marks;
  for (const std::size_t note : cell.notes) marks += (marks.empty() ? "" : ",") + note_mark(note);
  return marks;
}

std::string heading_of(const TableColumn& column) {
  if (column.unit.empty()) return column.title;
  return column.title.empty() ? column.unit : fmt::format("{} ({})", column.title, column.unit);
}

std::string PictureFiles::path_of(const Figure& figure) const {
  const bool none =
      extension.empty() || figure.empty() || std::ranges::find(missing, figure.id) != missing.end();
  return none ? std::string() : fmt::format("{}/{}.{}", folder, figure.id, extension);
}

}  // namespace ridgeline::report
