#pragma once

// What of a convolution's counted work and bytes a direct algorithm need not touch. The cost of the
// op counts every tap of every dst element and all of src; the taps on padding need no product, and
// a stride beyond the kernel leaves pixels of src unread.

#include "base/shape.h"
#include "ops/conv2d.h"

namespace ridgeline {

// The share of the taps that fall on pixels of src rather than on padding, 0 to 1.
[[nodiscard]] double taps_inside(const Conv2dAttributes& attributes, const Shape& src,
                                 const Shape& dst);

// The share of src's pixels under at least one tap.
[[nodiscard]] double src_pixels_read(const Conv2dAttributes& attributes, const Shape& src,
                                     const Shape& dst);

}  // namespace ridgeline
