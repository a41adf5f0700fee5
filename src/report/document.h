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
  bool tested = true;         // else one side of it was not measured at all: it needs one line
};

// A finding at a glance: a number, what it says, bars to see it by, and where to read on.
struct Card {
  struct Bar {
    std::string name;
    double value = 0.0;
    std::string text;  // the value as shown
  };
  std::string number;
  std::vector<Piece> pieces;
  std::vector<Bar> bars = {};
  std::string target = {};  // the id of a section, a table or a figure
};
struct Cards {
  std::vector<Card> cards;
};

using Block = std::variant<Paragraph, Listing, Notice, Judgement, Table, Figure, Cards>;

struct Section {
  std::string id;  // unique in the document: letters, digits, hyphens
  std::string title;
  std::vector<Block> blocks = {};
  std::vector<Section> sections = {};
  bool folded = false;  // on the page the title alone is shown until it is wanted
};

struct Document {
  std::string title, subtitle;
  std::string generated;  // UTC, ISO 8601
  std::string program;    // name, version, revision
  std::vector<Section> sections = {};
};

}  // namespace ridgeline::report
