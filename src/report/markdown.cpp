#include "report/markdown.h"

#include <fmt/core.h>

#include <algorithm>
#include <cctype>

#include "base/utf8.h"

namespace ridgeline::report {
namespace {

bool is_word(char c) {
  const auto byte = static_cast<unsigned char>(c);
  return std::isalnum(byte) != 0 || byte >= 0x80;
}

// What would begin a list, a heading or a rule where a line begins.
std::string at_line_start(std::string text) {
  text.erase(0, text.find_first_not_of(' '));
  if (text.empty()) return text;
  if (std::string_view("-+=#").find(text[0]) != std::string_view::npos) return '\\' + text;
  std::size_t digits = 0;
  while (digits < text.size() && std::isdigit(static_cast<unsigned char>(text[digits])) != 0) {
    ++digits;
  }
  const bool listed = digits > 0 && digits < text.size() &&
                      (text[digits] == '.' || text[digits] == ')') &&
                      (digits + 1 == text.size() || text[digits + 1] == ' ');
  if (listed) text.insert(digits, 1, '\\');
  return text;
}

// Stars behind a full stop work only before a space or the end: else the text stays plain.
std::string strong_text(std::string_view text, char next = ' ') {
  const bool works = !text.empty() && (is_word(text.back()) || !is_word(next));
  return works ? "**" + markdown_text(text) + "**" : markdown_text(text);
}

std::string markdown_pieces(const std::vector<Piece>& pieces) {
  std::string text;
  for (const Piece& piece : pieces) {
    const std::string_view words = piece.text;
    const std::size_t first = std::min(words.find_first_not_of(' '), words.size());
    const std::size_t last = words.find_last_not_of(' ') + 1;
    const bool ends = &piece == &pieces.back() || (&piece + 1)->text.empty();
    const char next = last < words.size() || ends ? ' ' : (&piece + 1)->text.front();
    if (piece.strong && first < last) {
      text += std::string(words.substr(0, first)) +
              strong_text(words.substr(first, last - first), next) +
              std::string(words.substr(last));
    } else {
      text += markdown_text(words);
    }
    if (!piece.runs.empty()) text += fmt::format(" ({})", runs_text(piece.runs));
  }
  return at_line_start(text);
}

std::string capitalised(std::string text) {
  if (!text.empty()) {
    text[0] = static_cast<char>(std::toupper(static_cast<unsigned char>(text[0])));
  }
  return text;
}

std::string cell_text(const Cell& cell) {
  const std::string marks = note_marks(cell);
  return markdown_text(cell.text) + (marks.empty() ? "" : fmt::format(" ({})", marks));
}

// A fence longer than any in the text.
std::string markdown_listing(const std::string& text) {
  std::size_t longest = 2, run = 0;
  for (const char c : text) {
    run = c == '`' ? run + 1 : 0;
    longest = std::max(longest, run);
  }
  const std::string fence(longest + 1, '`');
  return fmt::format("{}\n{}\n{}\n", fence, valid_utf8(text), fence);
}

class MarkdownWriter {
 public:
  explicit MarkdownWriter(const PictureFiles& pictures) : pictures_(pictures) {}

  void operator()(const Paragraph& paragraph) { add(markdown_pieces(paragraph.pieces)); }
  void operator()(const Listing& listing) { add(markdown_listing(listing.text)); }
  void operator()(const Notice& notice) {
    add(fmt::format("> {} {}",
                    strong_text(fmt::format("{}: {}.", capitalised(notice.severity), notice.name)),
                    markdown_pieces(notice.pieces)));
  }
  void operator()(const Cards& cards) {
    std::string text;
    for (const Card& card : cards.cards) {
      text +=
          fmt::format("- {} {}\n", strong_text(card.number + "."), markdown_pieces(card.pieces));
    }
    add(text);
  }
  void operator()(const Judgement& judgement) {
    add(fmt::format("> *{}*  \n> {} {}", markdown_text(judgement.statement),
                    strong_text(capitalised(judgement.verdict) + "."),
                    markdown_pieces(judgement.pieces)));
  }
  void operator()(const Table& table) { add(markdown_table(table)); }
  void operator()(const Figure& figure) {
    const std::string path = pictures_.path_of(figure);
    add(strong_text(figure.title));
    if (!path.empty()) {
      add(fmt::format("![{}]({})", markdown_text(figure.title), path));
    } else {
      add(figure.empty() ? std::string("(Nothing to draw.)")
                         : fmt::format("(Not drawn: {}.)", markdown_text(why_not(figure))));
    }
    if (!figure.reading.empty()) add(at_line_start(markdown_text(figure.reading)));
    if (!figure.caption.empty()) add(at_line_start(markdown_text(figure.caption)));
    for (const std::string& note : figure.notes) add(at_line_start(markdown_text(note)));
    if (!figure.runs.empty()) add(fmt::format("Rests on {}.", runs_text(figure.runs)));
  }

