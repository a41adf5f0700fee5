// Tables in LaTeX: as wide as a page at most, and as long as they must be.

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <numeric>

#include "report/latex.h"

namespace ridgeline::report {
namespace {

// Sizes of type, and the letters that fit side by side into a line of a table. Smaller than the
// last nothing is set: a table that is still too wide goes on below itself with its other columns.
struct Type {
  const char* name;
  std::size_t letters;
};
constexpr std::array<Type, 3> kTypes = {
    {{"\\small", 92}, {"\\footnotesize", 99}, {"\\scriptsize", 108}}};
constexpr std::size_t kMost = kTypes.back().letters;
constexpr std::size_t kNarrow = 14, kWrapFrom = 26;  // least width of words, and what is wrapped
constexpr std::size_t kGap = 2;                      // between columns
// Lines of a table that still fits on a page as a float.
constexpr std::size_t kFloatLines = 40;

std::size_t letters(std::string_view text) {
  return static_cast<std::size_t>(std::ranges::count_if(
      text, [](char c) { return (static_cast<unsigned char>(c) & 0xc0U) != 0x80U; }));
}

// Where a name without spaces may be broken.
bool breaks_after(char c) { return std::string_view(" _-/:=,.").find(c) != std::string_view::npos; }

// Of the pieces that cannot be broken.
std::size_t longest_piece(std::string_view text) {
  std::size_t longest = 0;
  for (std::size_t begin = 0; begin < text.size();) {
    std::size_t end = begin;
    while (end < text.size() && !breaks_after(text[end])) ++end;
    longest = std::max(longest, letters(text.substr(begin, end + 1 - begin)));
    begin = end + 1;
  }
  return longest;
}

// "1,107" and "[1,098–1,115]".
std::pair<std::string, std::string> split_interval(const Cell& cell) {
  const std::size_t at = cell.low && cell.high ? cell.text.find(" [") : std::string::npos;
  if (at == std::string::npos) return {cell.text, {}};
  return {cell.text.substr(0, at), cell.text.substr(at + 1)};
}

// How far a table was pressed together.
enum class Pressed {
  no,        // headings and cells in one line each
  headings,  // words of headings below each other, long words of cells wrapped
  intervals  // and intervals below their numbers
};

std::size_t width_of(const Table& table, std::size_t column, Pressed pressed) {
  const TableColumn& head = table.columns[column];
  std::size_t width = pressed == Pressed::no
                          ? letters(heading_of(head))
                          : std::max(longest_piece(head.title), letters(head.unit) + 2);
  for (const std::vector<Cell>& row : table.rows) {
    const auto [value, interval] = split_interval(row[column]);
    const std::size_t marks = 2 * row[column].notes.size();
    width = std::max(width, pressed == Pressed::intervals
                                ? std::max(letters(value) + marks, letters(interval))
                                : letters(row[column].text) + marks);
  }
  return width;
}

// One table, or a part of one that is too wide.
struct Layout {
  std::vector<std::size_t> columns;
  std::vector<std::size_t> widths = {};
  Pressed pressed = Pressed::no;
  std::size_t lines = 0;
  std::size_t total() const {
    return std::accumulate(widths.begin(), widths.end(), kGap * widths.size());
  }
};

// Gives words what numbers leave, if that is enough for them.
Layout laid_out(const Table& table, const std::vector<std::size_t>& columns, Pressed pressed) {
  Layout layout{.columns = columns, .pressed = pressed};
  std::size_t wrapped = 0, rigid = 0;
  const auto wraps = [&](std::size_t i) {
    return pressed != Pressed::no && !table.columns[columns[i]].number &&
           layout.widths[i] > kWrapFrom;
  };
  for (const std::size_t column : columns) {
    layout.widths.push_back(width_of(table, column, pressed));
    (wraps(layout.widths.size() - 1) ? wrapped : rigid) += layout.widths.back() + kGap;
  }
  const std::size_t room = rigid < kMost ? kMost - rigid : 0;
  std::vector<std::size_t> widths = layout.widths;
  for (std::size_t i = 0; i < columns.size(); ++i) {
    if (!wraps(i) || layout.total() <= kMost) continue;
    std::size_t least = kNarrow;
    for (const std::vector<Cell>& row : table.rows) {
      least = std::max(least, std::min(longest_piece(row[columns[i]].text), kWrapFrom));
    }
    widths[i] = std::min(layout.widths[i],
                         std::max(least, room * (layout.widths[i] + kGap) / wrapped - kGap));
  }
  std::string last;
  for (const std::vector<Cell>& row : table.rows) {
    std::string group = group_text(table, row);
    layout.lines += group != last ? 1 : 0;
    last = std::move(group);
    std::size_t most = 1;
    for (std::size_t i = 0; i < columns.size(); ++i) {
      const std::size_t two = pressed == Pressed::intervals && row[columns[i]].low ? 2 : 1;
      const std::size_t wide = std::max<std::size_t>(widths[i], 1);
      most = std::max({most, two, wraps(i) ? letters(row[columns[i]].text) / wide + 1 : 1});
    }
    layout.lines += most;
  }
  layout.widths = std::move(widths);
  return layout;
}

// As few parts as possible; each begins with the column that names the rows.
std::vector<Layout> layouts_of(const Table& table) {
  std::vector<std::size_t> shown;
  for (std::size_t i = 0; i < table.columns.size(); ++i) {
    if (table.columns[i].shown == Shown::column) shown.push_back(i);
  }
  for (const Pressed pressed : {Pressed::no, Pressed::headings, Pressed::intervals}) {
    Layout layout = laid_out(table, shown, pressed);
    const std::size_t most = pressed == Pressed::no ? kTypes.front().letters : kMost;
    if (layout.total() <= most || shown.size() < 2) return {std::move(layout)};
  }
  std::vector<Layout> parts;
  for (std::size_t next = 1; next < shown.size();) {
    std::vector<std::size_t> columns = {shown.front(), shown[next++]};
    for (; next < shown.size(); ++next) {
      columns.push_back(shown[next]);
      if (laid_out(table, columns, Pressed::intervals).total() <= kMost) continue;
      columns.pop_back();
      break;
    }
    parts.push_back(laid_out(table, columns, Pressed::intervals));
  }
  return parts;
}

const char* type_of(const Layout& layout) {
  const auto* fits = std::ranges::find_if(
      kTypes, [&](const Type& type) { return layout.total() <= type.letters; });
  return fits == kTypes.end() ? kTypes.back().name : fits->name;
}

bool is_wrapped(const Table& table, const Layout& layout, std::size_t i) {
  return layout.pressed != Pressed::no && !table.columns[layout.columns[i]].number &&
         width_of(table, layout.columns[i], layout.pressed) > kWrapFrom;
}

std::string format_of(const Table& table, const Layout& layout) {
  std::string format;
  for (std::size_t i = 0; i < layout.columns.size(); ++i) {
    if (is_wrapped(table, layout, i)) {
      format += fmt::format(">{{\\raggedright\\arraybackslash}}p{{{:.3f}\\linewidth}}",
                            0.92 * static_cast<double>(layout.widths[i]) /
                                static_cast<double>(std::max(layout.total(), kTypes[0].letters)));
    } else {
      format += table.columns[layout.columns[i]].number ? 'r' : 'l';
    }
  }
  return format;
}

// Names without spaces may be broken behind their marks.
std::string breakable_text(std::string_view text) {
  std::string result;
  for (std::size_t begin = 0; begin < text.size();) {
    std::size_t end = begin;
    while (end < text.size() && !breaks_after(text[end])) ++end;
    result += latex_text(text.substr(begin, end + 1 - begin));
    if (end + 1 < text.size() && text[end] != ' ') result += "\\allowbreak{}";
    begin = end + 1;
  }
  return result;
}

std::string cell_text(const Cell& cell, Pressed pressed, bool wrapped) {
  const auto [value, interval] = split_interval(cell);
  const bool below = pressed == Pressed::intervals && !interval.empty();
  std::string text = wrapped ? breakable_text(cell.text) : latex_text(below ? value : cell.text);
  // A bracket at the beginning of a row would be taken for an argument of the line before.
  if (text.starts_with('[') || text.starts_with('*')) text = "{}" + text;
  const std::string marks = note_marks(cell);
  if (!marks.empty()) text += fmt::format("\\textsuperscript{{{}}}", marks);
  return below ? fmt::format("\\shortstack[r]{{{}\\\\{{}}{}}}", text, latex_text(interval)) : text;
}

std::string heading_text(const TableColumn& column, Pressed pressed) {
  const std::string text = heading_of(column);
  if (pressed == Pressed::no) return latex_text(text);
  std::string lines;
  for (std::size_t begin = 0; begin < text.size();) {
    const std::size_t end = std::min(text.find(' ', begin), text.size());
    lines += (lines.empty() ? "" : "\\\\{}") + latex_text(text.substr(begin, end - begin));
    begin = end + 1;
  }
  return fmt::format("\\shortstack[{}]{{{}}}", column.number ? 'r' : 'l', lines);
}

std::string heading_row(const Table& table, const Layout& layout) {
  std::string text;
  for (const std::size_t column : layout.columns) {
    text += (text.empty() ? "{}" : " & ") + heading_text(table.columns[column], layout.pressed);
  }
  return text + " \\\\\n";
}

std::string rows_of(const Table& table, const Layout& layout) {
  std::string text, last;
  for (const std::vector<Cell>& row : table.rows) {
    if (const std::string group = group_text(table, row); group != last) {
      text +=
          fmt::format("\\multicolumn{{{}}}{{@{{}}p{{0.9\\linewidth}}}}{{\\textbf{{{}}}}} \\\\\n",
                      layout.columns.size(), latex_text(group));
      last = group;
    }
    for (std::size_t i = 0; i < layout.columns.size(); ++i) {
      text += (i == 0 ? "" : " & ") +
              cell_text(row[layout.columns[i]], layout.pressed, is_wrapped(table, layout, i));
    }
    text += " \\\\\n";
  }
  return text;
}

std::string notes_of(const Table& table) {
  if (table.notes.empty()) return {};
  std::string text = "\\par\\smallskip\n{\\footnotesize\\raggedright\n";
  for (std::size_t i = 0; i < table.notes.size(); ++i) {
    text +=
        fmt::format("\\textsuperscript{{{}}}~{}\\par\n", note_mark(i), latex_text(table.notes[i]));
  }
  return text + "}\n";
}

// A float, or what goes on from page to page.
std::string part_text(const Table& table, const Layout& layout, std::size_t part,
                      const char* place) {
  const std::string caption =
      part == 1 ? latex_caption(table.title, table.caption)
                : latex_caption(table.title, fmt::format("Part {}: more columns.", part));
  const std::string label = part == 1 ? table.id : fmt::format("{}-{}", table.id, part);
  const std::string heading = heading_row(table, layout), format = format_of(table, layout);
  const std::string type = fmt::format("{}\\setlength{{\\tabcolsep}}{{{}pt}}", type_of(layout),
                                       layout.pressed == Pressed::no ? 5 : 3);
  if (layout.lines <= kFloatLines) {
    return fmt::format(
        "\\begin{{table}}[{}]\n\\centering{}\n\\caption{{{}}}\n\\label{{tab:{}}}\n"
        "\\vspace{{4pt}}\n\\begin{{tabular}}{{{}}}\n\\toprule\n{}\\midrule\n{}\\bottomrule\n"
        "\\end{{tabular}}\n{}\\end{{table}}\n",
        place, type, caption, label, format, heading, rows_of(table, layout), notes_of(table));
  }
  return fmt::format(
      "\\begingroup{}\\setlength{{\\LTcapwidth}}{{\\linewidth}}\n\\begin{{longtable}}{{{}}}\n"
      "\\caption{{{}}}\\label{{tab:{}}}\\\\\n\\toprule\n{}\\midrule\n\\endfirsthead\n"
      "\\toprule\n{}\\midrule\n\\endhead\n\\bottomrule\n\\endlastfoot\n{}\\end{{longtable}}\n"
      "{}\\endgroup\n",
      type, format, caption, label, heading, heading, rows_of(table, layout), notes_of(table));
}

}  // namespace

std::string latex_float(const Table& table, const char* place) {
  std::string text;
  std::size_t part = 0;
  for (const Layout& layout : layouts_of(table)) text += part_text(table, layout, ++part, place);
  return text;
}

std::string latex_table(const Table& table) {
  return fmt::format(
             "% {}\n% Needs: \\usepackage{{array,booktabs,longtable,textcomp}}, "
             "\\usepackage[T1]{{fontenc}}\n",
             table.id) +
         latex_float(table, "htbp");
}

}  // namespace ridgeline::report
