#include "support/op_runner.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <memory>
#include <optional>

#include "base/error.h"
#include "base/parallel.h"
#include "devices/device.h"
#include "support/guarded_tensor.h"
#include "support/worst_difference.h"

namespace ridgeline::testing {
namespace {

using TensorPtr = std::shared_ptr<GuardedTensor>;

// One way of running a case.
struct Variant {
  int threads = 2;
  LayoutKind offered = LayoutKind::plain;  // how images lie when a kernel is made
  bool slices = false;                     // where the kernel has the trait
  bool in_place = false;                   // where the kernel has the trait
  ValueId unread = kNoValue;               // an output that is not read
  std::uint8_t poison = 0xFF;              // a NaN in every float type

  [[nodiscard]] std::string text() const {
    std::string text = fmt::format("{} threads, offered {}", threads,
                                   offered == LayoutKind::nhwc ? "nhwc" : "plain");
    if (slices) text += ", slices";
    if (in_place) text += ", in place";
    if (unread != kNoValue) text += fmt::format(", value {} unread", unread);
    return text;
  }
};

// Rows of a batch, as opposed to weights, statistics and labels: what a plan may lay out freely
// and cut out of a wider value.
bool is_activation(const Graph& graph, ValueId id) {
  const Value& value = graph.value(id);
  if (!is_float(value.spec.dtype) || value.spec.shape.rank() < 2) return false;
  if (value.producer == kNoNode) return value.role == Role::input;
  switch (graph.node(value.producer).kind) {
    case OpKind::layer_norm:
      return id == graph.node(value.producer).outputs[0];
    case OpKind::cast:
      return is_activation(graph, graph.node(value.producer).inputs[0]);
    case OpKind::conv2d_backward_weights:
    case OpKind::linear_backward_weights:
    case OpKind::sgd:
    case OpKind::adam:
      return false;
    default:
      return true;
  }
}

std::vector<Layout> offered_layouts(const Problem& problem, LayoutKind kind) {
  std::vector<Layout> layouts;
  for (const ValueId id : problem.inputs) {
    const bool image =
        is_activation(*problem.graph, id) && problem.graph->value(id).spec.shape.rank() == 4;
    layouts.push_back(image && kind == LayoutKind::nhwc ? Layout::nhwc() : Layout::plain());
  }
  return layouts;
}

// Copies between a plain tensor and one in the provider's own layout.
void reorder(const Backend& backend, GuardedTensor& from, GuardedTensor& to) {
  const Tensor source = from.tensor(), target = to.tensor();
  const std::unique_ptr<Kernel> kernel =
      backend.make_reorder(source.spec, source.layout, target.layout);
  ensure(kernel != nullptr, "{} cannot reorder {} from {} to {}", backend.name,
         source.spec.shape.text(), source.layout.text(), target.layout.text());
  GuardedBytes workspace(kernel->workspace_bytes, 0xFF);
  StepState state;
  kernel->run({{&source, 1}, {&target, 1}, workspace.data(), &state});
  ensure(from.damage().empty() && to.damage().empty() && workspace.intact(),
         "the reorder from {} to {} {}", source.layout.text(), target.layout.text(),
         "wrote outside its buffers");
}

void put(const Backend& backend, GuardedTensor& tensor, const HostValue& value) {
  if (tensor.tensor().layout.kind() != LayoutKind::own) return tensor.write(value);
  GuardedTensor plain(value.spec, Layout::plain(), {}, 0xFF);
  plain.write(value);
  reorder(backend, plain, tensor);
}

HostValue get(const Backend& backend, GuardedTensor& tensor) {
  if (tensor.tensor().layout.kind() != LayoutKind::own) return tensor.read();
  GuardedTensor plain(tensor.tensor().spec, Layout::plain(), {}, 0xFF);
  reorder(backend, tensor, plain);
  return plain.read();
}

// Where a backend computes; made once.
Device& device_of(const Backend& backend) {
  // Never destroyed: what a driver keeps for a thread (Oclgrind its calls) goes before static
  // variables.
  static auto& devices = *new std::map<std::string, std::unique_ptr<Device>>;
  std::unique_ptr<Device>& device = devices[std::string(backend.device)];
  if (device == nullptr) device = make_device(std::string(backend.device));
  return *device;
}

// Copies of host buffers on a device, each with its guards and at a 64-byte boundary as there.
class Mirror {
 public:
  explicit Mirror(Device& device) : device_(device) {}

