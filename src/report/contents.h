#pragma once

// What a Document holds, in its order, and words that all of its writers share.

#include <string>
#include <string_view>
#include <vector>

#include "report/document.h"

namespace ridgeline::report {

// All blocks of a kind, in their order.
template <typename Kind, typename Visit>
void each_block(const std::vector<Section>& sections, const Visit& visit) {
  for (const Section& section : sections) {
    for (const Block& block : section.blocks) {
      if (const auto* one = std::get_if<Kind>(&block)) visit(*one);
    }
    each_block<Kind>(section.sections, visit);
  }
}
[[nodiscard]] std::vector<const Table*> tables_of(const Document& document);
// Those that have something to draw.
[[nodiscard]] std::vector<const Figure*> figures_of(const Document& document);

// Letters, digits and hyphens, for ids and names of files: "mnist_cnn b64" becomes "mnist-cnn-b64".
[[nodiscard]] std::string slug(std::string_view text);

// "run 3", "runs 1–4, 7": what a statement rests on.
[[nodiscard]] std::string runs_text(std::vector<RunId> runs);

// a, b, ... z, aa: the mark of a table's nth footnote.
[[nodiscard]] std::string note_mark(std::size_t index);

// "a,c": the marks of the cell's footnotes; empty: none.
[[nodiscard]] std::string note_marks(const Cell& cell);

// "throughput (img/s)"
[[nodiscard]] std::string heading_of(const TableColumn& column);

// How the writers of files find the pictures.
struct PictureFiles {
  std::string folder = "figures";
  std::string extension;                  // of those to show: "svg"; empty: there are none
  std::string why_none;                   // "rsvg-convert was not found"
  std::vector<std::string> missing = {};  // ids of figures that could not be drawn

  // "figures/roofline.svg"; empty: the figure has no picture.
  [[nodiscard]] std::string path_of(const Figure& figure) const;
};

}  // namespace ridgeline::report
