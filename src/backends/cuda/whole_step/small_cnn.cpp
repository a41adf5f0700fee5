// The row for the whole training step of a small convolutional network, from grey pixels to the
// gradients of all parameters, the loss and the metrics.

#include <cuda_runtime_api.h>

#include <algorithm>
#include <array>
#include <optional>

#include "backends/cuda/common.h"
#include "backends/cuda/rows.h"
#include "backends/cuda/whole_step/small_cnn_kernels.h"
#include "backends/cuda/whole_step/step_walk.h"
#include "backends/cuda/whole_step/step_workspace.h"
#include "base/error.h"

namespace ridgeline::cuda {
namespace {

struct CnnNodes {
  NodeId normalize = kNoNode, reshape = kNoNode, reshape_backward = kNoNode;
  ConvNodes conv1, conv2;
  DenseNodes dense, logits;
  LossNodes loss;

  // Those whose outputs are gradients.
  [[nodiscard]] std::vector<NodeId> gradients() const {
    return {conv1.weights_backward,  conv1.bias_backward,    conv2.weights_backward,
            conv2.bias_backward,     dense.weights_backward, dense.bias_backward,
            logits.weights_backward, logits.bias_backward};
  }
};

std::optional<CnnNodes> find_step(const Graph& graph, NodeId first) {
  if (graph.node(first).kind != OpKind::normalize) return std::nullopt;
  CnnNodes nodes;
  nodes.normalize = first;
  StepWalk walk(graph, graph.node(first).outputs[0]);
  if (!walk.conv(nodes.conv1) || !walk.conv(nodes.conv2)) return std::nullopt;
  nodes.reshape = walk.through(OpKind::reshape);
  if (nodes.reshape == kNoNode || !walk.dense(nodes.dense) || !walk.dense(nodes.logits) ||
      nodes.dense.activation == kNoNode || nodes.logits.activation != kNoNode) {
    return std::nullopt;
  }
  if (!walk.loss(nodes.loss) || !walk.dense_backward(nodes.logits, false) ||
      !walk.dense_backward(nodes.dense, false)) {
    return std::nullopt;
  }
  nodes.reshape_backward = walk.through(OpKind::reshape);
  if (nodes.reshape_backward == kNoNode || !walk.conv_backward(nodes.conv2, false) ||
      !walk.conv_backward(nodes.conv1, true)) {
    return std::nullopt;
  }
  return nodes;
}

std::vector<NodeId> match(const Graph& graph, NodeId first) {
  const std::optional<CnnNodes> nodes = find_step(graph, first);
  if (!nodes) return {};
  std::vector<NodeId> all = {nodes->normalize, nodes->reshape, nodes->reshape_backward};
  for (const std::vector<NodeId>& some :
       {nodes->conv1.all(), nodes->conv2.all(), nodes->dense.all(), nodes->logits.all(),
        nodes->loss.all()}) {
    all.insert(all.end(), some.begin(), some.end());
  }
  return in_order(std::move(all), first);
}

const Shape& input_shape(const Graph& graph, NodeId node, std::size_t index) {
  return graph.value(graph.node(node).inputs[index]).spec.shape;
}

std::string check_conv(const Graph& graph, const ConvNodes& nodes) {
  const auto& a = std::get<Conv2dAttributes>(graph.node(nodes.conv).attributes);
  if (a.kernel_h != a.kernel_w || (a.kernel_h != 3 && a.kernel_h != 5)) {
    return fmt::format("kernel {}x{}; small_cnn_step takes 3x3 and 5x5", a.kernel_h, a.kernel_w);
  }
  if (a.stride_h != 1 || a.stride_w != 1 || a.dilation_h != 1 || a.dilation_w != 1 ||
      a.groups != 1 || a.pad_top != 0 || a.pad_left != 0 || a.pad_bottom != 0 || a.pad_right != 0) {
    return "small_cnn_step takes convolutions without stride, padding, dilation and groups";
  }
  const auto& p = std::get<PoolAttributes>(graph.node(nodes.pool).attributes);
  if (p.kind != PoolKind::max || p.kernel_h != 2 || p.kernel_w != 2 || p.stride_h != 2 ||
      p.stride_w != 2 || p.dilation_h != 1 || p.dilation_w != 1 || p.pad_top != 0 ||
      p.pad_left != 0 || p.pad_bottom != 0 || p.pad_right != 0 || p.ceil_mode) {
    return "small_cnn_step takes max pooling 2x2 with stride 2";
  }
  return {};
}

std::string check_activation(const Graph& graph, NodeId node) {
  const auto& a = std::get<ActivationAttributes>(graph.node(node).attributes);
  if (a.kind == ActivationKind::relu) return {};
  return fmt::format("{}; small_cnn_step takes relu", name_of(a.kind));
}

CnnGeometry geometry_of(const Graph& graph, const CnnNodes& nodes) {
  const Shape& pixels = input_shape(graph, nodes.normalize, 0);
  const Shape& weights2 = input_shape(graph, nodes.conv2.conv, 1);
  const Shape& logits = input_shape(graph, nodes.logits.linear, 1);
  CnnGeometry g;
  g.batch = static_cast<int>(pixels[0]);
  g.image_h = static_cast<int>(pixels[2]);
  g.image_w = static_cast<int>(pixels[3]);
  g.kernel = static_cast<int>(weights2[2]);
  g.filters1 = static_cast<int>(weights2[1]);
  g.filters2 = static_cast<int>(weights2[0]);
  g.hidden = static_cast<int>(logits[1]);
  g.classes = static_cast<int>(logits[0]);
  return g;
}

// The device's, or where there is none those of the smallest.
DeviceLimits limits_here() {
  int device = 0;
  if (cudaGetDevice(&device) == cudaSuccess) return device_limits();
  (void)cudaGetLastError();
  return {.multiprocessors = 40, .capability = 75, .shared_bytes_per_block = 64 * 1024};
}

std::string check_sizes(const Graph& graph, const CnnNodes& nodes) {
  const Shape& pixels = input_shape(graph, nodes.normalize, 0);
  const Shape& weights1 = input_shape(graph, nodes.conv1.conv, 1);
  const Shape& weights2 = input_shape(graph, nodes.conv2.conv, 1);
  const Shape& dense = input_shape(graph, nodes.dense.linear, 1);
  const Shape& logits = input_shape(graph, nodes.logits.linear, 1);
  struct Limit {
    const char* what;
    std::int64_t size, most;
  };
  for (const Limit& limit :
       {Limit{"channels", pixels[1], 1}, Limit{"rows of pixels", pixels[2], 64},
        Limit{"columns of pixels", pixels[3], 64},
        Limit{"filters", std::max(weights2[0], weights2[1]), kMaxCnnFilters},
        Limit{"features", dense[1], kMaxCnnFeatures},
        Limit{"hidden units", dense[0], kMaxCnnHidden},
        Limit{"classes", logits[0], kMaxCnnClasses}}) {
    if (limit.size <= limit.most) continue;
    return fmt::format("{} {}; small_cnn_step takes up to {}", limit.size, limit.what, limit.most);
  }
  if (weights1[2] != weights2[2]) return "the convolutions' kernels differ in size";
  if (input_shape(graph, nodes.dense.linear, 0)[0] != pixels[0]) {
    return "the reshape does not keep the samples apart";
  }
  SmallCnn net;
  net.g = geometry_of(graph, nodes);
  if (!plan_small_cnn(net, limits_here())) return "a sample does not fit the shared memory";
  return {};
}

std::string check(const Problem& problem) {
  const Graph& graph = *problem.graph;
  const CnnNodes nodes = *find_step(graph, problem.nodes[0]);
  std::string reason = check_boundary(problem, nodes.loss, nodes.gradients());
  if (reason.empty()) reason = check_normalize(graph.node(nodes.normalize));
  for (const ConvNodes& conv : {nodes.conv1, nodes.conv2}) {
    if (reason.empty()) reason = check_conv(graph, conv);
    if (reason.empty()) reason = check_activation(graph, conv.activation);
  }
  if (reason.empty()) reason = check_activation(graph, nodes.dense.activation);
  if (reason.empty()) reason = check_sizes(graph, nodes);
  return reason;
}

// The parameters in the order of the layers, weights before bias.
inline constexpr std::size_t kParameters = 8;
enum Parameter : std::size_t {
  conv1_weights,
  conv1_bias,
  conv2_weights,
  conv2_bias,
  dense_weights,
  dense_bias,
  logit_weights,
  logit_bias
};

class SmallCnnStep final : public Kernel {
 public:
  explicit SmallCnnStep(const Problem& problem) {
    const Graph& graph = *problem.graph;
    const CnnNodes nodes = *find_step(graph, problem.nodes[0]);
    net_.g = geometry_of(graph, nodes);
    ensure(plan_small_cnn(net_, device_limits()), "small_cnn_step was checked on another device");
    net_.smoothing = smoothing_of(graph, nodes.loss);
    net_.diff_weight = diff_weight_of(graph, nodes.loss);
    const PixelScale scale = pixel_scale_of(graph.node(nodes.normalize));
    net_.scale = scale.scale;
    net_.shift = scale.shift;
    find_places(problem, nodes);
    loss_.emplace(problem, nodes.loss);
    workspace_bytes = carve(nullptr, net_);
    set_layouts(*this, problem, Layout::plain());
  }