  void add(GuardedBytes& bytes) {
    if (places_.contains(&bytes)) return;
    // The data's own address is what must be aligned.
    const std::size_t offset = bytes.data_offset();
    const std::size_t lead = (kAlignment - offset % kAlignment) % kAlignment;
    places_[&bytes] = size_ + lead;
    size_ += (lead + bytes.storage().size() + kAlignment - 1) / kAlignment * kAlignment;
  }
  void upload() {
    memory_ = DeviceMemory(device_, size_ + sizeof(StepState));
    for (const auto& [bytes, place] : places_) {
      device_.upload(memory_.data() + place, bytes->storage().data(), bytes->storage().size());
    }
    device_.synchronize();
  }
  void download() {
    for (const auto& [bytes, place] : places_) {
      device_.download(bytes->storage().data(), memory_.data() + place, bytes->storage().size());
    }
    device_.synchronize();
  }
  // The device's address of what lies at `host` within a buffer.
  std::byte* at(GuardedBytes& bytes, const std::byte* host) const {
    return memory_.data() + places_.at(&bytes) + (host - bytes.storage().data());
  }
  [[nodiscard]] StepState* state() const {
    return reinterpret_cast<StepState*>(memory_.data() + size_);
  }

 private:
  static constexpr std::size_t kAlignment = 64;

  Device& device_;
  DeviceMemory memory_;
  std::map<GuardedBytes*, std::size_t> places_;
  std::size_t size_ = 0;
};

// A kernel with everything it needs to run.
struct Prepared {
  const KernelRow* row = nullptr;
  Problem problem;
  std::unique_ptr<Kernel> kernel;
  std::vector<TensorPtr> inputs, outputs;  // an updated or in-place output is its input's tensor
  std::vector<char> overwritten;           // inputs that an output shares
  std::unique_ptr<GuardedBytes> workspace;

