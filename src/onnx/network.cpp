#include "onnx/network.h"

#include <algorithm>
#include <array>
#include <map>
#include <mutex>
#include <nlohmann/json.hpp>
#include <set>

#include "base/error.h"
#include "base/text.h"
#include "base/utf8.h"

namespace ridgeline::onnx {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kEnding = ".onnx";
constexpr std::int64_t kOldest = 11, kNewest = 21;  // opsets
constexpr std::int64_t kUsualSide = 224, kUsualChannels = 3;
constexpr std::int64_t kMostSide = 1 << 16;
constexpr std::int64_t kTrialBatch = 2;  // with one sample, axes of size 1 look alike
constexpr std::size_t kMostNodes = 1 << 17;
constexpr int kFurthestHead = 64;    // nodes behind a classifier's last layer
constexpr std::size_t kDigits = 16;  // of a hash

constexpr ModelOption kAuxiliary{"auxiliary", "0.3", "weight of each auxiliary head's loss"};
constexpr ModelOption kDropout{"dropout", "1", "1: dropout as in the file, 0: none"};

// What the file's input says of images.
struct ImageInput {
  std::string name;
  ModelImage size{};
  bool channels_last = false;
  bool fixed_size = false;
  std::optional<std::int64_t> batch;
};

bool has_size(const std::optional<std::int64_t>& dim, std::int64_t most) {
  return dim && *dim >= 1 && *dim <= most;
}

ImageInput read_input(const Model& model, const Links& links) {
  std::vector<const ValueInfo*> found;
  for (const ValueInfo& info : model.inputs) {
    if (!links.constants.contains(info.name)) found.push_back(&info);
  }
  if (found.size() != 1) {
    bad_input("is no image classifier: it takes {} inputs instead of one", found.size());
  }
  const ValueInfo& info = *found[0];
  if (!info.is_tensor || info.dims.size() != 4) {
    bad_input("is no image classifier: its input '{}' has {} axes instead of four", info.name,
              info.dims.size());
  }
  if (!is_real(info.type)) {
    bad_input("takes images of type {}; export it with images of float32", name_of(info.type));
  }
  ImageInput image;
  image.name = info.name;
  const auto& dims = info.dims;
  // Few channels behind rows and columns: as TensorFlow has them.
  constexpr std::int64_t most_channels = 4;
  image.channels_last = has_size(dims[3], most_channels) && !has_size(dims[1], most_channels);
  const std::size_t rows = image.channels_last ? 1 : 2;
  const auto channels = dims[image.channels_last ? 3 : 1];
  if (dims[0] && *dims[0] >= 1) image.batch = *dims[0];
  for (const auto& dim : dims) {
    if (dim && (*dim < 0 || *dim > kMostSide)) bad_input("has an input of size {}", *dim);
  }
  image.size.channels = channels.value_or(0) > 0 ? *channels : kUsualChannels;
  image.fixed_size = has_size(dims[rows], kMostSide) && has_size(dims[rows + 1], kMostSide);
  image.size.height = has_size(dims[rows], kMostSide) ? *dims[rows] : kUsualSide;
  image.size.width = has_size(dims[rows + 1], kMostSide) ? *dims[rows + 1] : kUsualSide;
  return image;
}

// The layer that gives an output's classes: nodes behind it change no channels.
std::optional<std::size_t> head_of(const Model& model, const Links& links, std::string name) {
  static constexpr std::array<std::string_view, 13> kPass = {
      "Softmax", "LogSoftmax", "Flatten",           "Reshape",     "Squeeze",    "Identity", "Cast",
      "Dropout", "Relu",       "GlobalAveragePool", "AveragePool", "ReduceMean", "Transpose"};
  for (int i = 0; i < kFurthestHead; ++i) {
    const auto writer = links.writer.find(name);
    if (writer == links.writer.end()) return std::nullopt;
    const OpNode& node = model.nodes[writer->second];
    if (node.type == "Gemm" || node.type == "MatMul" || node.type == "Conv") return writer->second;
    const bool adds = node.type == "Add" && node.inputs.size() == 2;
    const bool passes = std::find(kPass.begin(), kPass.end(), node.type) != kPass.end();
    if ((!passes && !adds) || node.inputs.empty()) return std::nullopt;
    name = adds && links.constants.contains(node.inputs[0]) ? node.inputs[1] : node.inputs[0];
  }
  return std::nullopt;
}

// A value has one origin: the network's input, a tensor of the file or a node.
void check_origins(const Model& model, const Links& links) {
  std::set<std::string_view> inputs, written;
  for (const ValueInfo& info : model.inputs) inputs.insert(info.name);
  for (const OpNode& node : model.nodes) {
    for (const std::string& name : node.outputs) {
      if (name.empty()) continue;
      if (!written.insert(name).second) {
        const OpNode& first = model.nodes[links.writer.at(name)];
        bad_input("'{}' is written twice: by node '{}' ({}) and by node '{}' ({})", name,
                  first.name, first.type, node.name, node.type);
      }
      if (inputs.contains(name) || links.constants.contains(name)) {
        bad_input("node '{}' ({}) writes '{}', which is {}", node.name, node.type, name,
                  inputs.contains(name) ? "an input of the network" : "a tensor of the file");
      }
    }
  }
}

// Nodes that lead to one of the outputs.
std::vector<bool> leading_to(const Model& model, const Links& links,
                             std::vector<std::string> open) {
  std::vector<bool> wanted(model.nodes.size(), false);
  while (!open.empty()) {
    const std::string name = std::move(open.back());
    open.pop_back();
    const auto writer = links.writer.find(name);
    if (writer == links.writer.end() || wanted[writer->second]) continue;
    wanted[writer->second] = true;
    for (const std::string& input : model.nodes[writer->second].inputs) open.push_back(input);
  }
  return wanted;
}

std::vector<std::string> class_names_in(const Model& model, std::int64_t classes) {
  const auto found = model.metadata.find(kClassNames);
  if (found == model.metadata.end()) return {};
  const auto list = nlohmann::json::parse(found->second, nullptr, false);
  const bool texts = list.is_array() && std::all_of(list.begin(), list.end(), [](const auto& name) {
                       return name.is_string();
                     });
  if (!texts || std::ssize(list) != classes) return {};
  auto names = list.get<std::vector<std::string>>();
  for (std::string& name : names) name = printable(name);
  return names;
}

std::string supported_text() { return "Supported are " + joined(supported_ops(), ", "); }

// What is wrong gets the file's name in front.
template <typename Body>
auto of_file(const std::string& path, Body&& body) {
  try {
    return body();
  } catch (const Error& error) {
    throw Error(error.kind(), fmt::format("{}: {}", path, printable(error.what())));
  }
}

class FileNetwork final : public NetworkSource {
 public:
  explicit FileNetwork(const fs::path& path) : FileNetwork(path.string(), read_model(path)) {}
  FileNetwork(std::string path, Model model)
      : path_(std::move(path)), model_(std::move(model)), links_(model_) {
    of_file(path_, [&] { prepare(); });
  }

