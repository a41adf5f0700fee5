#include "report/latex.h"

#include <fmt/core.h>

#include <algorithm>
#include <cctype>

#include "base/utf8.h"

namespace ridgeline::report {
namespace {

std::string latex_pieces(const std::vector<Piece>& pieces) {
  std::string text;
  for (const Piece& piece : pieces) {
    text += piece.strong ? fmt::format("\\textbf{{{}}}", latex_text(piece.text))
                         : latex_text(piece.text);
    if (!piece.runs.empty()) text += fmt::format("\\runs{{{}}}", latex_text(runs_text(piece.runs)));
  }
  return text;
}

// Verbatim would end where the text says so: every line is set by itself.
std::string latex_listing(const std::string& text) {
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

class LatexWriter {
 public:
  explicit LatexWriter(const PictureFiles& pictures) : pictures_(pictures) {}

  void operator()(const Paragraph& paragraph) { add(latex_pieces(paragraph.pieces) + '\n'); }
  void operator()(const Listing& listing) { add(latex_listing(listing.text)); }
  void operator()(const Notice& notice) {
    add(fmt::format("\\begin{{quote}}\\textbf{{{}: {}.}} {}\\end{{quote}}\n",
                    latex_text(notice.severity), latex_text(notice.name),
                    latex_pieces(notice.pieces)));
  }
  void operator()(const Cards& cards) {
    std::string text = "\\begin{itemize}\n";
    for (const Card& card : cards.cards) {
      text += fmt::format("\\item \\textbf{{{}.}} {}\n", latex_text(card.number),
                          latex_pieces(card.pieces));
    }
    add(text + "\\end{itemize}\n");
  }
  void operator()(const Judgement& judgement) {
    add(fmt::format("\\begin{{quote}}\\emph{{{}}}\\\\\n\\textbf{{{}.}} {}\\end{{quote}}\n",
                    latex_text(judgement.statement), latex_text(judgement.verdict),
                    latex_pieces(judgement.pieces)));
  }
  void operator()(const Table& table) { add(latex_float(table, "H")); }
  void operator()(const Figure& figure) {
    const std::string path = pictures_.path_of(figure);
    std::string caption =
        latex_caption(figure.title, figure.reading.empty() ? figure.caption
                                                           : figure.reading + ' ' + figure.caption);
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

std::string latex_caption(const std::string& title, const std::string& caption) {
  std::string text = latex_text(title);
  if (!text.empty() && std::isalnum(static_cast<unsigned char>(text.back())) != 0) text += '.';
  return caption.empty() ? text : text + ' ' + latex_text(caption);
}

std::string latex_document(const Document& document, const PictureFiles& pictures) {
  LatexWriter writer(pictures);
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