  // Runs the kernel `times` over on its device; returns seconds.
  double run(Device& device, StepState& state, int times = 1) const {
    Mirror mirror(device);
    const bool on_host = device.kind() == "cpu";
    for (const auto* tensors : {&inputs, &outputs}) {
      for (const TensorPtr& tensor : *tensors) {
        if (tensor != nullptr && !on_host) mirror.add(tensor->bytes());
      }
    }
    if (!on_host) {
      mirror.add(*workspace);
      mirror.upload();
    }
    const auto placed = [&](const TensorPtr& of) {
      Tensor tensor = of->tensor();
      if (!on_host) tensor.data = mirror.at(of->bytes(), tensor.data);
      return tensor;
    };
    std::vector<Tensor> sources, targets;
    for (const TensorPtr& input : inputs) sources.push_back(placed(input));
    for (std::size_t i = 0; i < outputs.size(); ++i) {
      targets.push_back(outputs[i] != nullptr ? placed(outputs[i]) : Tensor{});
      targets.back().spec = problem.output(i);
      targets.back().layout = kernel->output_layouts[i];
    }
    KernelArgs args{sources, targets, workspace->data(), &state, device.queue()};
    if (!on_host) {
      args.workspace = mirror.at(*workspace, workspace->data());
      args.state = mirror.state();
      device.upload(reinterpret_cast<std::byte*>(args.state), &state, sizeof(state));
    }
    const double seconds = device.time([&] {
      for (int i = 0; i < times; ++i) device.launch(*kernel, args);
    });
    if (!on_host) {
      mirror.download();
      device.download(&state, reinterpret_cast<const std::byte*>(args.state), sizeof(state));
      device.synchronize();
    }
    return seconds / times;
  }
};

// The distance of 1 to the next number.
double epsilon_of(DType dtype) {
  if (dtype == DType::bf16) return 0x1p-7;
  return dtype == DType::f16 ? 0x1p-10 : 0x1p-23;
}

// The distance of 0 to the next number, where that counts.
double smallest_of(DType dtype) { return dtype == DType::f16 ? 0x1p-24 : 0.0; }

bool is_product(OpKind kind) {
  switch (kind) {
    case OpKind::conv2d:
    case OpKind::conv2d_backward_data:
    case OpKind::conv2d_backward_weights:
    case OpKind::linear:
    case OpKind::linear_backward_data:
    case OpKind::linear_backward_weights:
      return true;
    default:
      return false;
  }
}

Gap gap_for(const Graph& graph, ValueId id, const Variant& variant, const Kernel& kernel) {
  if (!variant.slices || !kernel.traits.slices || !is_activation(graph, id)) return {};
  return {.before = 3 + id % 2, .behind = 1 + id % 3};
}

// The input whose memory an output takes, or nothing.
std::optional<std::size_t> shared_input(const Prepared& p, std::size_t output,
                                        const Variant& variant) {
  const ValueId updated = p.problem.graph->value(p.problem.outputs[output]).version_of;
  if (updated != kNoValue) return p.problem.input_index(updated);
  if (!variant.in_place || !p.kernel->traits.in_place) return std::nullopt;
  // The first output that is like input 0.
  for (std::size_t o = 0; o <= output; ++o) {
    const bool alike = p.problem.input(0) == p.problem.output(o) &&
                       p.kernel->input_layouts[0] == p.kernel->output_layouts[o];
    if (alike) return o == output ? std::optional<std::size_t>(0) : std::nullopt;
  }
  return std::nullopt;
}

Prepared prepare(const Backend& backend, const Graph& graph, const Tile& tile,
                 const HostValues& values, const Variant& variant) {
  Prepared p;
  p.row = tile.row;
  p.problem = make_problem(graph, tile.nodes);
  p.kernel = tile.row->make(p.problem, offered_layouts(p.problem, variant.offered));
  ensure(p.kernel != nullptr, "{} made no kernel", tile.row->name);
  ensure(p.kernel->input_layouts.size() == p.problem.inputs.size() &&
             p.kernel->output_layouts.size() == p.problem.outputs.size(),
         "{} does not give a layout for each boundary value", tile.row->name);
  for (std::size_t i = 0; i < p.problem.inputs.size(); ++i) {
    const ValueId id = p.problem.inputs[i];
    p.inputs.push_back(
        std::make_shared<GuardedTensor>(p.problem.input(i), p.kernel->input_layouts[i],
                                        gap_for(graph, id, variant, *p.kernel), variant.poison));
    put(backend, *p.inputs.back(), values[static_cast<std::size_t>(id)]);
    p.inputs.back()->remember();
  }
  p.overwritten.assign(p.inputs.size(), 0);
  for (std::size_t i = 0; i < p.problem.outputs.size(); ++i) {
    const ValueId id = p.problem.outputs[i];
    if (const auto shared = shared_input(p, i, variant)) {
      p.outputs.push_back(p.inputs[*shared]);
      p.overwritten[*shared] = 1;
    } else if (id == variant.unread) {
      p.outputs.push_back(nullptr);
    } else {
      p.outputs.push_back(
          std::make_shared<GuardedTensor>(p.problem.output(i), p.kernel->output_layouts[i],
                                          gap_for(graph, id, variant, *p.kernel), variant.poison));
    }
  }
  p.workspace = std::make_unique<GuardedBytes>(p.kernel->workspace_bytes, variant.poison);
  return p;
}

// One case on one backend, run in many variants.
class CaseRun {
 public:
  CaseRun(const Backend& backend, const OpCase& op_case)
      : backend_(backend), case_(op_case), expected_(expected_of(op_case)) {
    for (std::size_t id = 0; id < op_case.graph.nodes().size(); ++id) {
      const Cost cost = op_case.graph.cost(static_cast<NodeId>(id));
      std::int64_t written = 1;
      for (const ValueId output : op_case.graph.nodes()[id].outputs) {
        written = std::max(written, op_case.graph.value(output).spec.shape.elements());
      }
      // Operations that go into one element. Their roundings add up like a random walk; kernels
      // keep several partial sums, so a very long sum does not mean a very long walk.
      const double length = static_cast<double>(cost.flops) / static_cast<double>(written);
      roundings_ += std::sqrt(std::clamp(length, 1.0, 1024.0));
    }
    count_narrow_roundings();
  }