  // What is not supported. The image and the classes are known if there is nothing.
  [[nodiscard]] const std::vector<Refusal>& refusals() const { return refusals_; }
  [[nodiscard]] const Model& model() const { return model_; }

  // Throws bad_input naming the first node that is not supported.
  void check() const {
    if (refusals_.empty()) return;
    const Refusal& first = refusals_[0];
    const std::string more = refusals_.size() == 1
                                 ? std::string()
                                 : fmt::format("; and {} more, see 'ridgeline describe {}'",
                                               refusals_.size() - 1, path_);
    const std::string supported = first.reason == kUnknownOp ? ". " + supported_text() : "";
    bad_input("{}: node '{}' ({}, opset {}): {}{}{}", path_, first.node, first.op, first.opset,
              first.reason, more, supported);
  }

  [[nodiscard]] ModelConfig config(std::shared_ptr<const NetworkSource> self) const {
    ModelConfig config;
    config.name = fs::path(path_).stem().string();
    config.source = std::move(self);
    config.channels = image_.size.channels;
    config.height = image_.size.height;
    config.width = image_.size.width;
    config.classes = plan_.classes;
    return config;
  }

  ValueId build(NetworkBuilder& builder, ValueId image, const ModelConfig& config) const override {
    return of_file(path_, [&] {
      if (config.channels != image_.size.channels) {
        bad_input("takes images of {} channels, not of {}", image_.size.channels, config.channels);
      }
      ImportPlan plan = plan_;
      plan.wanted_classes = config.classes;
      plan.drops = !drops() || config.number(kDropout.name) != 0;
      if (config.classes != plan.classes && plan.heads.size() != 1 + auxiliary_.size()) {
        bad_input("its {} classes cannot be changed: they come from no layer with weights",
                  plan.classes);
      }
      try {
        return build_with(plan, builder, image, config);
      } catch (const Error& error) {
        if (!other_size(config)) throw;
        throw Error(error.kind(),
                    fmt::format("{}; the file was exported for images of {}x{}x{}", error.what(),
                                image_.size.channels, image_.size.height, image_.size.width));
      }
    });
  }