  void section(const Section& section, std::size_t level) {
    add(std::string(std::min<std::size_t>(level, 6), '#') + ' ' + markdown_text(section.title));
    for (const Block& block : section.blocks) std::visit(*this, block);
    for (const Section& inner : section.sections) this->section(inner, level + 1);
  }

  void add(const std::string& block) {
    text_ += block;
    text_ += block.ends_with('\n') ? "\n" : "\n\n";
  }
  [[nodiscard]] std::string text() && {
    text_.pop_back();
    return std::move(text_);
  }

 private:
  [[nodiscard]] std::string why_not(const Figure& figure) const {
    if (!pictures_.why_none.empty()) return pictures_.why_none;
    return fmt::format("rsvg-convert could not convert {}", figure.id);
  }

  const PictureFiles& pictures_;
  std::string text_;
};

}  // namespace

std::string markdown_text(std::string_view plain) {
  const std::string text = valid_utf8(plain);
  std::string result;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    const char before = i > 0 ? text[i - 1] : ' ', after = i + 1 < text.size() ? text[i + 1] : ' ';
    if (c == '<') {
      result += "&lt;";
    } else if (c == '>') {
      result += "&gt;";
    } else if (c == '&') {
      result += "&amp;";
    } else if (std::string_view("\\`*|~$").find(c) != std::string_view::npos) {
      result += '\\';
      result += c;
    } else if (c == '_') {
      // Within a word it is a letter like others: mobilenet_v2.
      if (!is_word(before) || !is_word(after)) result += '\\';
      result += c;
    } else if ((c == '[' && after == '^') || (c == '!' && after == '[') ||
               (c == ']' && (after == '(' || after == '[' || after == ':'))) {
      result += '\\';
      result += c;
    } else {
      result += static_cast<unsigned char>(c) < 0x20 || c == 0x7f ? ' ' : c;
    }
  }
  return result;
}

std::string markdown_table(const Table& table) {
  std::string text = strong_text(table.title) + "\n\n";
  if (!table.caption.empty()) text += at_line_start(markdown_text(table.caption)) + "\n\n";
  std::string rule;
  for (const TableColumn& column : table.columns) {
    if (column.shown != Shown::column) continue;
    text += fmt::format("| {} ", markdown_text(heading_of(column)));
    rule += column.number ? "|---:" : "|---";
  }
  text += fmt::format("|\n{}|\n", rule);
  std::string last;
  for (const std::vector<Cell>& row : table.rows) {
    if (const std::string group = group_text(table, row); group != last) {
      text += fmt::format("| {} |", strong_text(group));
      text += std::string(static_cast<std::size_t>(std::ranges::count(rule, '|')) - 1, '|') + '\n';
      last = group;
    }
    for (std::size_t i = 0; i < row.size(); ++i) {
      if (table.columns[i].shown == Shown::column) text += fmt::format("| {} ", cell_text(row[i]));
    }
    text += "|\n";
  }
  for (std::size_t i = 0; i < table.notes.size(); ++i) {
    text += fmt::format("{}({}) {}{}\n", i == 0 ? "\n" : "", note_mark(i),
                        markdown_text(table.notes[i]), i + 1 < table.notes.size() ? "  " : "");
  }
  return text;
}

std::string markdown_document(const Document& document, const PictureFiles& pictures) {
  MarkdownWriter writer(pictures);
  writer.add("# " + markdown_text(document.title));
  if (!document.subtitle.empty()) writer.add(at_line_start(markdown_text(document.subtitle)));
  writer.add(fmt::format("Made {} by {}.", markdown_text(document.generated),
                         markdown_text(document.program)));
  for (const Section& section : document.sections) writer.section(section, 2);
  return std::move(writer).text();
}

}  // namespace ridgeline::report