  // What the kernels can do decides which variants are worth running.
  struct Abilities {
    bool slices = false, in_place = false;
    std::vector<std::string> layouts;  // of all boundary values, in order
  };

  Abilities run(const Variant& variant, CheckResult& result, HostValues* first = nullptr) {
    set_thread_count(variant.threads);
    const Graph graph =
        variant.unread == kNoValue ? case_.graph : without_output(case_.graph, variant.unread);
    Abilities abilities;
    HostValues values = inputs_as(expected_.values, graph);
    const auto report = [&](const std::string& what) {
      if (result.failures.size() < 8) {
        result.failures.push_back(fmt::format("{} [{}]", what, variant.text()));
      }
    };
    bool deterministic = true;
    StepState state = case_.state;
    for (const Tile& tile : testing::tile(backend_, graph).tiles) {
      const Prepared p = prepare(backend_, graph, tile, values, variant);
      (void)p.run(device_of(backend_), state);
      abilities.slices |= p.kernel->traits.slices;
      abilities.in_place |= p.kernel->traits.in_place;
      deterministic &= p.kernel->traits.deterministic;
      for (const auto* layouts : {&p.kernel->input_layouts, &p.kernel->output_layouts}) {
        for (const Layout& layout : *layouts) abilities.layouts.push_back(layout.text());
      }
      collect(p, values, report);
    }
    compare(values, result, report);
    compare_state(state, report);
    if (first != nullptr && first->empty()) {
      *first = std::move(values);
    } else if (first != nullptr && deterministic) {
      compare_bits(values, *first, report);
    }
    return abilities;
  }

  void mistrust(CheckResult& result) const;

 private:
  // Every node rounds what it gives once to the type it gives it in, and on TF32 units its
  // operands; what comes in was rounded before.
  void count_narrow_roundings() {
    const Graph& graph = case_.graph;
    narrow_roundings_.assign(graph.values().size(), 0.0);
    for (const Node& node : graph.nodes()) {
      double before = 0.0;
      for (const ValueId input : node.inputs) {
        before = std::max(before, narrow_roundings_[static_cast<std::size_t>(input)]);
      }
      if (graph.allows_tf32() && is_product(node.kind)) before += epsilon_of(DType::f16);
      for (const ValueId output : node.outputs) {
        const DType type = graph.value(output).spec.dtype;
        const bool narrow = type == DType::bf16 || type == DType::f16;
        narrow_roundings_[static_cast<std::size_t>(output)] =
            before + (narrow ? epsilon_of(type) : 0.0);
      }
    }
  }

  template <typename Report>
  void collect(const Prepared& p, HostValues& values, const Report& report) const {
    for (std::size_t i = 0; i < p.inputs.size(); ++i) {
      const std::string damage = p.inputs[i]->damage();
      if (!damage.empty()) report(fmt::format("{}: {} of input {}", p.row->name, damage, i));
      if (p.overwritten[i] == 0 && !p.inputs[i]->unchanged()) {
        report(fmt::format("{}: changed input {}", p.row->name, i));
      }
    }
    for (std::size_t i = 0; i < p.outputs.size(); ++i) {
      if (p.outputs[i] == nullptr) continue;
      const std::string damage = p.outputs[i]->damage();
      if (!damage.empty()) report(fmt::format("{}: {} of output {}", p.row->name, damage, i));
      values[static_cast<std::size_t>(p.problem.outputs[i])] = get(backend_, *p.outputs[i]);
    }
    if (!p.workspace->intact()) report(fmt::format("{}: wrote beside its workspace", p.row->name));
  }

  template <typename Report>
  void compare(const HostValues& values, CheckResult& result, const Report& report) const {
    for (std::size_t id = 0; id < values.size(); ++id) {
      if (case_.graph.values()[id].producer == kNoNode || values[id].bytes.empty()) continue;
      if (is_float(values[id].spec.dtype)) {
        compare_numbers(id, values[id], result, report);
      } else {
        compare_positions(id, values[id], report);
      }
    }
  }

