#pragma once

// Figures as picture files: SVG as they are drawn, PNG and PDF made from it by librsvg's
// rsvg-convert.

#include <filesystem>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "report/figure.h"

namespace ridgeline::report {

struct PictureFormats {
  bool svg = true, png = true, pdf = false;
};

struct PictureProblem {
  std::string figure;  // its id; empty: all of them
  std::string reason;  // "rsvg-convert was not found ...", or its own words
};

// Writes FOLDER/ID.svg, ID.png, ID.pdf. Gives which PNG and PDF files could not be made, and why: a
// picture that is there is whole. `progress` is called after each figure, by one thread at a time;
// when it says false, the rest is left out. Throws a failure when the disk does not take them.
[[nodiscard]] std::vector<PictureProblem> draw_pictures(
    std::span<const Figure* const> figures, const std::filesystem::path& folder,
    const PictureFormats& formats, const std::function<bool(std::size_t done)>& progress);

// Writes a drawing as the end of the file's name says: .svg, .png, .pdf; all of it or nothing.
// Throws bad_input for another, and a failure where rsvg-convert is missing or fails.
void save_picture(const std::string& svg, const std::filesystem::path& path);
void save_picture(const Figure& figure, const std::filesystem::path& path);
// Throws what save_picture() would throw for this name, before any work is done. Empty: none is
// asked for.
void check_picture(const std::filesystem::path& path);

}  // namespace ridgeline::report
