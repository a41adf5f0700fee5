#pragma once

// A report before it is written: sections of text, tables, figures and notices. Writers (html,
// markdown, latex, csv, pictures) show the same Document; none of them computes a number.
// All strings are plain text: each writer escapes them for its own format.

#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "report/figure.h"
#include "report/table.h"

namespace ridgeline::report {

// A piece of running text. What rests on measurements names its runs: the page links them to the
// rows of the samples.
struct Piece {
  std::string text;
  std::vector<RunId> runs = {};
  bool strong = false;
};
struct Paragraph {
  std::vector<Piece> pieces;
};

// Lines as a program prints or takes them.
struct Listing {
  std::string text;
};

// Something that the reader must know before believing a number.
struct Notice {
  std::string severity;  // "note", "warning", "error"
  std::string name;      // "accuracy at chance"
  std::vector<Piece> pieces;
};

// A hypothesis and what the data say to it.
struct Judgement {
  std::string statement;
  std::string verdict;        // "confirmed", "not confirmed", "undecided"
  std::vector<Piece> pieces;  // the numbers and intervals it rests on
};

using Block = std::variant<Paragraph, Listing, Notice, Judgement, Table, Figure>;

struct Section {
  std::string id;  // unique in the document: letters, digits, hyphens
  std::string title;
  std::vector<Block> blocks = {};
  std::vector<Section> sections = {};
};

struct Document {
  std::string title, subtitle;
  std::string generated;  // UTC, ISO 8601
  std::string program;    // name, version, revision
  std::vector<Section> sections = {};
};

}  // namespace ridgeline::report