  template <typename Report>
  void compare_state(const StepState& state, const Report& report) const {
    const StepState& expected = expected_.state;
    if (state.overflow != expected.overflow || state.overflows != expected.overflows ||
        state.steps_in_range != expected.steps_in_range ||
        state.loss_scale != expected.loss_scale ||
        state.gradient_scale != expected.gradient_scale) {
      report(fmt::format(
          "state: overflow {} of {}, scale {} after {}; expected {} of {}, {} after "
          "{}",
          state.overflow, state.overflows, state.loss_scale, state.gradient_scale,
          expected.overflow, expected.overflows, expected.loss_scale, expected.gradient_scale));
    }
  }

  template <typename Report>
  void compare_numbers(std::size_t id, const HostValue& got, CheckResult& result,
                       const Report& report) const {
    const HostValue& expected = expected_.values[id];
    double worst = 0, worst_error = 0, largest = 0;
    std::int64_t worst_index = 0;
    for (std::int64_t i = 0; i < got.elements(); ++i) {
      const bool same = got.at(i) == expected.at(i);  // infinities have no difference
      const double error = same ? 0.0 : std::abs(got.at(i) - expected.at(i));
      double units = error / allowed(id, i);
      if (same) units = 0.0;
      if (std::isnan(units)) units = std::numeric_limits<double>::infinity();
      if (units > worst) worst = units, worst_index = i;
      worst_error = larger_or_nan(worst_error, error);
      largest = std::max(largest, std::abs(expected.at(i)));
    }
    result.tolerance = std::max(result.tolerance, worst);
    result.error = larger_or_nan(result.error, largest > 0 ? worst_error / largest : worst_error);
    if (worst > 1.0) {
      report(fmt::format("{} {} element {}: got {}, expected {}, allowed error {:.3g}",
                         case_.graph.values()[id].name, got.spec.shape.text(), worst_index,
                         got.at(worst_index), expected.at(worst_index), allowed(id, worst_index)));
    }
  }

  // Positions of maxima: exact where the pool reads given values; behind computed values, whose
  // roundings may decide between near equals, the value found must be a maximum.
  template <typename Report>
  void compare_positions(std::size_t id, const HostValue& got, const Report& report) const {
    const Node& pool = case_.graph.node(case_.graph.values()[id].producer);
    const auto& attributes = std::get<PoolAttributes>(pool.attributes);
    const auto src_id = static_cast<std::size_t>(pool.inputs[0]);
    const auto dst_id = static_cast<std::size_t>(pool.outputs[0]);
    const bool given = case_.graph.values()[src_id].producer == kNoNode;
    const Shape& src = case_.graph.values()[src_id].spec.shape;
    const Shape& dst = got.spec.shape;
    for (std::int64_t i = 0; i < got.elements(); ++i) {
      const auto position = static_cast<std::int64_t>(got.at(i));
      bool right = got.at(i) == expected_.values[id].at(i);
      if (!right && !given) {
        const std::int64_t plane = i / (dst[2] * dst[3]);
        const std::int64_t oh = i / dst[3] % dst[2], ow = i % dst[3];
        const std::int64_t h = oh * attributes.stride_h - attributes.pad_top +
                               position / attributes.kernel_w * attributes.dilation_h;
        const std::int64_t w = ow * attributes.stride_w - attributes.pad_left +
                               position % attributes.kernel_w * attributes.dilation_w;
        const bool inside = h >= 0 && h < src[2] && w >= 0 && w < src[3];
        const std::int64_t from = (plane * src[2] + h) * src[3] + w;
        right = inside && expected_.values[dst_id].at(i) - expected_.values[src_id].at(from) <=
                              2 * allowed(dst_id, i);
      }
      if (!right) {
        return report(fmt::format("positions element {}: got {}, expected {}", i, position,
                                  expected_.values[id].at(i)));
      }
    }
  }

  template <typename Report>
  void compare_bits(const HostValues& values, const HostValues& first, const Report& report) const {
    for (std::size_t id = 0; id < values.size(); ++id) {
      if (values[id].bytes != first[id].bytes) {
        report(fmt::format("{}: the second run, on other garbage, gave other bits",
                           case_.graph.values()[id].name));
      }
    }
  }

