#pragma once

// A convolution in gather form: every dst pixel is a sum, over taps, of one src pixel times one
// matrix of weights. Forward and backward data are both of this form, so both run on the same
// kernels; in backward data "src" is diff_dst and "dst" is diff_src.
//
// With a stride, backward data falls apart into phases: the dst pixels whose row and column have
// the same remainder see the same taps, and only taps that hit a diff_dst pixel are listed, so no
// product with an inserted zero is ever computed. Forward has one phase.

#include <cstdint>
#include <span>
#include <vector>

#include "base/shape.h"
#include "base/tensor.h"
#include "ops/conv2d.h"

namespace ridgeline::native::conv {

struct Tap {
  std::int64_t dy = 0, dx = 0;  // src pixel relative to (row * src_step_y, column * src_step_x)
  std::int64_t kernel = 0;      // position in the weights: kh * kernel_w + kw

  friend bool operator==(const Tap&, const Tap&) = default;
};

struct Phase {
  std::int64_t first_y = 0, first_x = 0;  // dst pixel of row 0, column 0
  std::int64_t rows = 0, cols = 0;
  std::vector<Tap> taps;  // ascending (dy, dx)
};

// Where weights[out channel][in channel][kernel] lies in the plain weights, within a group.
struct WeightStrides {
  std::int64_t group = 0, out = 0, in = 0;
};

struct Geometry {
  std::int64_t images = 0, groups = 1, kernel_area = 1;
  std::int64_t src_h = 0, src_w = 0, src_channels = 0;
  std::int64_t dst_h = 0, dst_w = 0, dst_channels = 0;
  std::int64_t src_step_y = 1, src_step_x = 1, dst_step_y = 1, dst_step_x = 1;
  std::vector<Phase> phases;
  WeightStrides weights;
  std::int64_t rows = 0, cols = 0;  // of the largest phase
  std::int64_t dy_min = 0, dy_max = 0, dx_min = 0, dx_max = 0;
  bool padded = false;  // some tap reads outside src, where zeros are

  [[nodiscard]] std::int64_t src_group() const { return src_channels / groups; }
  [[nodiscard]] std::int64_t dst_group() const { return dst_channels / groups; }
};

[[nodiscard]] Geometry forward_geometry(const Conv2dAttributes& attributes, const Shape& src,
                                        const Shape& dst);
[[nodiscard]] Geometry backward_data_geometry(const Conv2dAttributes& attributes,
                                              const Shape& diff_dst, const Shape& diff_src);

// The same with phases of rows that see the same taps: those at the top and the bottom get phases
// of their own, without the taps that fall on padding. For bands of whole images.
[[nodiscard]] Geometry without_padded_rows(const Geometry& geometry);
// The same without the taps that fall on padding for every pixel: large kernels on small images.
[[nodiscard]] Geometry without_unseen_taps(Geometry geometry);
// Multiply-adds of one image for one pair of channels: all that the phases list, and those of them
// that do not fall on padding.
[[nodiscard]] std::int64_t products_of(const Geometry& geometry);
[[nodiscard]] std::int64_t products_inside(const Geometry& geometry);

// How the rows of a geometry are cut into pieces of work: some rows of one image, or some whole
// images. The shape of a band, and so every offset inside it, is the same for all bands; the last
// one may be shorter.
struct Bands {
  std::int64_t rows = 1, images = 1;  // of a full band
  std::int64_t per_image = 1, count = 1;
  std::int64_t src_rows = 0, src_cols = 0;  // the part of src a full band of one image reads
  bool copied = false;                      // to a buffer with zeros around, else read in place
  std::int64_t pixel_pitch = 0;             // of the copy
};

struct Band {
  std::int64_t image = 0, images = 1, row = 0, rows = 1;
};

// Bands of about `pixels` dst pixels (per phase), at least `at_least` of them where possible.
[[nodiscard]] Bands make_bands(const Geometry& geometry, std::int64_t pixels,
                               std::int64_t at_least);
// Bands of so many whole images.
[[nodiscard]] Bands make_image_bands(const Geometry& geometry, std::int64_t images);
[[nodiscard]] Band band_at(const Geometry& geometry, const Bands& bands, std::int64_t index);

// How the kernels see the src of a band: row r, column c, tap (dy, dx) of an image lies at
// (r * src_step_y + dy - dy_origin) * row_pitch + (c * src_step_x + dx - dx_origin) * pixel_pitch.
struct SrcLayout {
  std::int64_t image_pitch = 0, row_pitch = 0, pixel_pitch = 0, dy_origin = 0, dx_origin = 0;

  [[nodiscard]] std::int64_t tap_offset(const Tap& tap) const {
    return (tap.dy - dy_origin) * row_pitch + (tap.dx - dx_origin) * pixel_pitch;
  }
};

[[nodiscard]] SrcLayout src_layout(const Geometry& geometry, const Bands& bands,
                                   const Strides& strides);

// Floats of the buffer that a copied band needs; 0 when bands are read in place.
[[nodiscard]] std::int64_t band_floats(const Bands& bands);

// Where the band's src begins: in the tensor, or in `buffer` after a copy with zeros around.
[[nodiscard]] const float* place_band(const Geometry& geometry, const Bands& bands,
                                      const SrcLayout& layout, const Band& band, const float* src,
                                      const Strides& strides, float* buffer);

}  // namespace ridgeline::native::conv
