#include "report/latex.h"

#include <fmt/core.h>

#include <algorithm>
#include <cctype>

#include "base/utf8.h"

namespace ridgeline::report {
namespace {

// Letters that fit side by side into a line of a table, and into a column whose words are wrapped.
constexpr std::size_t kLineLetters = 92, kWrapFrom = 26;
// Rows of a table that still fits on a page as a float.
constexpr std::size_t kFloatRows = 40;

std::size_t letters(std::string_view text) {
  return static_cast<std::size_t>(std::ranges::count_if(
      text, [](char c) { return (static_cast<unsigned char>(c) & 0xc0U) != 0x80U; }));
}

struct Columns {
  std::string format;     // of tabular
  bool too_wide = false;  // even so: to be made smaller as a whole
};

Columns columns_of(const Table& table) {
  std::vector<std::size_t> widths;
  std::size_t total = 0;
  for (std::size_t i = 0; i < table.columns.size(); ++i) {
    std::size_t width = letters(heading_of(table.columns[i]));
    for (const std::vector<Cell>& row : table.rows) {
      width = std::max(width, letters(row[i].text) + row[i].notes.size());
    }
    widths.push_back(width);
    total += width + 2;
  }
  // What wide columns of words may share, once the others have what they need.
  std::size_t wrapped = 0, rigid = 0;
  const auto wraps = [&](std::size_t i) {
    return total > kLineLetters && !table.columns[i].number && widths[i] > kWrapFrom;
  };
  for (std::size_t i = 0; i < widths.size(); ++i) (wraps(i) ? wrapped : rigid) += widths[i] + 2;
  const std::size_t room = rigid < kLineLetters ? kLineLetters - rigid : 0;
  Columns columns;
  std::size_t used = rigid;
  for (std::size_t i = 0; i < widths.size(); ++i) {
    if (!wraps(i)) {
      columns.format += table.columns[i].number ? 'r' : 'l';
      continue;
    }
    const std::size_t share = std::max(kWrapFrom, room * widths[i] / wrapped);
    used += share;
    columns.format += fmt::format(">{{\\raggedright\\arraybackslash}}p{{{:.3f}\\linewidth}}",
                                  0.92 * static_cast<double>(share) / kLineLetters);
  }
  columns.too_wide = used > kLineLetters;
  return columns;
}

std::string cell_text(const Cell& cell) {
  std::string text = latex_text(cell.text), marks;
  for (const std::size_t note : cell.notes) {
    marks += (marks.empty() ? "" : ",") + note_mark(note);
  }
  // A bracket at the beginning of a row would be taken for an argument of the line before.
  if (text.starts_with('[') || text.starts_with('*')) text = "{}" + text;
  return marks.empty() ? text : fmt::format("{}\\textsuperscript{{{}}}", text, marks);
}

std::string heading_row(const Table& table) {
  std::string text;
  for (const TableColumn& column : table.columns) {
    text += fmt::format("{}{}", text.empty() ? "{}" : " & ", latex_text(heading_of(column)));
  }
  return text + " \\\\\n";
}

std::string rows_of(const Table& table) {
  std::string text;
  for (const std::vector<Cell>& row : table.rows) {
    for (const Cell& cell : row) text += (&cell == &row.front() ? "" : " & ") + cell_text(cell);
    text += " \\\\\n";
  }
  return text;
}

std::string notes_of(const Table& table) {
  if (table.notes.empty()) return {};
  std::string text =
      "\\par\\smallskip\n\\begin{minipage}{\\linewidth}\\footnotesize\\raggedright\n";
  for (std::size_t i = 0; i < table.notes.size(); ++i) {
    text += fmt::format("\\textsuperscript{{{}}}~{}{}\n", note_mark(i), latex_text(table.notes[i]),
                        i + 1 < table.notes.size() ? "\\\\" : "");
  }
  return text + "\\end{minipage}\n";
}

std::string caption_of(const std::string& title, const std::string& caption) {
  std::string text = latex_text(title);
  if (!text.empty() && std::isalnum(static_cast<unsigned char>(text.back())) != 0) text += '.';
  return caption.empty() ? text : text + ' ' + latex_text(caption);
}

std::string float_table(const Table& table, const Columns& columns, const char* place) {
  std::string text = fmt::format(
      "\\begin{{table}}[{}]\n\\centering\\small\n\\caption{{{}}}\n\\label{{tab:{}}}\n"
      "\\vspace{{4pt}}\n",
      place, caption_of(table.title, table.caption), table.id);
  if (columns.too_wide) text += "\\resizebox{\\linewidth}{!}{%\n";
  text += fmt::format("\\begin{{tabular}}{{{}}}\n\\toprule\n{}\\midrule\n{}\\bottomrule\n",
                      columns.format, heading_row(table), rows_of(table));
  text += columns.too_wide ? "\\end{tabular}}\n" : "\\end{tabular}\n";
  return text + notes_of(table) + "\\end{table}\n";
}

// Goes on from page to page.
std::string long_table(const Table& table, const Columns& columns) {
  const std::string heading = heading_row(table);
  std::string text = fmt::format(
      "\\begingroup{}\n\\begin{{longtable}}{{{}}}\n\\caption{{{}}}\\label{{tab:{}}}\\\\\n"
      "\\toprule\n{}\\midrule\n\\endfirsthead\n\\toprule\n{}\\midrule\n\\endhead\n"
      "\\bottomrule\n\\endlastfoot\n",
      columns.too_wide ? "\\scriptsize\\setlength{\\tabcolsep}{3pt}" : "\\small", columns.format,
      caption_of(table.title, table.caption), table.id, heading, heading);
  return text + rows_of(table) + "\\end{longtable}\n" + notes_of(table) + "\\endgroup\n";
}

std::string table_text(const Table& table, const char* place) {
  const Columns columns = columns_of(table);
  return table.rows.size() > kFloatRows ? long_table(table, columns)
                                        : float_table(table, columns, place);
}

std::string pieces_text(const std::vector<Piece>& pieces) {
  std::string text;
  for (const Piece& piece : pieces) {
    text += piece.strong ? fmt::format("\\textbf{{{}}}", latex_text(piece.text))
                         : latex_text(piece.text);
    if (!piece.runs.empty()) text += fmt::format("\\runs{{{}}}", latex_text(runs_text(piece.runs)));
  }
  return text;
}

// Verbatim would end where the text says so: every line is set by itself.
std::string listing_text(const std::string& text) {
  std::string result = "\\begin{quote}\\small\\ttfamily\\raggedright\n";
  std::string line;
  const auto finish = [&] {
    std::string shown = latex_text(line);
    const std::size_t spaces = std::min(line.find_first_not_of(' '), line.size());
    shown.erase(0, spaces);
    for (std::size_t i = 0; i < spaces; ++i) shown.insert(0, "~");
    result += "\\mbox{}" + shown + "\\\\\n";
    line.clear();
  };
  for (const char c : text) {
    if (c == '\n') {
      finish();
    } else {
      line += c;
    }
  }
  if (!line.empty()) finish();
  return result + "\\end{quote}\n";
}

class Writer {
 public:
  explicit Writer(const PictureFiles& pictures) : pictures_(pictures) {}