  // In proportion to what the element would be had nothing cancelled.
  [[nodiscard]] double allowed(std::size_t id, std::int64_t index) const {
    constexpr double kSmallest = 1e-30, kMargin = 2.0;
    const double relative = epsilon_of(DType::f32) * roundings_ + narrow_roundings_[id];
    return kMargin * relative * expected_.magnitudes[id].at(index) + kSmallest +
           smallest_of(case_.graph.values()[id].spec.dtype);
  }

  const Backend& backend_;
  const OpCase& case_;
  Expected expected_;
  double roundings_ = 0;
  std::vector<double> narrow_roundings_;  // for each value, to narrow types on the way to it
};

// A case whose answer is mostly zeros proves little.
void CaseRun::mistrust(CheckResult& result) const {
  if (case_.mostly_zeros) return;
  for (const ValueId output : case_.graph.outputs()) {
    const HostValue& value = expected_.values[static_cast<std::size_t>(output)];
    if (!is_float(value.spec.dtype)) continue;
    std::int64_t zeros = 0;
    for (std::int64_t i = 0; i < value.elements(); ++i) zeros += value.at(i) == 0.0 ? 1 : 0;
    if (static_cast<double>(zeros) > 0.95 * static_cast<double>(value.elements())) {
      result.failures.push_back(fmt::format("mistrusted: {} of {} elements of {} are 0", zeros,
                                            value.elements(), case_.graph.value(output).name));
    }
  }
}

// Restores the thread count at the end of a scope.
class ThreadCountScope {
 public:
  ThreadCountScope() : before_(thread_count()) {}
  ~ThreadCountScope() { set_thread_count(before_); }
  ThreadCountScope(const ThreadCountScope&) = delete;
  ThreadCountScope& operator=(const ThreadCountScope&) = delete;

