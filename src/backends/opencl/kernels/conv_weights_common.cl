// The gradient of weights: for each tap, the product of diff_dst, transposed, and the src pixels
// that the tap sees, summed over pixels. The sum is cut into parts of whole lines, which are added
// afterwards in a fixed order: the result does not depend on who computes when.
//
// A line is one row of an image or, with images_inner, one place in all images.
#include "kernels/conv_common.cl"

typedef struct {
  Axis rows, columns;  // as in forward
  int images, groups;
  int src_channels, dst_channels;  // of one group
  int src_stride, diff_stride;     // floats from pixel to pixel
  int lines, parts, images_inner;
} Weights;

// What a tap sees of a line: `count` pixels, `*_step` floats apart.
typedef struct {
  int count, src, diff, src_step, diff_step;
} Line;

inline Line line_at(const Weights* g, int index, int tap_row, int tap_column) {
  const int rows = g->rows.count, columns = g->columns.count;
  Line line;
  int image = 0, column = 0;
  int row = g->images_inner ? index / columns : index % rows;
  const int y = g->rows.origin + row * g->rows.src_step + tap_row * g->rows.tap_step;
  const int left = g->columns.origin + tap_column * g->columns.tap_step;
  const int step = g->columns.src_step;
  if (g->images_inner) {
    column = index % columns;
    const int x = left + column * step;
    line.count = x >= 0 && x < g->columns.src ? g->images : 0;
    line.src_step = g->rows.src * g->columns.src * g->src_stride;
    line.diff_step = rows * columns * g->diff_stride;
  } else {
    image = index / rows;
    column = left < 0 ? (step - 1 - left) / step : 0;
    const int end = left < g->columns.src ? (g->columns.src - 1 - left) / step + 1 : 0;
    line.count = min(end, columns) - column;
    line.src_step = step * g->src_stride;
    line.diff_step = g->diff_stride;
  }
  if (y < 0 || y >= g->rows.src) line.count = 0;
  line.src = ((image * g->rows.src + y) * g->columns.src + left + column * step) * g->src_stride;
  line.diff = ((image * rows + row) * columns + column) * g->diff_stride;
  return line;
}

// The lines of a part.
inline int part_begin(const Weights* g, int part) {
  return (int)((long)g->lines * part / g->parts);
}