  [[nodiscard]] const std::string& path() const override { return path_; }
  [[nodiscard]] const std::string& hash() const override { return model_.hash; }
  [[nodiscard]] std::vector<std::string> class_names() const override {
    return class_names_in(model_, plan_.classes);
  }
  [[nodiscard]] std::span<const ModelOption> options() const override { return options_; }

 private:
  [[nodiscard]] bool other_size(const ModelConfig& config) const {
    return image_.fixed_size &&
           (config.height != image_.size.height || config.width != image_.size.width);
  }

  [[nodiscard]] View view_of(const Shape& shape) const {
    return image_.channels_last ? View::channels_last(shape) : View(shape);
  }

  void prepare() {
    const std::int64_t opset = model_.opset();
    if (opset < kOldest || opset > kNewest) {
      bad_input("has opset {}; {} to {} are supported, for example opset_version=17", opset,
                kOldest, kNewest);
    }
    if (model_.nodes.size() > kMostNodes) {
      bad_input("has {} nodes; at most {} are supported", model_.nodes.size(), kMostNodes);
    }
    check_origins(model_, links_);
    image_ = read_input(model_, links_);
    if (model_.outputs.empty()) bad_input("is no image classifier: it has no output");
    plan_.model = &model_;
    plan_.links = &links_;
    plan_.image = image_.name;
    plan_.batch = image_.batch;
    find_heads();
    if (!auxiliary_.empty()) options_.push_back(kAuxiliary);
    if (drops()) options_.push_back(kDropout);
    try_out();
  }

  // Whether something is dropped at random.
  [[nodiscard]] bool drops() const {
    return std::any_of(model_.nodes.begin(), model_.nodes.end(), [](const OpNode& node) {
      return node.type == "Dropout" || node.type == "Bernoulli" || node.type.starts_with("Random");
    });
  }

  // The first output are the logits. Others that come from a layer of their own are auxiliary
  // classifiers, as GoogLeNet has them in training.
  void find_heads() {
    const auto head = head_of(model_, links_, model_.outputs[0].name);
    if (head) plan_.heads.push_back(*head);
    std::vector<std::string> names = {model_.outputs[0].name};
    std::map<std::size_t, std::string> others;  // in the order of their layers
    for (std::size_t i = 1; i < model_.outputs.size(); ++i) {
      const auto other = head_of(model_, links_, model_.outputs[i].name);
      const bool own =
          head && other &&
          std::find(plan_.heads.begin(), plan_.heads.end(), *other) == plan_.heads.end();
      if (own) others.emplace(*other, model_.outputs[i].name);
    }
    for (const auto& [node, name] : others) {
      plan_.heads.push_back(node);
      auxiliary_.push_back(name);
      names.push_back(name);
    }
    plan_.wanted = leading_to(model_, links_, names);
  }

  // Builds it once: what is not supported, and how many classes there are.
  void try_out() {
    Graph graph;
    const Shape shape{kTrialBatch, image_.size.channels, image_.size.height, image_.size.width};
    const ValueId image = graph.add_value("images", {shape, DType::f32}, Role::input);
    NetworkBuilder builder(graph, false, InitScheme::pytorch, DType::f32);
    Importer importer(plan_, builder);
    importer.run(image, view_of(shape), &refusals_);
    if (!refusals_.empty()) return;
    plan_.classes = builder.shape(importer.logits(model_.outputs[0].name))[1];
    if (plan_.classes < 2) bad_input("is no image classifier: it gives {} number", plan_.classes);
    for (const std::string& name : auxiliary_) {
      if (builder.shape(importer.logits(name))[1] != plan_.classes) {
        bad_input("output '{}' has another number of classes than the first", name);
      }
    }
    if (builder.parameters().empty()) bad_input("is no image classifier: it has no weights");
  }