 private:
  int before_;
};

// An output that a plan may leave out: its node is wanted for another one. A plan never asks for
// the positions of maxima without the maxima, nor for the statistics of a norm without its dst.
bool may_be_unread(const Graph& graph, ValueId output) {
  const Value& value = graph.value(output);
  const Node& producer = graph.node(value.producer);
  const bool main = (producer.kind == OpKind::pool || producer.kind == OpKind::layer_norm) &&
                    output == producer.outputs[0];
  return producer.outputs.size() > 1 && value.users.empty() && !is_persistent(value.role) && !main;
}

void run_all_variants(CaseRun& run, const OpCase& op_case, CheckResult& result) {
  HostValues first;
  const CaseRun::Abilities abilities = run.run({}, result, &first);
  run.run({.poison = 0x7F}, result, &first);
  if (op_case.big) return;
  for (const int threads : {1, 3}) run.run({.threads = threads}, result);
  std::vector<LayoutKind> offers = {LayoutKind::plain};
  HostValues first_nhwc;
  const Variant nhwc = {.offered = LayoutKind::nhwc};
  if (run.run(nhwc, result, &first_nhwc).layouts != abilities.layouts) {
    offers.push_back(LayoutKind::nhwc);
    run.run({.offered = LayoutKind::nhwc, .poison = 0x7F}, result, &first_nhwc);
    for (const int threads : {1, 3}) {
      run.run({.threads = threads, .offered = LayoutKind::nhwc}, result);
    }
  }
  for (const LayoutKind offered : offers) {
    if (abilities.slices) run.run({.offered = offered, .slices = true}, result);
    if (abilities.in_place) run.run({.offered = offered, .in_place = true}, result);
    if (abilities.slices && abilities.in_place) {
      run.run({.offered = offered, .slices = true, .in_place = true}, result);
    }
  }
  for (const ValueId output : op_case.graph.outputs()) {
    if (may_be_unread(op_case.graph, output)) run.run({.unread = output}, result);
  }
}

}  // namespace

// Each tile after those that make what it reads, else by its first node.
static std::vector<Tile> in_order(const Graph& graph, std::vector<Tile> tiles) {
  std::vector<Tile> ordered;
  std::vector<char> done(graph.nodes().size());
  const auto ready = [&](const Tile& tile) {
    const std::vector<ValueId> inputs = make_problem(graph, tile.nodes).inputs;
    return std::all_of(inputs.begin(), inputs.end(), [&](ValueId input) {
      const NodeId producer = graph.value(input).producer;
      return producer == kNoNode || done[static_cast<std::size_t>(producer)] != 0;
    });
  };
  while (!tiles.empty()) {
    const auto next = std::find_if(tiles.begin(), tiles.end(), ready);
    ensure(next != tiles.end(), "tiles wait for each other in a circle");
    for (const NodeId node : next->nodes) done[static_cast<std::size_t>(node)] = 1;
    ordered.push_back(std::move(*next));
    tiles.erase(next);
  }
  return ordered;
}

std::string Tiling::text() const {
  std::string text;
  for (const Tile& tile : tiles) {
    if (!text.empty()) text += " + ";
    text += tile.row->name;
  }
  return text;
}

Tiling tile(const Backend& backend, const Graph& graph) {
  Tiling tiling;
  std::vector<char> covered(graph.nodes().size());
  for (std::size_t first = 0; first < graph.nodes().size(); ++first) {
    if (covered[first] != 0) continue;
    std::string reasons;
    bool found = false;
    for (const KernelRow& row : backend.rows()) {
      const std::vector<NodeId> nodes = row.match(graph, static_cast<NodeId>(first));
      const bool free = std::none_of(nodes.begin(), nodes.end(), [&](NodeId node) {
        return covered[static_cast<std::size_t>(node)] != 0;
      });
      if (nodes.empty() || !free) continue;
      const std::string reason = row.check(make_problem(graph, nodes));
      if (reason.empty()) {
        for (const NodeId node : nodes) covered[static_cast<std::size_t>(node)] = 1;
        tiling.tiles.push_back({&row, nodes});
        found = true;
        break;
      }
      reasons += fmt::format("{}{}: {}", reasons.empty() ? "" : "; ", row.name, reason);
    }
    if (!found) {
      const OpKind kind = graph.nodes()[first].kind;
      tiling.refusal = fmt::format("{}: {}", name_of(kind), reasons.empty() ? "no row" : reasons);
      tiling.tiles.clear();
      return tiling;
    }
  }
  tiling.tiles = in_order(graph, std::move(tiling.tiles));
  return tiling;
}

CheckResult check_case(const Backend& backend, const OpCase& op_case, Effort effort) {
  CheckResult result;
  const Tiling tiling = tile(backend, op_case.graph);
  result.refusal = tiling.refusal;
  result.rows = tiling.text();
  if (!result.refusal.empty()) return result;
  const ThreadCountScope scope;
  CaseRun run(backend, op_case);
  run.mistrust(result);
  if (effort == Effort::quick) {
    run.run({.threads = thread_count()}, result);
  } else {
    run_all_variants(run, op_case, result);
  }
  return result;
}

Speed time_case(const Backend& backend, const OpCase& op_case, int repetitions) {
  Speed speed;
  HostValues values = make_inputs(op_case, op_case.graph);
  (void)run_reference(op_case.graph, values, op_case.state);
  for (const Tile& tile : tile(backend, op_case.graph).tiles) {
    // Values that the tile reads are there already, made by the reference.
    const Prepared p = prepare(backend, op_case.graph, tile, values, {.threads = thread_count()});
    Device& device = device_of(backend);
    StepState state = op_case.state;
    double best = std::numeric_limits<double>::infinity();
    for (int i = 0; i <= repetitions; ++i) {
      // Short kernels on a queue are timed several at once.
      const double took = p.run(device, state, device.kind() == "cpu" ? 1 : 20);
      if (i > 0) best = std::min(best, took);
    }
    speed.seconds += best;
    for (const NodeId node : tile.nodes) {
      speed.cost.macs += op_case.graph.cost(node).macs;
      speed.cost.flops += op_case.graph.cost(node).flops;
    }
    for (const ValueId id : p.problem.inputs) {
      speed.cost.bytes_read += op_case.graph.value(id).spec.bytes();
    }
    for (const ValueId id : p.problem.outputs) {
      speed.cost.bytes_written += op_case.graph.value(id).spec.bytes();
    }
  }
  return speed;
}

}  // namespace ridgeline::testing
