// Cases of linear, the elementwise ops and the ops that only move elements.

#include <fmt/core.h>

#include "support/op_cases.h"

namespace ridgeline::testing {

void add_linear_cases(std::vector<OpCase>& cases) {
  struct LinearCase {
    std::string name;
    std::int64_t rows, depth, outputs;
    bool big = false;
  };
  const std::vector<LinearCase> problems = {
      {"one_by_one", 1, 1, 1},
      {"one_row", 1, 7, 3},
      {"depth_1", 3, 1, 5},
      {"one_output", 5, 13, 1},
      {"primes", 7, 17, 11},
      {"multiples_of_16", 16, 32, 16},
      {"off_by_one", 33, 31, 29},
      {"deep", 2, 1031, 10},
      {"mnist_cnn_fc1_batch_5", 5, 400, 128},
      {"mlp_fc1_batch_37", 37, 784, 10},
      {"mnist_cnn_fc1", 512, 400, 128, true},
      {"mnist_cnn_fc2", 512, 128, 10, true},
      {"mlp_fc1", 2048, 784, 10, true},
  };
  for (const LinearCase& p : problems) {
    const Shape src = {p.rows, p.depth}, weights = {p.outputs, p.depth}, dst = {p.rows, p.outputs};
    CaseBuilder forward("linear." + p.name);
    const ValueId x = forward.input(src);
    forward.node(OpKind::linear, {x, forward.parameter(weights)});
    cases.push_back(forward.done(p.big));

    CaseBuilder data("linear_backward_data." + p.name);
    const ValueId diff_dst = data.input(dst);
    data.node(OpKind::linear_backward_data, {diff_dst, data.parameter(weights)});
    cases.push_back(data.done(p.big));

    CaseBuilder gradient("linear_backward_weights." + p.name);
    const ValueId kept = gradient.input(src);
    gradient.node(OpKind::linear_backward_weights, {kept, gradient.input(dst)});
    cases.push_back(gradient.done(p.big));
  }
}

namespace {

struct ShapeCase {
  std::string name;
  Shape shape;
  bool big = false;
};

const std::vector<ShapeCase>& shapes() {
  static const std::vector<ShapeCase> list = {
      {"one_element", {1, 1}},           {"rows", {3, 7}},
      {"long_row", {1, 1031}},           {"image", {2, 5, 3, 7}},
      {"one_channel", {3, 1, 5, 4}},     {"channels_of_16", {2, 16, 4, 4}},
      {"channels_of_33", {1, 33, 5, 3}}, {"one_pixel_each", {2, 17, 1, 1}},
  };
  return list;
}

const ShapeCase kMnistImage = {"mnist_cnn_conv2", {512, 16, 11, 11}, true};

std::vector<ShapeCase> shapes_and_big() {
  std::vector<ShapeCase> list = shapes();
  list.push_back(kMnistImage);
  return list;
}

void add_bias_cases(std::vector<OpCase>& cases) {
  for (const ShapeCase& p : shapes_and_big()) {
    CaseBuilder forward("bias." + p.name);
    const ValueId src = forward.input(p.shape);
    forward.node(OpKind::bias, {src, forward.parameter({p.shape[1]})});
    cases.push_back(forward.done(p.big));

    CaseBuilder backward("bias_backward." + p.name);
    backward.node(OpKind::bias_backward, {backward.input(p.shape)});
    cases.push_back(backward.done(p.big));
  }
}

void add_activation_case(std::vector<OpCase>& cases, const ActivationAttributes& activation,
                         const ShapeCase& p) {
  const std::string suffix = "." + std::string(name_of(activation.kind)) + "_" + p.name;
  CaseBuilder forward("activation" + suffix);
  forward.node(OpKind::activation, {forward.input(p.shape, Data::distinct)}, activation);
  cases.push_back(forward.done(p.big));

  CaseBuilder backward("activation_backward" + suffix);
  const ValueId diff_dst = backward.input(p.shape);
  const Data kept = backward_uses_src(activation.kind) ? Data::distinct : Data::activated;
  backward.node(OpKind::activation_backward, {diff_dst, backward.input(p.shape, kept)}, activation);
  // It rises from -3 to 3 alone.
  if (activation.kind == ActivationKind::hard_sigmoid) backward.expect_zeros();
  cases.push_back(backward.done(p.big));
}

void add_activation_cases(std::vector<OpCase>& cases) {
  for (const ActivationKind kind :
       {ActivationKind::relu, ActivationKind::relu6, ActivationKind::leaky_relu,
        ActivationKind::sigmoid, ActivationKind::tanh, ActivationKind::silu,
        ActivationKind::hard_sigmoid, ActivationKind::hard_swish, ActivationKind::gelu,
        ActivationKind::gelu_tanh}) {
    for (const ShapeCase& p : shapes()) {
      if (p.shape.rank() == 2 || p.name == "image") {
        add_activation_case(cases, {.kind = kind, .slope = 0.2}, p);
      }
    }
  }
  add_activation_case(cases, {}, kMnistImage);
}

void add_add_cases(std::vector<OpCase>& cases) {
  for (const ShapeCase& p : shapes_and_big()) {
    CaseBuilder builder("add." + p.name);
    const ValueId a = builder.input(p.shape);
    builder.node(OpKind::add, {a, builder.input(p.shape)});
    cases.push_back(builder.done(p.big));
  }
  CaseBuilder doubled("add.to_itself");
  const ValueId a = doubled.input({2, 5, 3, 7});
  doubled.node(OpKind::add, {a, a});
  cases.push_back(doubled.done());
  CaseBuilder losses("add.scalars");
  const ValueId loss = losses.input({});
  losses.node(OpKind::add, {loss, losses.input({})});
  cases.push_back(losses.done());
}

// From and to every float type: image, weights, and a shape that no vector fits.
void add_cast_cases(std::vector<OpCase>& cases) {
  for (const DType from : {DType::f32, DType::bf16, DType::f16}) {
    for (const DType to : {DType::f32, DType::bf16, DType::f16}) {
      if (from == to) continue;
      CaseBuilder image(fmt::format("cast.{}_to_{}_image", name_of(from), name_of(to)));
      image.node(OpKind::cast, {image.input({3, 13, 5, 7}, Data::normal, from)},
                 CastAttributes{to});
      cases.push_back(image.done());
    }
  }
  CaseBuilder weights("cast.f32_to_bf16_weights");
  weights.node(OpKind::cast, {weights.parameter({11, 5, 3, 3})}, CastAttributes{DType::bf16});
  cases.push_back(weights.done());
  CaseBuilder row("cast.f32_to_f16_row");
  row.node(OpKind::cast, {row.input({1, 1031}, Data::large)}, CastAttributes{DType::f16});
  cases.push_back(row.done());
}

void add_dropout_cases(std::vector<OpCase>& cases) {
  std::uint32_t layer = 0;
  for (const double probability : {0.5, 0.1, 0.0}) {
    for (const ShapeCase& p : shapes()) {
      // One element would be all zeros, or none, as the mask has it.
      if (p.shape.elements() < 10) continue;
      CaseBuilder builder(fmt::format("dropout.{}_percent_{}", 100 * probability, p.name));
      builder.node(OpKind::dropout, {builder.input(p.shape)},
                   DropoutAttributes{.probability = probability, .layer = ++layer});
      cases.push_back(builder.done());
    }
  }
  // Stochastic depth: enough samples that some stay and some go.
  const std::vector<std::pair<std::string, Shape>> batches = {
      {"rows", {11, 5}}, {"image", {9, 7, 3, 5}}, {"one_pixel", {8, 16, 1, 1}}};
  for (const auto& [name, shape] : batches) {
    CaseBuilder builder("dropout.per_sample_" + name);
    builder.node(OpKind::dropout, {builder.input(shape)},
                 DropoutAttributes{.probability = 0.3, .layer = ++layer, .per_sample = true});
    cases.push_back(builder.done());
  }
}

void add_normalize_cases(std::vector<OpCase>& cases) {
  const auto add_case = [&](const std::string& name, const Shape& shape,
                            const NormalizeAttributes& attributes, bool big = false) {
    CaseBuilder builder("normalize." + name);
    std::vector<ValueId> inputs = {builder.input(shape, Data::pixels, DType::u8)};
    if (attributes.flip) {
      inputs.push_back(builder.input({shape[0]}, Data::samples, DType::i32));
    }
    builder.node(OpKind::normalize, inputs, attributes);
    cases.push_back(builder.done(big));
  };
  const NormalizeAttributes mnist = {.mean = {0.1307}, .deviation = {0.3081}};
  const NormalizeAttributes colour = {.mean = {0.485, 0.456, 0.406},
                                      .deviation = {0.229, 0.224, 0.225}};
  NormalizeAttributes flipped = colour;
  flipped.flip = true;
  add_case("one_pixel", {1, 1, 1, 1}, mnist);
  add_case("mnist_batch_3", {3, 1, 28, 28}, mnist);
  add_case("colour", {2, 3, 5, 7}, colour);
  add_case("colour_flip_odd_width", {9, 3, 5, 7}, flipped);
  add_case("colour_flip_even_width", {6, 3, 4, 16}, flipped);
  add_case("mnist", {512, 1, 28, 28}, mnist, true);
}

}  // namespace

void add_elementwise_cases(std::vector<OpCase>& cases) {
  add_bias_cases(cases);
  add_activation_cases(cases);
  add_add_cases(cases);
  add_dropout_cases(cases);
  add_cast_cases(cases);
  add_normalize_cases(cases);
}

void add_shape_cases(std::vector<OpCase>& cases) {
  const auto add_concat = [&](const std::string& name, const std::vector<Shape>& inputs) {
    CaseBuilder builder("concat." + name);
    std::vector<ValueId> ids;
    for (const Shape& shape : inputs) ids.push_back(builder.input(shape));
    builder.node(OpKind::concat, ids);
    cases.push_back(builder.done());
  };
  add_concat("single", {{2, 3, 4, 5}});
  add_concat("two_of_8", {{2, 8, 5, 5}, {2, 8, 5, 5}});
  add_concat("three_uneven", {{2, 1, 3, 7}, {2, 7, 3, 7}, {2, 16, 3, 7}});
  add_concat("rows", {{3, 5}, {3, 2}, {3, 1}});
  add_concat("squeezenet_fire", {{1, 64, 13, 13}, {1, 64, 13, 13}});

  const auto add_slice = [&](const std::string& name, const Shape& src, std::int64_t begin,
                             std::int64_t channels) {
    CaseBuilder builder("slice." + name);
    builder.node(OpKind::slice, {builder.input(src)}, SliceAttributes{begin, channels});
    cases.push_back(builder.done());
  };
  add_slice("all", {2, 5, 3, 3}, 0, 5);
  add_slice("first", {2, 5, 3, 7}, 0, 2);
  add_slice("middle", {3, 24, 5, 3}, 7, 9);
  add_slice("last_one", {2, 5, 3, 7}, 4, 1);
  add_slice("rows", {3, 11}, 2, 5);

  const auto add_split = [&](const std::string& name, const Shape& src,
                             const std::vector<std::int64_t>& channels) {
    CaseBuilder builder("split." + name);
    builder.node(OpKind::split, {builder.input(src)}, SplitAttributes{channels});
    cases.push_back(builder.done());
  };
  add_split("halves", {2, 16, 5, 3}, {8, 8});
  add_split("one_part", {2, 5, 3, 3}, {5});
  add_split("uneven", {3, 13, 3, 7}, {1, 5, 7});
  add_split("rows", {3, 11}, {4, 7});
  add_split("shufflenet", {1, 116, 14, 14}, {58, 58});

  const auto add_shuffle = [&](const std::string& name, const Shape& src, std::int64_t groups) {
    CaseBuilder builder("shuffle." + name);
    builder.node(OpKind::shuffle, {builder.input(src)}, ShuffleAttributes{groups});
    cases.push_back(builder.done());
  };
  add_shuffle("two_groups", {2, 6, 3, 5}, 2);
  add_shuffle("three_of_5", {2, 15, 3, 1}, 3);
  add_shuffle("one_group", {2, 7, 3, 2}, 1);
  add_shuffle("rows", {3, 12}, 4);
  add_shuffle("shufflenet", {2, 116, 14, 14}, 2);
  add_shuffle("shufflenet_back", {1, 116, 14, 14}, 58);

  const auto add_pad = [&](const std::string& name, const Shape& src, const PadAttributes& pad) {
    CaseBuilder builder("pad." + name);
    builder.node(OpKind::pad, {builder.input(src)}, pad);
    cases.push_back(builder.done());
  };
  add_pad("one_all_around", {2, 5, 7, 6}, {1, 1, 1, 1});
  add_pad("one_side", {2, 3, 4, 5}, {0, 0, 1, 2});
  add_pad("crop", {2, 3, 7, 6}, {-1, -2, -3, 0});
  add_pad("crop_and_pad", {1, 17, 5, 4}, {-2, 1, 1, -1});
  add_pad("channels", {2, 5, 3, 3}, {.channels_before = 3, .channels_behind = 1});
  add_pad("crop_channels", {2, 20, 3, 3}, {.channels_before = -3, .channels_behind = -1});
  add_pad("rows", {3, 5}, {.channels_before = 1, .channels_behind = 3});

  const auto add_resize = [&](const std::string& name, const Shape& src, std::int64_t h,
                              std::int64_t w) {
    CaseBuilder forward("resize." + name);
    forward.node(OpKind::resize, {forward.input(src)}, ResizeAttributes{h, w});
    cases.push_back(forward.done());
    CaseBuilder backward("resize_backward." + name);
    backward.node(OpKind::resize_backward, {backward.input({src[0], src[1], h, w})},
                  ResizeAttributes{h, w, src[2], src[3]});
    cases.push_back(backward.done());
  };
  add_resize("twice", {2, 5, 3, 4}, 6, 8);
  add_resize("uneven", {1, 17, 3, 5}, 7, 8);
  add_resize("smaller", {2, 3, 7, 9}, 3, 4);
  add_resize("one_pixel", {2, 8, 1, 1}, 3, 3);
  add_resize("same", {1, 4, 3, 3}, 3, 3);

  const auto add_reshape = [&](const std::string& name, const Shape& src, const Shape& dst) {
    CaseBuilder builder("reshape." + name);
    builder.node(OpKind::reshape, {builder.input(src)}, ReshapeAttributes{dst});
    cases.push_back(builder.done());
  };
  add_reshape("flatten", {2, 5, 3, 7}, {2, 105});
  add_reshape("flatten_mnist_cnn", {8, 16, 5, 5}, {8, 400});
  add_reshape("flatten_one_pixel", {3, 17, 1, 1}, {3, 17});
  add_reshape("unflatten", {2, 105}, {2, 5, 3, 7});
}

}  // namespace ridgeline::testing
