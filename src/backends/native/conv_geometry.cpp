#include "backends/native/conv_geometry.h"

#include <algorithm>
#include <cstring>

namespace ridgeline::native::conv {
namespace {

// One axis of a phase: which kernel positions contribute, and from where.
struct AxisTap {
  std::int64_t offset = 0, kernel = 0;
};

std::vector<AxisTap> forward_axis(std::int64_t kernel, std::int64_t dilation, std::int64_t pad) {
  std::vector<AxisTap> taps;
  for (std::int64_t k = 0; k < kernel; ++k) taps.push_back({k * dilation - pad, k});
  return taps;
}

// diff_src pixel i takes from diff_dst pixel (i + pad - k * dilation) / stride where that is whole.
std::vector<AxisTap> backward_axis(std::int64_t kernel, std::int64_t dilation, std::int64_t pad,
                                   std::int64_t stride, std::int64_t remainder) {
  std::vector<AxisTap> taps;
  for (std::int64_t k = kernel - 1; k >= 0; --k) {
    const std::int64_t distance = remainder + pad - k * dilation;
    if (distance % stride == 0) taps.push_back({distance / stride, k});
  }
  return taps;
}

std::vector<Tap> cross(const std::vector<AxisTap>& ys, const std::vector<AxisTap>& xs,
                       std::int64_t kernel_w) {
  std::vector<Tap> taps;
  for (const AxisTap& y : ys) {
    for (const AxisTap& x : xs) {
      taps.push_back({y.offset, x.offset, y.kernel * kernel_w + x.kernel});
    }
  }
  return taps;
}

bool leaves(std::int64_t count, std::int64_t step, std::int64_t offset, std::int64_t size) {
  return offset < 0 || (count - 1) * step + offset >= size;
}

void finish(Geometry& geometry) {
  bool first = true;
  for (const Phase& phase : geometry.phases) {
    geometry.rows = std::max(geometry.rows, phase.rows);
    geometry.cols = std::max(geometry.cols, phase.cols);
    for (const Tap& tap : phase.taps) {
      geometry.dy_min = first ? tap.dy : std::min(geometry.dy_min, tap.dy);
      geometry.dy_max = first ? tap.dy : std::max(geometry.dy_max, tap.dy);
      geometry.dx_min = first ? tap.dx : std::min(geometry.dx_min, tap.dx);
      geometry.dx_max = first ? tap.dx : std::max(geometry.dx_max, tap.dx);
      first = false;
      geometry.padded = geometry.padded ||
                        leaves(phase.rows, geometry.src_step_y, tap.dy, geometry.src_h) ||
                        leaves(phase.cols, geometry.src_step_x, tap.dx, geometry.src_w);
    }
  }
}

// Rows of src that `rows` rows of dst read.
std::int64_t src_rows_of(const Geometry& geometry, std::int64_t rows) {
  std::int64_t last = geometry.dy_min;
  for (const Phase& phase : geometry.phases) {
    const std::int64_t first = (std::min(rows, phase.rows) - 1) * geometry.src_step_y;
    for (const Tap& tap : phase.taps) last = std::max(last, first + tap.dy);
  }
  return last - geometry.dy_min + 1;
}

void size_bands(const Geometry& geometry, Bands& bands) {
  bands.src_rows = src_rows_of(geometry, bands.rows);
  bands.src_cols =
      (geometry.cols - 1) * geometry.src_step_x + geometry.dx_max - geometry.dx_min + 1;
  bands.copied = geometry.padded;
  bands.pixel_pitch = geometry.src_channels;
}

}  // namespace

Geometry forward_geometry(const Conv2dAttributes& a, const Shape& src, const Shape& dst) {
  Geometry g;
  g.images = src[0];
  g.groups = a.groups;
  g.kernel_area = a.kernel_h * a.kernel_w;
  g.src_channels = src[1];
  g.src_h = src[2];
  g.src_w = src[3];
  g.dst_channels = dst[1];
  g.dst_h = dst[2];
  g.dst_w = dst[3];
  g.src_step_y = a.stride_h;
  g.src_step_x = a.stride_w;
  g.phases.push_back({0, 0, g.dst_h, g.dst_w,
                      cross(forward_axis(a.kernel_h, a.dilation_h, a.pad_top),
                            forward_axis(a.kernel_w, a.dilation_w, a.pad_left), a.kernel_w)});
  g.weights = {.group = g.dst_group() * g.src_group() * g.kernel_area,
               .out = g.src_group() * g.kernel_area,
               .in = g.kernel_area};
  finish(g);
  return g;
}

Geometry backward_data_geometry(const Conv2dAttributes& a, const Shape& diff_dst,
                                const Shape& diff_src) {
  Geometry g;
  g.images = diff_dst[0];
  g.groups = a.groups;
  g.kernel_area = a.kernel_h * a.kernel_w;
  g.src_channels = diff_dst[1];
  g.src_h = diff_dst[2];
  g.src_w = diff_dst[3];
  g.dst_channels = diff_src[1];
  g.dst_h = diff_src[2];
  g.dst_w = diff_src[3];
  g.dst_step_y = a.stride_h;
  g.dst_step_x = a.stride_w;
  for (std::int64_t y = 0; y < std::min(a.stride_h, g.dst_h); ++y) {
    for (std::int64_t x = 0; x < std::min(a.stride_w, g.dst_w); ++x) {
      g.phases.push_back(
          {y, x, (g.dst_h - y - 1) / a.stride_h + 1, (g.dst_w - x - 1) / a.stride_w + 1,
           cross(backward_axis(a.kernel_h, a.dilation_h, a.pad_top, a.stride_h, y),
                 backward_axis(a.kernel_w, a.dilation_w, a.pad_left, a.stride_w, x), a.kernel_w)});
    }
  }
  g.weights = {.group = g.dst_group() * g.src_group() * g.kernel_area,
               .out = g.kernel_area,
               .in = g.dst_group() * g.kernel_area};
  finish(g);
  return g;
}

Geometry without_padded_rows(const Geometry& geometry) {
  Geometry result = geometry;
  result.phases.clear();
  result.rows = result.cols = result.dy_min = result.dy_max = result.dx_min = result.dx_max = 0;
  result.padded = false;
  for (const Phase& phase : geometry.phases) {
    const auto taps_of = [&](std::int64_t row) {
      std::vector<Tap> taps;
      for (const Tap& tap : phase.taps) {
        const std::int64_t y = row * geometry.src_step_y + tap.dy;
        if (y >= 0 && y < geometry.src_h) taps.push_back(tap);
      }
      return taps;
    };
    for (std::int64_t begin = 0, end = 0; begin < phase.rows; begin = end) {
      Phase part{phase.first_y + begin * geometry.dst_step_y, phase.first_x, 0, phase.cols,
                 taps_of(begin)};
      for (end = begin + 1; end < phase.rows && taps_of(end) == part.taps;) ++end;
      part.rows = end - begin;
      for (Tap& tap : part.taps) tap.dy += begin * geometry.src_step_y;
      result.phases.push_back(std::move(part));
    }
  }
  finish(result);
  return result;
}

Geometry without_unseen_taps(Geometry geometry) {
  const auto hits = [](std::int64_t count, std::int64_t step, std::int64_t offset,
                       std::int64_t size) {
    for (std::int64_t i = 0; i < count; ++i) {
      if (i * step + offset >= 0 && i * step + offset < size) return true;
    }
    return false;
  };
  for (Phase& phase : geometry.phases) {
    std::erase_if(phase.taps, [&](const Tap& tap) {
      return !hits(phase.rows, geometry.src_step_y, tap.dy, geometry.src_h) ||
             !hits(phase.cols, geometry.src_step_x, tap.dx, geometry.src_w);
    });
  }
  return geometry;
}

std::int64_t products_of(const Geometry& geometry) {
  std::int64_t products = 0;
  for (const Phase& phase : geometry.phases) {
    products += phase.rows * phase.cols * static_cast<std::int64_t>(phase.taps.size());
  }
  return products;
}

std::int64_t products_inside(const Geometry& geometry) {
  const auto inside = [](std::int64_t count, std::int64_t step, std::int64_t offset,
                         std::int64_t size) {
    std::int64_t hits = 0;
    for (std::int64_t i = 0; i < count; ++i) {
      if (i * step + offset >= 0 && i * step + offset < size) ++hits;
    }
    return hits;
  };
  std::int64_t products = 0;
  for (const Phase& phase : geometry.phases) {
    for (const Tap& tap : phase.taps) {
      products += inside(phase.rows, geometry.src_step_y, tap.dy, geometry.src_h) *
                  inside(phase.cols, geometry.src_step_x, tap.dx, geometry.src_w);
    }
  }
  return products;
}

Bands make_image_bands(const Geometry& geometry, std::int64_t images) {
  Bands bands;
  bands.rows = geometry.rows;
  bands.images = images;
  bands.count = (geometry.images + images - 1) / images;
  size_bands(geometry, bands);
  return bands;
}

Bands make_bands(const Geometry& geometry, std::int64_t pixels, std::int64_t at_least) {
  Bands bands;
  const std::int64_t total = geometry.images * geometry.rows;
  const std::int64_t wanted = std::max<std::int64_t>(1, pixels / geometry.cols);
  const std::int64_t most = std::max<std::int64_t>(1, total / std::max<std::int64_t>(1, at_least));
  const std::int64_t rows = std::min(wanted, most);
  if (rows >= geometry.rows) {
    return make_image_bands(geometry, std::min(rows / geometry.rows, geometry.images));
  }
  // Even cuts: 14 rows in pieces of up to 5 become 5 + 5 + 4.
  bands.per_image = (geometry.rows + rows - 1) / rows;
  bands.rows = (geometry.rows + bands.per_image - 1) / bands.per_image;
  bands.per_image = (geometry.rows + bands.rows - 1) / bands.rows;
  bands.count = geometry.images * bands.per_image;
  size_bands(geometry, bands);
  return bands;
}

Band band_at(const Geometry& geometry, const Bands& bands, std::int64_t index) {
  if (bands.per_image == 1) {
    const std::int64_t image = index * bands.images;
    return {image, std::min(bands.images, geometry.images - image), 0, geometry.rows};
  }
  const std::int64_t row = index % bands.per_image * bands.rows;
  return {index / bands.per_image, 1, row, std::min(bands.rows, geometry.rows - row)};
}

SrcLayout src_layout(const Geometry& geometry, const Bands& bands, const Strides& strides) {
  if (!bands.copied) return {strides[0], strides[2], strides[3], 0, 0};
  const std::int64_t row_pitch = bands.src_cols * bands.pixel_pitch;
  return {bands.src_rows * row_pitch, row_pitch, bands.pixel_pitch, geometry.dy_min,
          geometry.dx_min};
}

std::int64_t band_floats(const Bands& bands) {
  if (!bands.copied) return 0;
  const std::int64_t floats = bands.images * bands.src_rows * bands.src_cols * bands.pixel_pitch;
  return (floats + 15) / 16 * 16;
}

const float* place_band(const Geometry& geometry, const Bands& bands, const SrcLayout& layout,
                        const Band& band, const float* src, const Strides& strides, float* buffer) {
  const float* images = src + band.image * strides[0];
  if (!bands.copied) return images + band.row * geometry.src_step_y * strides[2];

  const std::int64_t channels = geometry.src_channels, pitch = bands.pixel_pitch;
  const std::int64_t rows = src_rows_of(geometry, band.rows);
  const std::int64_t top = band.row * geometry.src_step_y + geometry.dy_min;
  // Columns [left, right) of a buffer row lie inside src.
  const std::int64_t left = std::clamp<std::int64_t>(-geometry.dx_min, 0, bands.src_cols);
  const std::int64_t right =
      std::clamp<std::int64_t>(geometry.src_w - geometry.dx_min, left, bands.src_cols);
  const auto bytes = [](std::int64_t floats) {
    return static_cast<std::size_t>(floats) * sizeof(float);
  };
  for (std::int64_t image = 0; image < band.images; ++image) {
    for (std::int64_t row = 0; row < rows; ++row) {
      float* to = buffer + image * layout.image_pitch + row * layout.row_pitch;
      const std::int64_t y = top + row;
      if (y < 0 || y >= geometry.src_h) {
        std::memset(to, 0, bytes(layout.row_pitch));
        continue;
      }
      const float* from =
          images + image * strides[0] + y * strides[2] + (left + geometry.dx_min) * strides[3];
      std::memset(to, 0, bytes(left * pitch));
      if (strides[3] == channels && pitch == channels) {
        std::memcpy(to + left * pitch, from, bytes((right - left) * channels));
      } else {
        for (std::int64_t x = left; x < right; ++x, from += strides[3]) {
          std::memcpy(to + x * pitch, from, bytes(channels));
        }
      }
      std::memset(to + right * pitch, 0, bytes((bands.src_cols - right) * pitch));
    }
  }
  return buffer;
}

}  // namespace ridgeline::native::conv