  ValueId build_with(const ImportPlan& plan, NetworkBuilder& builder, ValueId image,
                     const ModelConfig& config) const {
    Importer importer(plan, builder);
    importer.run(image, view_of(builder.shape(image)), nullptr);
    const ValueId logits = importer.logits(model_.outputs[0].name);
    if (builder.shape(logits)[1] != config.classes) {
      bad_input("gives {} classes instead of {}", builder.shape(logits)[1], config.classes);
    }
    for (const std::string& name : auxiliary_) {
      builder.auxiliary(importer.logits(name), config.probability(kAuxiliary.name));
    }
    return logits;
  }

  std::string path_;
  Model model_;
  Links links_;
  ImageInput image_;
  ImportPlan plan_;
  std::vector<std::string> auxiliary_;  // names of outputs
  std::vector<ModelOption> options_;
  std::vector<Refusal> refusals_;
};

// Networks that hold_network() made, by the names that it gave them.
struct HeldNetworks {
  std::mutex mutex;
  std::map<std::string, std::weak_ptr<const FileNetwork>> networks;
};
HeldNetworks& held_networks() {
  static HeldNetworks held;
  return held;
}

std::shared_ptr<const FileNetwork> find_held(const std::string& name) {
  HeldNetworks& held = held_networks();
  const std::scoped_lock lock(held.mutex);
  const auto found = held.networks.find(name);
  return found == held.networks.end() ? nullptr : found->second.lock();
}

// A call names a file several times; its weights need to be in memory once.
std::shared_ptr<const FileNetwork> open_network(const fs::path& path) {
  if (auto held = find_held(path.string())) return held;
  struct Opened {
    fs::file_time_type written;
    std::weak_ptr<const FileNetwork> network;
  };
  static std::mutex mutex;
  static std::map<std::string, Opened> opened;
  std::error_code error;
  const fs::file_time_type written = fs::last_write_time(path, error);
  const std::scoped_lock lock(mutex);
  Opened& entry = opened[fs::absolute(path).string()];
  std::shared_ptr<const FileNetwork> network = entry.network.lock();
  if (network == nullptr || error || written != entry.written) {
    network = std::make_shared<const FileNetwork>(path);
    entry = {written, network};
  }
  return network;
}

}  // namespace

bool is_network_file(std::string_view model) { return model.ends_with(kEnding); }

ModelConfig named_config(const std::string& model) {
  if (!is_network_file(model)) return default_config(model);
  const std::shared_ptr<const FileNetwork> network = open_network(model);
  network->check();
  return network->config(network);
}

std::shared_ptr<const NetworkSource> hold_network(const std::string& name,
                                                  std::span<const std::byte> bytes) {
  if (name.empty() || name.find_first_of("/,@") != name.npos) {
    bad_input("network name '{}': must not be empty or contain '/', ',' or '@'", name);
  }
  Model model = read_model(name, bytes);
  // A name that no file has: lists of models are split at commas, results show the last part.
  const std::string path =
      fmt::format("memory:{}/{}{}", model.hash.substr(0, kDigits), name, kEnding);
  if (auto known = find_held(path)) return known;
  auto network = std::make_shared<const FileNetwork>(path, std::move(model));
  network->check();
  HeldNetworks& held = held_networks();
  const std::scoped_lock lock(held.mutex);
  held.networks[path] = network;
  return network;
}

std::string short_hash(const NetworkSource& source) { return source.hash().substr(0, kDigits); }

std::string key_of_model(const std::string& model) {
  if (!is_network_file(model)) return model;
  const ModelConfig config = named_config(model);
  return fmt::format("{}@{}", config.name, short_hash(*config.source));
}

Survey survey_file(const fs::path& path) {
  const std::shared_ptr<const FileNetwork> network = open_network(path);
  const Model& model = network->model();
  return {.opset = model.opset(),
          .producer = model.producer,
          .hash = model.hash,
          .nodes = model.nodes.size(),
          .refusals = network->refusals(),
          .supported = supported_text()};
}

}  // namespace ridgeline::onnx