  void run(const KernelArgs& args) const override {
    SmallCnn net = net_;
    const auto parameter = [&](std::size_t index) {
      return args.inputs[parameters_[index]].as<const float>();
    };
    net.pixels = args.inputs[pixels_].as<const std::uint8_t>();
    net.labels = args.inputs[loss_->labels].as<const std::int32_t>();
    net.state = args.state;
    net.weights1 = parameter(conv1_weights);
    net.bias1 = parameter(conv1_bias);
    net.weights2 = parameter(conv2_weights);
    net.bias2 = parameter(conv2_bias);
    net.dense_weights = parameter(dense_weights);
    net.dense_bias = parameter(dense_bias);
    net.logit_weights = parameter(logit_weights);
    net.logit_bias = parameter(logit_bias);
    carve(args.workspace, net);
    launch_small_cnn_step(net, stream_of(args));
    add_up(net, args);
  }

 private:
  void find_places(const Problem& problem, const CnnNodes& nodes) {
    const Graph& graph = *problem.graph;
    pixels_ = problem.input_index(graph.node(nodes.normalize).inputs[0]);
    const std::array<NodeId, kParameters> forward = {
        nodes.conv1.conv,   nodes.conv1.bias, nodes.conv2.conv,    nodes.conv2.bias,
        nodes.dense.linear, nodes.dense.bias, nodes.logits.linear, nodes.logits.bias};
    const std::vector<NodeId> backward = nodes.gradients();
    for (std::size_t i = 0; i < kParameters; ++i) {
      parameters_[i] = problem.input_index(graph.node(forward[i]).inputs[1]);
      gradients_[i] = problem.output_index(graph.node(backward[i]).outputs[0]);
    }
  }

