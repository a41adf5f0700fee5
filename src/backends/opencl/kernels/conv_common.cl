// A convolution in gather form: every dst pixel is a sum, over taps, of one src pixel times one
// matrix of weights. Forward is of this form; so is backward data, whose src is diff_dst and whose
// dst is diff_src. With a stride, backward data falls apart into classes of dst rows and columns
// that see the same taps; each is a launch of its own.
//
// Position i of a class is dst row first + i * dst_step; its tap t reads src row
// origin + i * src_step + t * tap_step and has row first_tap + t * kernel_step of the kernel.
#include "kernels/prelude.cl"
#include "kernels/activation.cl"

typedef struct {
  int count, first, dst_step, origin, src_step;
  int taps, tap_step, first_tap, kernel_step;
  int src, dst;  // pixels of the image along this axis
} Axis;

typedef struct {
  Axis rows, columns;
  int images, groups;
  int depth, width;            // channels of src and of dst, of one group
  int src_stride, dst_stride;  // floats from pixel to pixel
  int kernel_w;
  // Floats from depth to depth, from one position of the kernel to the next, from one panel of
  // dst channels to the next, from group to group.
  int weights_pitch, weights_tap, weights_panel, weights_group;
  int images_inner;  // neighbours among the pixels are of different images
  int biased;
  // No activation, ReLU and ReLU6 are bounds; others have their number here.
  int activation;
  float low, high, slope;
} Gather;

typedef struct {
  int image, row, column;
} Pixel;

// Pixels of one place in different images see the same taps: a block of them skips those that fall
// on padding.
inline Pixel pixel_at(const Gather* g, int index) {
  Pixel pixel;
  if (g->images_inner) {
    pixel.image = index % g->images;
    index /= g->images;
    pixel.column = index % g->columns.count;
    pixel.row = index / g->columns.count;
  } else {
    pixel.column = index % g->columns.count;
    index /= g->columns.count;
    pixel.row = index % g->rows.count;
    pixel.image = index / g->rows.count;
  }
  return pixel;
}

// The pixel behind one, without the divisions.
inline Pixel next_pixel(const Gather* g, Pixel pixel) {
  if (g->images_inner) {
    if (++pixel.image < g->images) return pixel;
    pixel.image = 0;
    if (++pixel.column < g->columns.count) return pixel;
    pixel.column = 0;
    ++pixel.row;
    return pixel;
  }
  if (++pixel.column < g->columns.count) return pixel;
  pixel.column = 0;
  if (++pixel.row < g->rows.count) return pixel;
  pixel.row = 0;
  ++pixel.image;
  return pixel;
}

inline int dst_place(const Gather* g, Pixel pixel) {
  const int row = g->rows.first + pixel.row * g->rows.dst_step;
  const int column = g->columns.first + pixel.column * g->columns.dst_step;
  return ((pixel.image * g->rows.dst + row) * g->columns.dst + column) * g->dst_stride;
}

// A sum as it is stored. NaN passes.
inline float finished(const Gather* g, float sum, float bias) {
  sum += bias;
  if (g->activation >= 0) return activated(g->activation, g->slope, sum);
  sum = sum < g->low ? g->low : sum;
  return sum > g->high ? g->high : sum;
}