  void operator()(const Paragraph& paragraph) { add(pieces_text(paragraph.pieces) + '\n'); }
  void operator()(const Listing& listing) { add(listing_text(listing.text)); }
  void operator()(const Notice& notice) {
    add(fmt::format("\\begin{{quote}}\\textbf{{{}: {}.}} {}\\end{{quote}}\n",
                    latex_text(notice.severity), latex_text(notice.name),
                    pieces_text(notice.pieces)));
  }
  void operator()(const Cards& cards) {
    std::string text = "\\begin{itemize}\n";
    for (const Card& card : cards.cards) {
      text += fmt::format("\\item \\textbf{{{}.}} {}\n", latex_text(card.number),
                          pieces_text(card.pieces));
    }
    add(text + "\\end{itemize}\n");
  }
  void operator()(const Judgement& judgement) {
    add(fmt::format("\\begin{{quote}}\\emph{{{}}}\\\\\n\\textbf{{{}.}} {}\\end{{quote}}\n",
                    latex_text(judgement.statement), latex_text(judgement.verdict),
                    pieces_text(judgement.pieces)));
  }
  void operator()(const Table& table) { add(table_text(table, "H")); }
  void operator()(const Figure& figure) {
    const std::string path = pictures_.path_of(figure);
    std::string caption =
        caption_of(figure.title,
                   figure.reading.empty() ? figure.caption : figure.reading + ' ' + figure.caption);
    for (const std::string& note : figure.notes) caption += ' ' + latex_text(note);
    if (!figure.runs.empty()) caption += "\\runs{" + latex_text(runs_text(figure.runs)) + '}';
    std::string body;
    if (!path.empty()) {
      // Without its extension: a PDF beside the PNG is preferred.
      body = fmt::format(
          "\\includegraphics[width=\\linewidth,height=0.8\\textheight,"
          "keepaspectratio]{{{}}}",
          path.substr(0, path.rfind('.')));
    } else {
      body = figure.empty() ? "(Nothing to draw.)"
                            : fmt::format("(Not drawn: {}.)", latex_text(pictures_.why_none.empty()
                                                                             ? "rsvg-convert failed"
                                                                             : pictures_.why_none));
    }
    add(
        fmt::format("\\begin{{figure}}[H]\n\\centering\n{}\n\\caption{{{}}}\n\\label{{fig:{}}}\n"
                    "\\end{{figure}}\n",
                    body, caption, figure.id));
  }