  // Places the step's parts of the workspace; returns the bytes they take.
  std::size_t carve(std::byte* workspace, SmallCnn& net) const {
    const std::int64_t batch = net.g.batch;
    StepWorkspace space(workspace);
    net.partials = space.take<float>(std::int64_t{net.blocks} * CnnPartials(net.g).stride);
    net.kept_features = space.take<float>(batch * feature_stride(net.g));
    net.kept_diff_hidden = space.take<float>(batch * hidden_stride(net.g));
    return space.bytes();
  }

  void add_up(const SmallCnn& net, const KernelArgs& args) const {
    const CnnGeometry& g = net.g;
    const CnnPartials partials(g);
    const auto gradient = [&](std::size_t index) {
      return args.outputs[gradients_[index]].as<float>();
    };
    PartialSums sums;
    sums.partials = net.partials;
    sums.stride = partials.stride;
    sums.parts = net.blocks;
    sums.add_segment(g.filters1 * g.taps, gradient(conv1_weights));
    sums.add_segment(g.filters1, gradient(conv1_bias));
    sums.add_segment(g.filters2 * g.filters1 * g.taps, gradient(conv2_weights));
    sums.add_segment(g.filters2, gradient(conv2_bias));
    sums.add_segment(g.hidden, gradient(dense_bias));
    sums.add_segment(g.classes * g.hidden, gradient(logit_weights));
    sums.add_segment(g.classes, gradient(logit_bias));
    LossTotals loss;
    loss.sums = net.partials + partials.loss;
    loss.stride = partials.stride;
    loss.parts = net.blocks;
    loss.rows = g.batch;
    loss.state = net.state;
    if (loss_->loss) loss.loss = args.outputs[*loss_->loss].as<float>();
    if (loss_->new_totals) {
      loss.totals = args.inputs[loss_->totals].as<const double>();
      loss.new_totals = args.outputs[*loss_->new_totals].as<double>();
    }
    launch_small_cnn_sums(net, gradient(dense_weights), sums, loss, stream_of(args));
  }

  SmallCnn net_;  // without pointers
  std::optional<LossPlaces> loss_;
  std::size_t pixels_ = 0;
  std::array<std::size_t, kParameters> parameters_{}, gradients_{};
};

std::unique_ptr<Kernel> make(const Problem& problem, std::span<const Layout>) {
  return std::make_unique<SmallCnnStep>(problem);
}

constexpr KernelRow kRows[] = {{"small_cnn_step", match, check, make}};

}  // namespace

std::span<const KernelRow> small_cnn_rows() { return kRows; }

}  // namespace ridgeline::cuda
