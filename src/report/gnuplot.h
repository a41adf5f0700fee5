#pragma once

// Figures as picture files, drawn by gnuplot: one process draws them all.

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
  std::string reason;  // "gnuplot was not found ...", or gnuplot's own words
};

// Writes FOLDER/ID.svg, ID.png, ID.pdf. Gives what could not be drawn, and why: a picture that is
// there is whole. `progress` is called after each figure; when it says false, the rest is left out.
// Throws a failure when the disk does not take them.
[[nodiscard]] std::vector<PictureProblem> draw_pictures(
    std::span<const Figure* const> figures, const std::filesystem::path& folder,
    const PictureFormats& formats, const std::function<bool(std::size_t done)>& progress);

}  // namespace ridgeline::report
