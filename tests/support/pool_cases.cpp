#include "support/op_cases.h"
#include "support/window.h"

namespace ridgeline::testing {

// Each gives a case of the forward op and of its gradient.
namespace {

PoolAttributes adaptive(std::int64_t h, std::int64_t w) {
  return {.kind = PoolKind::adaptive_average, .dst_h = h, .dst_w = w};
}

}  // namespace

void add_pool_cases(std::vector<OpCase>& cases) {
  struct PoolCase {
    std::string name;
    Shape src;
    PoolAttributes attributes;
    bool big = false;
  };
  const std::vector<PoolCase> problems = {
      {"max_one_pixel", {1, 1, 1, 1}, max_window(1, 1)},
      {"max_2x2", {2, 3, 6, 8}, max_window(2, 2).stride(2)},
      {"max_2x2_odd_size", {2, 5, 7, 5}, max_window(2, 2).stride(2)},
      {"max_2x2_ceil", {2, 5, 7, 5}, max_window(2, 2).stride(2).ceil()},
      {"max_3x3_overlapping", {2, 16, 9, 9}, max_window(3, 3).stride(2).pad(1)},
      {"max_3x3_stride_1", {1, 19, 5, 7}, max_window(3, 3).pad(1)},
      {"max_2x3_asymmetric_stride", {2, 7, 8, 11}, max_window(2, 3).stride(1, 2)},
      {"max_asymmetric_padding", {1, 4, 7, 6}, max_window(3, 3).stride(2).pad(0, 1, 1, 1)},
      {"max_dilation_2", {2, 3, 9, 11}, max_window(3, 3).stride(2).pad(1).dilation(2, 2)},
      {"max_whole_image", {2, 9, 5, 4}, max_window(5, 4)},
      {"max_window_of_272", {1, 3, 20, 18}, max_window(17, 16)},
      {"max_stride_beyond_kernel", {2, 4, 10, 10}, max_window(2, 2).stride(3)},
      {"max_mnist_cnn_pool2_batch_3", {3, 16, 11, 11}, max_window(2, 2).stride(2)},
      {"max_mnist_cnn_pool1", {512, 8, 26, 26}, max_window(2, 2).stride(2), true},
      {"max_mnist_cnn_pool2", {512, 16, 11, 11}, max_window(2, 2).stride(2), true},
      {"max_resnet_stem", {1, 64, 28, 28}, max_window(3, 3).stride(2).pad(1), true},
      {"average_one_pixel", {1, 1, 1, 1}, average_window(1, 1)},
      {"average_2x2", {2, 3, 6, 8}, average_window(2, 2).stride(2)},
      {"average_3x3_overlapping", {2, 16, 9, 9}, average_window(3, 3).stride(2).pad(1)},
      {"average_3x3_exclude_pad", {2, 5, 7, 9}, average_window(3, 3).pad(1).exclude_pad()},
      {"average_ceil", {2, 5, 7, 8}, average_window(3, 2).stride(2).pad(1).ceil()},
      {"average_ceil_exclude_pad",
       {1, 6, 6, 7},
       average_window(3, 3).stride(2).pad(1).ceil().exclude_pad()},
      {"average_asymmetric", {2, 7, 8, 11}, average_window(2, 3).stride(1, 2).pad(1, 0, 0, 2)},
      {"average_dilation_2", {1, 3, 9, 9}, average_window(2, 2).dilation(2, 2)},
      {"global_average_7x7", {2, 33, 7, 7}, average_window(7, 7)},
      {"global_average_13x13", {1, 16, 13, 13}, average_window(13, 13)},
      {"global_average_one_pixel", {3, 17, 1, 1}, average_window(1, 1)},
      {"adaptive_uneven", {2, 5, 7, 9}, adaptive(3, 4)},
      {"adaptive_7x7_of_8x8", {2, 19, 8, 8}, adaptive(7, 7)},
      {"adaptive_to_more_pixels", {2, 7, 3, 2}, adaptive(7, 5)},
      {"adaptive_to_one", {1, 16, 5, 3}, adaptive(1, 1)},
      {"adaptive_alexnet", {2, 256, 13, 13}, adaptive(6, 6), true},
  };
  for (const PoolCase& p : problems) {
    CaseBuilder forward("pool." + p.name);
    const ValueId src = forward.input(p.src, Data::distinct);
    const ValueId dst = forward.node(OpKind::pool, {src}, p.attributes);
    const Shape dst_shape = forward.shape(dst);
    const bool is_max = p.attributes.kind == PoolKind::max;
    const DType position_type = is_max ? forward.graph().value(dst + 1).spec.dtype : DType::u8;
    cases.push_back(forward.done(p.big));

    PoolAttributes attributes = p.attributes;
    attributes.src_h = p.src[2];
    attributes.src_w = p.src[3];
    CaseBuilder backward("pool_backward." + p.name);
    std::vector<ValueId> inputs = {backward.input(dst_shape)};
    if (is_max) inputs.push_back(backward.input(dst_shape, Data::positions, position_type));
    if (is_max && attributes.kernel_h * attributes.kernel_w > 16) backward.expect_zeros();
    backward.node(OpKind::pool_backward, inputs, attributes);
    cases.push_back(backward.done(p.big));
  }
}

}  // namespace ridgeline::testing