  void section(const Section& section, std::size_t level) {
    static const char* const names[] = {"section", "subsection", "subsubsection", "paragraph"};
    add(fmt::format("\\{}{{{}}}\\label{{sec:{}}}\n", names[std::min<std::size_t>(level, 3)],
                    latex_text(section.title), section.id));
    for (const Block& block : section.blocks) std::visit(*this, block);
    for (const Section& inner : section.sections) this->section(inner, level + 1);
  }

  void add(const std::string& block) { text_ += block + '\n'; }
  [[nodiscard]] std::string text() && { return std::move(text_); }

 private:
  const PictureFiles& pictures_;
  std::string text_;
};

constexpr const char* kPreamble =
    "\\documentclass[11pt,a4paper]{article}\n"
    "\\usepackage[utf8]{inputenc}\n"
    "\\usepackage[T1]{fontenc}\n"
    "\\IfFileExists{lmodern.sty}{\\usepackage{lmodern}}{}\n"
    "\\usepackage{textcomp}\n"
    "\\usepackage[margin=24mm]{geometry}\n"
    "\\usepackage{array,booktabs,float,longtable,graphicx}\n"
    "\\usepackage{hyperref}\n"
    "\\DeclareGraphicsExtensions{.pdf,.png}\n"
    "\\newcommand{\\runs}[1]{~{\\scriptsize[#1]}}\n"
    "\\setlength{\\parindent}{0pt}\\setlength{\\parskip}{6pt}\n"
    "\\sloppy\n";

}  // namespace

std::string latex_table(const Table& table) {
  return fmt::format(
             "% {}\n% Needs: \\usepackage{{array,booktabs,longtable,graphicx,textcomp}}, "
             "\\usepackage[T1]{{fontenc}}\n",
             table.id) +
         table_text(table, "htbp");
}

std::string latex_document(const Document& document, const PictureFiles& pictures) {
  Writer writer(pictures);
  writer.add(kPreamble);
  writer.add(fmt::format(
      "\\title{{{}{}}}\n\\author{{}}\n\\date{{{}\\\\{{\\small made by {}}}}}\n"
      "\\begin{{document}}\n\\maketitle\n",
      latex_text(document.title),
      document.subtitle.empty() ? std::string()
                                : fmt::format("\\\\\\large {}", latex_text(document.subtitle)),
      latex_text(document.generated), latex_text(document.program)));
  for (const Section& section : document.sections) writer.section(section, 0);
  writer.add("\\end{document}");
  return std::move(writer).text();
}

}  // namespace ridgeline::report
