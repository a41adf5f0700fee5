// Ops that change axes, take parts, put together and pad: few of them compute anything.

#include <algorithm>
#include <array>

#include "base/error.h"
#include "onnx/importer.h"

namespace ridgeline::onnx {
namespace {

constexpr std::int64_t kLargestSize = 1 << 16;
constexpr std::size_t kMostParts = 64;  // that slices are joined to a split of

// The tensor that a value is a view of, and the value with another view of it. A normalisation that
// is not complete yet passes reshapes as well.
const Tensor* viewed(const Known& value) {
  if (const auto* tensor = std::get_if<Tensor>(&value)) return tensor;
  if (const auto* part = std::get_if<NormPart>(&value)) return &part->of;
  return nullptr;
}

Known with_view(const Known& value, View view, const std::string& layer) {
  Known made = value;
  auto* part = std::get_if<NormPart>(&made);
  Tensor& tensor = part != nullptr ? part->of : std::get<Tensor>(made);
  tensor.view = std::move(view);
  tensor.layer = layer;
  return made;
}

// The first input with its view; what is not emitted yet is now.
Known view_input(Importer& importer, const OpNode& node) {
  if (!node.has_input(0)) bad_input("its input is missing");
  const Known* value = importer.input(node, 0);
  if (viewed(*value) != nullptr) return *value;
  return importer.tensor(node, 0);
}

void give_reshaped(Importer& importer, const OpNode& node, const Known& value, const Dims& dims) {
  const View& view = viewed(value)->view;
  const std::optional<View> made = view.reshaped(dims);
  if (!made) {
    bad_input("{} as {} cuts an axis in a way that is not supported", dims_text(view.dims()),
              dims_text(dims));
  }
  importer.give(node.outputs[0], with_view(value, *made, importer.layer_of(node)));
}

// A file that was exported for one batch, or for its own number of classes, has these numbers in
// its targets.
Dims target_of(const Importer& importer, const Dims& dims, Dims target) {
  const ImportPlan& plan = importer.plan();
  if (plan.batch && !target.empty() && target[0] == *plan.batch && !dims.empty()) {
    target[0] = dims[0];
  }
  const bool others = plan.wanted_classes != 0 && plan.wanted_classes != plan.classes;
  if (others && !target.empty() && target.back() == plan.classes &&
      std::find(dims.begin(), dims.end(), plan.wanted_classes) != dims.end()) {
    target.back() = plan.wanted_classes;
  }
  return target;
}

void reshape(Importer& importer, const OpNode& node) {
  const Known value = view_input(importer, node);
  const Dims& dims = viewed(value)->view.dims();
  const Dims target = target_of(importer, dims, importer.needed_constant(node, 1).integers());
  give_reshaped(importer, node, value, reshaped(dims, target, node.integer("allowzero", 0) != 0));
}

void flatten(Importer& importer, const OpNode& node) {
  const Known value = view_input(importer, node);
  const Dims& dims = viewed(value)->view.dims();
  const auto rank = std::ssize(dims);
  std::int64_t axis = node.integer("axis", 1);
  if (axis < 0) axis += rank;
  if (axis < 0 || axis > rank) bad_input("axis {} of {}", axis, dims_text(dims));
  Dims made = {1, 1};
  for (std::int64_t i = 0; i < rank; ++i)
    made[i < axis ? 0 : 1] *= dims[static_cast<std::size_t>(i)];
  give_reshaped(importer, node, value, made);
}

void squeeze(Importer& importer, const OpNode& node) {
  const Known value = view_input(importer, node);
  const Dims& dims = viewed(value)->view.dims();
  const Array* axes = node.has_input(1) ? &importer.needed_constant(node, 1) : nullptr;
  give_reshaped(importer, node, value, squeezed(dims, axes_of(node, axes)));
}

void unsqueeze(Importer& importer, const OpNode& node) {
  const Known value = view_input(importer, node);
  const Array* given = node.has_input(1) ? &importer.needed_constant(node, 1) : nullptr;
  const std::optional<Dims> axes = axes_of(node, given);
  if (!axes) bad_input("without axes");
  give_reshaped(importer, node, value, unsqueezed(viewed(value)->view.dims(), *axes));
}

// Between the two products of an adaptive average, and behind them.
void turn_pool(Importer& importer, const OpNode& node, HalfPooled half) {
  if (node.integers("perm", {}) != Dims{0, 1, 3, 2}) {
    bad_input("of an average along one axis is not supported");
  }
  half.turned = !half.turned;
  if (half.turned || !half.height) {
    importer.give(node.outputs[0], std::move(half));
    return;
  }
  importer.give(node, importer.builder().adaptive_average_pool(half.of.id, *half.height, half.width,
                                                               importer.layer_of(node)));
}

void transpose(Importer& importer, const OpNode& node) {
  if (node.has_input(0)) {
    if (const auto* half = std::get_if<HalfPooled>(importer.input(node, 0))) {
      turn_pool(importer, node, *half);
      return;
    }
  }
  const Known value = view_input(importer, node);
  const View& view = viewed(value)->view;
  const std::size_t rank = view.dims().size();
  Dims usual;
  for (std::size_t i = rank; i-- > 0;) usual.push_back(static_cast<std::int64_t>(i));
  std::vector<std::size_t> order;
  for (const std::int64_t axis : node.integers("perm", usual)) order.push_back(axis_of(axis, rank));
  std::vector<std::size_t> sorted = order;
  std::sort(sorted.begin(), sorted.end());
  sorted.erase(std::unique(sorted.begin(), sorted.end()), sorted.end());
  if (order.size() != rank || sorted.size() != rank) bad_input("no permutation of the axes");
  importer.give(node.outputs[0], with_view(value, view.transposed(order), importer.layer_of(node)));
}

// The inputs with the channels in the same place: last, or all in our own order.
std::vector<Tensor> alike(Importer& importer, const OpNode& node) {
  std::vector<Tensor> parts;
  for (std::size_t i = 0; i < node.inputs.size(); ++i) parts.push_back(importer.tensor(node, i));
  const bool last = std::all_of(parts.begin(), parts.end(), [&](const Tensor& part) {
    const Shape& shape = importer.shape(part.id);
    return shape.rank() == 4 && part.view == View::channels_last(shape);
  });
  for (std::size_t i = 0; i < parts.size() && !last; ++i) parts[i] = importer.settled(node, i);
  return parts;
}

void concat(Importer& importer, const OpNode& node) {
  const std::vector<Tensor> parts = alike(importer, node);
  if (parts.empty()) bad_input("of nothing");
  const View& first = parts[0].view;
  const std::size_t axis = axis_of(node.integer("axis", 1), first.dims().size());
  if (first.channels() != axis) bad_input("along another axis than the channels is not supported");
  if (parts.size() == 1) {
    importer.give(node.outputs[0], parts[0]);
    return;
  }
  std::vector<ValueId> ids;
  for (const Tensor& part : parts) ids.push_back(part.id);
  const ValueId dst = importer.concat(std::move(ids), importer.layer_of(node));
  importer.give(node.outputs[0], Tensor{dst, first.on(importer.builder().shape(dst))});
}

// Parts of the channels, each with the view of the whole.
void give_parts(Importer& importer, const Tensor& whole, const std::vector<ValueId>& parts,
                const std::vector<std::string>& names) {
  for (std::size_t i = 0; i < names.size(); ++i) {
    if (names[i].empty()) continue;
    importer.give(names[i], Tensor{parts[i], whole.view.on(importer.builder().shape(parts[i]))});
  }
}

// A value whose channels can be cut along an axis of the file.
Tensor channels_along(Importer& importer, const OpNode& node, std::size_t axis) {
  Tensor src = importer.tensor(node, 0);
  const Shape& shape = importer.builder().shape(src.id);
  const bool last = shape.rank() == 4 && src.view == View::channels_last(shape);
  if (!last) src = importer.settled(node, 0);
  if (src.view.channels() != axis) {
    bad_input("along another axis than the channels is not supported");
  }
  return src;
}

void split(Importer& importer, const OpNode& node) {
  const std::size_t rank = importer.tensor(node, 0).view.dims().size();
  const std::size_t axis = axis_of(node.integer("axis", 0), rank);
  const Tensor src = channels_along(importer, node, axis);
  const Array* given = node.has_input(1) ? &importer.needed_constant(node, 1) : nullptr;
  const Dims sizes = split_sizes(node, src.view.dims()[axis], given);
  if (std::find(sizes.begin(), sizes.end(), 0) != sizes.end()) bad_input("into an empty part");
  const std::vector<ValueId> parts =
      sizes.size() == 1 ? std::vector{src.id}
                        : importer.builder().split(src.id, sizes, importer.layer_of(node));
  give_parts(importer, src, parts, node.outputs);
}

// What a Slice takes, if it is one range of one axis with step 1.
std::optional<SliceRange> only_range(const Importer& importer, const OpNode& node,
                                     const Dims& dims) {
  std::optional<SliceRange> found;
  for (const SliceRange& range : slice_ranges(node, dims, importer.constants(node, 1))) {
    if (range.step == 1 && range.begin == 0 && range.count == dims[range.axis]) continue;
    if (range.step != 1 || range.count < 1 || found) return std::nullopt;
    found = range;
  }
  return found;
}

// ShuffleNet's chunk(2) as slices that share the channels between them: one split, as PyTorch has
// it.
bool slices_are_a_split(Importer& importer, const OpNode& node, const Tensor& src,
                        std::size_t axis) {
  const Dims& dims = src.view.dims();
  const std::vector<const OpNode*> readers = importer.readers(node.inputs[0]);
  if (readers.size() > kMostParts) return false;
  std::vector<std::pair<SliceRange, const OpNode*>> slices;
  for (const OpNode* reader : readers) {
    if (reader->type != "Slice" || reader->inputs[0] != node.inputs[0] || reader->outputs.empty()) {
      continue;
    }
    for (std::size_t i = 1; i < reader->inputs.size(); ++i) {
      if (reader->has_input(i) && importer.find_constant(reader->inputs[i]) == nullptr) {
        return false;
      }
    }
    const std::optional<SliceRange> range = only_range(importer, *reader, dims);
    if (range && range->axis == axis) slices.emplace_back(*range, reader);
  }
  std::sort(slices.begin(), slices.end(),
            [](const auto& a, const auto& b) { return a.first.begin < b.first.begin; });
  std::vector<std::int64_t> sizes;
  std::vector<std::string> names;
  std::int64_t end = 0;
  for (const auto& [range, reader] : slices) {
    if (range.begin != end) return false;
    end += range.count;
    sizes.push_back(range.count);
    names.push_back(reader->outputs[0]);
  }
  if (end != dims[axis] || slices.size() < 2) return false;
  give_parts(importer, src, importer.builder().split(src.id, sizes, importer.layer_of(node)),
             names);
  for (const auto& [range, reader] : slices) importer.skip(*reader);
  return true;
}

// A part of the rows or columns: padding by less than nothing.
PadAttributes cut(const SliceRange& range, std::int64_t size) {
  const std::int64_t before = -range.begin, after = range.begin + range.count - size;
  if (range.axis == 2) return {.top = before, .bottom = after};
  return {.left = before, .right = after};
}

void slice(Importer& importer, const OpNode& node) {
  for (std::size_t i = 1; i < node.inputs.size(); ++i) {
    if (node.has_input(i)) (void)importer.needed_constant(node, i);
  }
  Tensor src = importer.tensor(node, 0);
  if (!src.view.channels()) src = importer.settled(node, 0);
  const std::vector<SliceRange> ranges =
      slice_ranges(node, src.view.dims(), importer.constants(node, 1));
  const std::string layer = importer.layer_of(node);
  for (const SliceRange& range : ranges) {
    const std::int64_t size = src.view.dims()[range.axis];
    if (range.step == 1 && range.begin == 0 && range.count == size) continue;
    if (range.step != 1 || range.count < 1) {
      bad_input("of every {}th element, {} of them", range.step, range.count);
    }
    if (src.view.channels() == range.axis && importer.builder().shape(src.id).rank() >= 2) {
      if (ranges.size() == 1 && slices_are_a_split(importer, node, src, range.axis)) return;
      const ValueId part = importer.builder().slice(src.id, range.begin, range.count, layer);
      src = {part, src.view.on(importer.builder().shape(part))};
      continue;
    }
    const ValueId image = importer.placed(src, layer);
    if (importer.builder().shape(image).rank() != 4 || range.axis < 2) {
      bad_input("along axis {} of {} is not supported", range.axis, dims_text(src.view.dims()));
    }
    src = importer.whole(importer.builder().pad(image, cut(range, size), layer));
  }
  importer.give(node.outputs[0], src);
}

// All elements in their order: PyTorch's as_strided where it changes nothing but the axes.
bool takes_all(const Dims& places, const Tensor& src) {
  if (src.view.dims() != Dims{std::ssize(places)}) return false;
  for (std::size_t i = 0; i < places.size(); ++i) {
    if (places[i] != static_cast<std::int64_t>(i)) return false;
  }
  return true;
}

// One channel, or neighbours in their order.
void gather(Importer& importer, const OpNode& node) {
  const Tensor src = importer.tensor(node, 0);
  const std::size_t axis = axis_of(node.integer("axis", 0), src.view.dims().size());
  const Array& given = importer.needed_constant(node, 1);
  Dims places = given.integers();
  if (takes_all(places, src)) {
    give_reshaped(importer, node, src, given.dims);
    return;
  }
  const std::int64_t size = src.view.dims()[axis];
  for (std::size_t i = 0; i < places.size(); ++i) {
    if (places[i] < 0) places[i] += size;
    if (places[i] < 0 || places[i] >= size || places[i] != places[0] + static_cast<int>(i)) {
      bad_input("of channels that are no neighbours is not supported");
    }
  }
  if (src.view.channels() != axis || places.empty() || given.dims.size() > 1) {
    bad_input("along another axis than the channels is not supported");
  }
  const ValueId part =
      importer.builder().slice(src.id, places[0], std::ssize(places), importer.layer_of(node));
  const Tensor made{part, src.view.on(importer.builder().shape(part))};
  if (!given.dims.empty()) {
    importer.give(node.outputs[0], made);
    return;
  }
  Dims dims = made.view.dims();
  dims.erase(dims.begin() + static_cast<std::ptrdiff_t>(axis));
  give_reshaped(importer, node, made, dims);
}

void pad(Importer& importer, const OpNode& node) {
  const std::string mode = node.text("mode", "constant");
  if (mode != "constant") bad_input("mode {} is not supported", mode);
  const Array* value = importer.constant(node, 2);
  const bool zeros = node.has_input(2) ? value != nullptr && value->number() == 0.0
                                       : node.real("value", 0.0) == 0.0;
  if (!zeros) bad_input("with other numbers than 0 is not supported");
  Dims amounts =
      node.has_input(1) ? importer.needed_constant(node, 1).integers() : node.integers("pads", {});
  const Tensor src = importer.tensor(node, 0);
  const std::size_t rank = src.view.dims().size();
  if (node.has_input(3)) {
    Dims all(2 * rank, 0);
    const Dims axes = importer.needed_constant(node, 3).integers();
    if (amounts.size() != 2 * axes.size()) bad_input("axes and amounts differ in number");
    for (std::size_t i = 0; i < axes.size(); ++i) {
      const std::size_t axis = axis_of(axes[i], rank);
      all[axis] = amounts[i];
      all[axis + rank] = amounts[i + axes.size()];
    }
    amounts = all;
  }
  if (std::all_of(amounts.begin(), amounts.end(),
                  [](std::int64_t amount) { return amount == 0; })) {
    importer.give(node.outputs[0], src);
    return;
  }
  if (rank != 4 || amounts.size() != 8 || amounts[0] != 0 || amounts[4] != 0) {
    bad_input("of other axes than those of an image is not supported");
  }
  for (const std::int64_t amount : amounts) {
    if (amount < -kLargestSize || amount > kLargestSize) bad_input("by {}", amount);
  }
  importer.give(node.outputs[0], Padded{.of = src,
                                        .amounts = {.top = amounts[2],
                                                    .left = amounts[3],
                                                    .bottom = amounts[6],
                                                    .right = amounts[7],
                                                    .channels_before = amounts[1],
                                                    .channels_behind = amounts[5]},
                                        .layer = importer.layer_of(node)});
}

// Height and width after a Resize: told, or the image's times a factor.
std::array<std::int64_t, 2> resized(const Importer& importer, const OpNode& node,
                                    const Shape& image) {
  const Array *factors = importer.constant(node, 2), *sizes = importer.constant(node, 3);
  const std::string policy = node.text("keep_aspect_ratio_policy", "stretch");
  if (node.find("axes") != nullptr || policy != "stretch") bad_input("with axes or a policy");
  std::array<std::int64_t, 2> made = {image[2], image[3]};
  if (node.has_input(3) && sizes != nullptr && sizes->elements() == 4) {
    const Dims wanted = sizes->integers();
    if (wanted[1] != image[1]) bad_input("of the channels");
    made = {wanted[2], wanted[3]};
  } else if (factors != nullptr && factors->elements() == 4) {
    const std::vector<double> numbers = factors->numbers();
    if (numbers[0] != 1.0 || numbers[1] != 1.0) bad_input("of the channels");
    for (std::size_t i = 0; i < 2; ++i) {
      const double size = static_cast<double>(made[i]) * numbers[i + 2];
      if (!(size >= 1.0 && size <= static_cast<double>(kLargestSize))) bad_input("to {}", size);
      made[i] = static_cast<std::int64_t>(size);
    }
  } else {
    bad_input("its size must be a constant");
  }
  for (const std::int64_t size : made) {
    if (size < 1 || size > kLargestSize) bad_input("to {}", size);
  }
  return made;
}

// Ours takes pixel floor(i * src / dst). Two ways to say so; for whole factors they agree.
bool is_nearest(const OpNode& node, bool whole_factors) {
  const std::string from = node.text("coordinate_transformation_mode", "half_pixel");
  const std::string to = node.text("nearest_mode", "round_prefer_floor");
  if (node.text("mode", "nearest") != "nearest") return false;
  if (from == "asymmetric" && to == "floor") return true;
  return whole_factors && from == "half_pixel" && to == "round_prefer_floor";
}

void resize(Importer& importer, const OpNode& node) {
  const ValueId src = importer.image(node, 0);
  const Shape image = importer.builder().shape(src);
  const auto [h, w] = resized(importer, node, image);
  if (!is_nearest(node, h % image[2] == 0 && w % image[3] == 0)) {
    bad_input("only the nearest pixel is supported (asymmetric, floor)");
  }
  importer.give(node, importer.builder().resize(src, h, w, importer.layer_of(node)));
}

void same(Importer& importer, const OpNode& node) {
  if (!node.has_input(0)) bad_input("its input is missing");
  importer.give(node.outputs[0], importer.known(node.inputs[0]));
}

// Training computes in the precision that is asked for, whatever the file says.
void cast(Importer& importer, const OpNode& node) {
  const auto type = static_cast<ElementType>(node.integer("to", 1));
  const bool mask = node.has_input(0) && std::holds_alternative<Mask>(*importer.input(node, 0));
  if (node.type == "Cast" && !is_real(type) && !mask) bad_input("to {}", name_of(type));
  same(importer, node);
}

struct ShapeOp {
  std::string_view type;
  Translate translate;
};
constexpr std::array<ShapeOp, 14> kShapeOps = {{
    {"Cast", cast},
    {"CastLike", cast},
    {"Concat", concat},
    {"Flatten", flatten},
    {"Gather", gather},
    {"Identity", same},
    {"Pad", pad},
    {"Reshape", reshape},
    {"Resize", resize},
    {"Slice", slice},
    {"Split", split},
    {"Squeeze", squeeze},
    {"Transpose", transpose},
    {"Unsqueeze", unsqueeze},
}};

}  // namespace

Translate find_shape_op(std::string_view type) {
  for (const ShapeOp& op : kShapeOps) {
    if (op.type == type) return op.translate;
  }
  return nullptr;
}

std::vector<std::string_view> shape_ops() {
  std::vector<std::string_view> names;
  for (const ShapeOp& op : kShapeOps) names.push_back(op.type);
  return names;
}

}  // namespace ridgeline::onnx
