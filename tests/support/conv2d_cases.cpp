#include "support/op_cases.h"
#include "support/window.h"

namespace ridgeline::testing {
namespace {

struct ConvCase {
  std::string name;
  Shape src;
  std::int64_t outputs;
  Conv2dAttributes attributes;
  bool big = false;
};

// Each gives a case of the forward op and of both gradients.
std::vector<ConvCase> conv_cases() {
  return {
      {"one_pixel", {1, 1, 1, 1}, 1, kernel(1, 1)},
      {"one_channel_3x3", {1, 1, 7, 5}, 3, kernel(3, 3)},
      {"pointwise_primes", {2, 7, 5, 3}, 13, kernel(1, 1)},
      {"pointwise_one_output", {3, 16, 3, 3}, 1, kernel(1, 1)},
      {"pointwise_stride_2", {2, 8, 7, 9}, 5, kernel(1, 1).stride(2)},
      {"padded_primes", {3, 5, 11, 7}, 17, kernel(3, 3).pad(1)},
      {"channels_of_16", {2, 16, 9, 9}, 16, kernel(3, 3).pad(1)},
      {"channels_off_by_one", {1, 33, 6, 5}, 31, kernel(3, 3).pad(1)},
      {"many_channels", {1, 130, 4, 3}, 70, kernel(1, 1)},
      {"few_pixels", {3, 64, 2, 2}, 70, kernel(3, 3).pad(1)},
      {"few_pixels_stride_2", {2, 64, 4, 3}, 64, kernel(3, 3).stride(2).pad(1)},
      {"tiles_of_odd_shape", {2, 17, 11, 13}, 35, kernel(3, 3).pad(1)},
      {"tiles_narrow", {6, 18, 3, 17}, 16, kernel(3, 3).pad(1)},
      {"tiles_asymmetric_padding", {3, 20, 9, 10}, 19, kernel(3, 3).pad(0, 1, 2, 1)},
      {"tiles_few_many_channels", {1, 130, 13, 15}, 140, kernel(3, 3).pad(1), true},
      // Channels in multiples of 16 bytes, in one and in several tiles of a tensor core's kernels.
      {"eights_3x3", {3, 24, 13, 9}, 40, kernel(3, 3).pad(1)},
      {"eights_pointwise", {5, 88, 7, 9}, 264, kernel(1, 1)},
      {"eights_stride_2", {2, 72, 17, 11}, 136, kernel(3, 3).stride(2).pad(1)},
      {"eights_asymmetric", {2, 16, 8, 9}, 24, kernel(3, 2).stride(1, 2).pad(0, 1, 2, 1)},
      {"eights_dilation_2", {1, 40, 12, 10}, 72, kernel(3, 3).pad(2).dilation(2, 2)},
      {"asymmetric_padding", {2, 3, 8, 9}, 5, kernel(3, 3).pad(0, 1, 2, 1)},
      {"asymmetric_stride", {2, 4, 11, 13}, 6, kernel(3, 3).stride(2, 1).pad(1)},
      {"kernel_1x5", {2, 3, 4, 11}, 7, kernel(1, 5).pad(0, 2, 0, 2)},
      {"kernel_5x1", {2, 3, 11, 4}, 7, kernel(5, 1).stride(2, 1)},
      {"kernel_2x2_stride_3", {1, 5, 11, 10}, 9, kernel(2, 2).stride(3)},
      {"kernel_4x4_stride_2", {2, 3, 10, 9}, 4, kernel(4, 4).stride(2).pad(1)},
      {"kernel_is_image", {3, 6, 5, 5}, 11, kernel(5, 5)},
      {"padding_beyond_kernel", {1, 2, 4, 3}, 3, kernel(1, 1).pad(1, 2, 1, 2)},
      {"dilation_2", {2, 3, 13, 11}, 4, kernel(3, 3).pad(2).dilation(2, 2)},
      {"dilation_3x1_stride_1x2", {1, 4, 12, 9}, 5, kernel(3, 3).stride(1, 2).dilation(3, 1)},
      {"groups_2", {2, 6, 7, 7}, 10, kernel(3, 3).pad(1).groups(2)},
      {"groups_3_pointwise", {2, 9, 5, 4}, 6, kernel(1, 1).groups(3)},
      {"groups_2_of_16", {1, 32, 6, 6}, 32, kernel(3, 3).stride(2).pad(1).groups(2)},
      {"groups_of_4", {2, 32, 6, 11}, 32, kernel(3, 3).pad(1).groups(8)},
      {"groups_of_4_stride_2", {2, 32, 7, 9}, 32, kernel(3, 3).stride(2).pad(1).groups(8)},
      {"groups_of_4_odd_count", {1, 12, 5, 7}, 12, kernel(3, 3).pad(1).groups(3)},
      {"groups_of_8", {1, 24, 9, 13}, 24, kernel(3, 3).pad(1).groups(3)},
      {"groups_of_8_stride_2", {2, 16, 9, 6}, 16, kernel(3, 3).stride(2).pad(1).groups(2)},
      {"groups_of_16", {2, 48, 4, 4}, 48, kernel(3, 3).pad(1).groups(3)},
      {"groups_of_24", {1, 48, 5, 3}, 48, kernel(3, 3).pad(1).groups(2)},
      {"groups_of_4_one_pixel", {9, 8, 1, 1}, 8, kernel(3, 3).pad(1).groups(2)},
      {"groups_of_2_to_4", {2, 10, 5, 6}, 20, kernel(3, 3).pad(1).groups(5)},
      {"groups_of_8_to_4", {1, 24, 6, 5}, 12, kernel(2, 2).stride(2).groups(3)},
      {"groups_of_4_5x5_stride_3", {1, 16, 11, 9}, 16, kernel(5, 5).stride(3).pad(2).groups(4)},
      {"groups_of_8_dilation_2", {1, 16, 8, 9}, 16, kernel(3, 3).pad(2).dilation(2, 2).groups(2)},
      {"depthwise_3x3", {2, 19, 9, 8}, 19, kernel(3, 3).pad(1).groups(19)},
      {"depthwise_3x3_of_16", {2, 16, 9, 13}, 16, kernel(3, 3).pad(1).groups(16)},
      {"depthwise_3x3_of_16_stride_2",
       {2, 16, 9, 13},
       16,
       kernel(3, 3).stride(2).pad(1).groups(16)},
      {"depthwise_5x5_stride_2", {1, 8, 11, 13}, 8, kernel(5, 5).stride(2).pad(2).groups(8)},
      {"depthwise_5x5_of_48", {2, 48, 7, 9}, 48, kernel(5, 5).pad(2).groups(48)},
      {"depthwise_7x7", {2, 20, 9, 11}, 20, kernel(7, 7).pad(3).groups(20)},
      {"depthwise_7x7_small_image", {2, 96, 2, 3}, 96, kernel(7, 7).pad(3).groups(96)},
      {"depthwise_7x7_stride_2", {1, 33, 9, 12}, 33, kernel(7, 7).stride(2).pad(3).groups(33)},
      // Several tiles of columns, segments of rows and groups of channels, none of them full.
      {"depthwise_5x5_of_37", {2, 37, 23, 16}, 37, kernel(5, 5).pad(2).groups(37), true},
      {"depthwise_5x5_of_40_stride_2",
       {2, 40, 45, 31},
       40,
       kernel(5, 5).stride(2).pad(2).groups(40),
       true},
      {"depthwise_5x5_of_33_stride_2_even",
       {1, 33, 24, 28},
       33,
       kernel(5, 5).stride(2).pad(2).groups(33),
       true},
      {"depthwise_7x7_of_34", {3, 34, 43, 15}, 34, kernel(7, 7).pad(3).groups(34), true},
      {"depthwise_7x7_one_column", {2, 64, 30, 1}, 64, kernel(7, 7).pad(3).groups(64), true},
      // More pieces of the weights' gradient than run at once.
      {"depthwise_5x5_of_1024", {3, 1024, 2, 180}, 1024, kernel(5, 5).pad(2).groups(1024), true},
      {"depthwise_multiplier_3", {1, 8, 5, 7}, 24, kernel(3, 3).stride(2).pad(1).groups(8)},
      {"depthwise_multiplier_4", {1, 9, 5, 7}, 36, kernel(5, 5).pad(2).groups(9)},
      {"depthwise_multiplier_2", {2, 5, 6, 6}, 10, kernel(3, 3).groups(5)},
      {"depthwise_dilation_2", {1, 16, 9, 9}, 16, kernel(3, 3).pad(2).dilation(2, 2).groups(16)},
      {"stem_7x7_stride_2", {1, 3, 23, 21}, 24, kernel(7, 7).stride(2).pad(3)},
      // Enough pixels to be widened to eight channels: pairs of them, odd widths, pads of both
      // kinds.
      {"stem_7x7_wide", {4, 3, 33, 31}, 24, kernel(7, 7).stride(2).pad(3), true},
      {"stem_3x3_unpadded", {2, 4, 53, 50}, 16, kernel(3, 3).stride(2), true},
      {"stem_5x5_pad_1", {3, 2, 41, 44}, 8, kernel(5, 5).stride(2).pad(1), true},
      {"stem_patches", {16, 3, 36, 37}, 24, kernel(4, 4).stride(4), true},
      {"stem_stride_1", {2, 5, 24, 25}, 16, kernel(3, 3).pad(1), true},
      {"stem_stride_3", {2, 3, 70, 71}, 13, kernel(3, 3).stride(3).pad(1), true},
      {"mnist_cnn_conv1_batch_3", {3, 1, 28, 28}, 8, kernel(3, 3)},
      {"mnist_cnn_conv2_batch_3", {3, 8, 13, 13}, 16, kernel(3, 3)},
      {"mnist_cnn_conv1", {512, 1, 28, 28}, 8, kernel(3, 3), true},
      {"mnist_cnn_conv2", {512, 8, 13, 13}, 16, kernel(3, 3), true},
      {"resnet_block", {2, 64, 14, 14}, 64, kernel(3, 3).pad(1), true},
      {"resnet_wide", {2, 128, 14, 14}, 256, kernel(3, 3).pad(1), true},
      {"resnet_stride_2", {2, 64, 28, 28}, 128, kernel(3, 3).stride(2).pad(1), true},
      {"resnet_stem", {2, 3, 64, 64}, 64, kernel(7, 7).stride(2).pad(3), true},
      {"resnet_downsample", {2, 64, 14, 14}, 128, kernel(1, 1).stride(2), true},
      {"resnext_4", {2, 128, 28, 28}, 128, kernel(3, 3).pad(1).groups(32), true},
      {"resnext_8", {2, 256, 14, 14}, 256, kernel(3, 3).pad(1).groups(32), true},
      {"resnext_16", {2, 512, 7, 7}, 512, kernel(3, 3).pad(1).groups(32), true},
      {"regnet_16_stride_2", {2, 128, 28, 28}, 128, kernel(3, 3).stride(2).pad(1).groups(8), true},
      {"convnext_depthwise", {2, 96, 28, 28}, 96, kernel(7, 7).pad(3).groups(96), true},
      {"mobilenet_expand", {2, 24, 28, 28}, 144, kernel(1, 1), true},
      {"mobilenet_depthwise",
       {2, 144, 28, 28},
       144,
       kernel(3, 3).stride(2).pad(1).groups(144),
       true},
  };
}

}  // namespace

void add_conv2d_cases(std::vector<OpCase>& cases) {
  for (const ConvCase& conv : conv_cases()) {
    Conv2dAttributes attributes = conv.attributes;
    const Shape weights = {conv.outputs, conv.src[1] / attributes.groups, attributes.kernel_h,
                           attributes.kernel_w};
    CaseBuilder forward("conv2d." + conv.name);
    const ValueId src = forward.input(conv.src), filters = forward.parameter(weights);
    const Shape dst = forward.shape(forward.node(OpKind::conv2d, {src, filters}, attributes));
    cases.push_back(forward.done(conv.big));

    CaseBuilder weights_gradient("conv2d_backward_weights." + conv.name);
    const ValueId kept = weights_gradient.input(conv.src);
    weights_gradient.node(OpKind::conv2d_backward_weights, {kept, weights_gradient.input(dst)},
                          attributes);
    cases.push_back(weights_gradient.done(conv.big));

    attributes.src_h = conv.src[2];
    attributes.src_w = conv.src[3];
    CaseBuilder data_gradient("conv2d_backward_data." + conv.name);
    const ValueId diff_dst = data_gradient.input(dst);
    data_gradient.node(OpKind::conv2d_backward_data, {diff_dst, data_gradient.parameter(weights)},
                       attributes);
    cases.push_back(data_gradient.done(conv.big));
  }
}

}  // namespace ridgeline::testing
