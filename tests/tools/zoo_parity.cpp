// Trains a model of the zoo for some steps in double on the reference and in other precisions on
// other backends, and writes all that another program needs to do the same and to compare: initial
// weights, batches, losses, gradients, running statistics, outputs of inference.
// usage: zoo_parity names [MODEL]
//        zoo_parity MODEL IMAGE BATCH STEPS FOLDER RUN...
// Weights that are in the folder already, all parameters as floats in the order of `names`, take
// the place of initial ones.
// A run is f64 (the reference in double), or BACKEND[:PRECISION[:STEPS]], such as cuda:bf16:5; one
// step in fp32 where nothing else is told; inference alone with 0 steps. Gradients and statistics
// are those of the first step, in double those of every step.

#include <algorithm>
#include <array>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>

#include "backends/registry.h"
#include "base/error.h"
#include "data/synthetic.h"
#include "train/step_runner.h"

namespace {

using namespace ridgeline;
using Json = nlohmann::json;
namespace fs = std::filesystem;

constexpr std::uint64_t kSeed = 3;
// Small: with batches of two to four, larger steps throw fresh deep networks about, and rounding in
// the sixteenth digit grows a billion times within three of them.
constexpr double kLearningRate = 0.001, kMomentum = 0.9;

Json shape_json(const Shape& shape) {
  Json dims = Json::array();
  for (int axis = 0; axis < shape.rank(); ++axis) dims.push_back(shape[axis]);
  return dims;
}

constexpr std::array<const char*, 4> kInitNames = {"constant", "uniform", "normal",
                                                   "truncated_normal"};

Json parameters_json(std::span<const Parameter> parameters) {
  Json list = Json::array();
  for (const Parameter& parameter : parameters) {
    list.push_back({{"name", parameter.name},
                    {"shape", shape_json(parameter.file_shape)},
                    {"trained", parameter.role == Role::parameter},
                    {"init", kInitNames[static_cast<std::size_t>(parameter.init.kind)]},
                    {"amount", parameter.init.amount}});
  }
  return list;
}

// One file of numbers, written from the front.
class Output {
 public:
  explicit Output(const fs::path& path) : path_(path), file_(path, std::ios::binary) {}
  template <typename T>
  void write(std::span<const T> values) {
    file_.write(reinterpret_cast<const char*>(values.data()),
                static_cast<std::streamsize>(values.size_bytes()));
    if (!file_) fail("cannot write {}", path_.string());
  }

 private:
  fs::path path_;
  std::ofstream file_;
};

struct Run {
  std::string name, backend;
  StepSpec spec;
  int steps = 1;
};

// Appends these values of a plan, in order, as doubles, each divided by `scale`.
template <typename Name>
void write_values(Output& output, StepRunner& runner, Session::PlanId plan, bool trained,
                  double scale, Name name) {
  const Graph& graph = *runner.session().plan(plan).graph;
  for (const Parameter& parameter : runner.parameters()) {
    if ((parameter.role == Role::parameter) != trained) continue;
    std::vector<double> values =
        runner.session().read_value(plan, graph.find(name(parameter.name)));
    for (double& value : values) value /= scale;
    output.write<double>(values);
  }
}

// PyTorch gets floats, so every precision starts from the same numbers.
using Weights = std::map<std::string, std::vector<float>>;

Weights initial_weights(std::span<const Parameter> parameters) {
  Weights weights;
  for (const Parameter& parameter : parameters) {
    const std::vector<double> values = initial_values(parameter, kSeed);
    weights[parameter.name].assign(values.begin(), values.end());
  }
  return weights;
}

Weights read_weights(std::span<const Parameter> parameters, const fs::path& path) {
  Weights weights;
  std::ifstream file(path, std::ios::binary);
  for (const Parameter& parameter : parameters) {
    std::vector<float>& values = weights[parameter.name];
    values.resize(static_cast<std::size_t>(parameter.shape.elements()));
    file.read(reinterpret_cast<char*>(values.data()),
              static_cast<std::streamsize>(values.size() * sizeof(float)));
  }
  if (!file || file.peek() != std::ifstream::traits_type::eof()) {
    fail("{} has a wrong size", path.string());
  }
  return weights;
}

void write_weights(StepRunner& runner, const Weights& weights, DType dtype) {
  for (const auto& [name, values] : weights) {
    if (!runner.session().has(name)) continue;
    if (dtype == DType::f32) {
      runner.session().write(name, std::as_bytes(std::span(values)));
    } else {
      const std::vector<double> wide(values.begin(), values.end());
      runner.session().write(name, std::as_bytes(std::span(wide)));
    }
  }
}

Json run_steps(const Run& run, const Weights& given, const Dataset& data, const fs::path& folder) {
  const std::unique_ptr<Device> device =
      make_device(std::string(providers_of(run.backend)[0]->device));
  StepRunner runner(*device, {.backend = run.backend, .disabled_passes = {}, .cache = {}});
  const Session::PlanId training = run.steps > 0 ? runner.add_training(run.spec) : 0;
  const Session::PlanId evaluation = runner.add_evaluation(run.spec);
  runner.prepare(kSeed);
  write_weights(runner, given, run.spec.dtype);
  if (run.spec.precision == Precision::fp16) {
    // Fresh networks overflow with what training begins with.
    runner.session().step_state().loss_scale = 1024.0;
    runner.session().write_step_state();
  }
  Loader loader(data, {.batch = run.spec.batch});
  loader.start_epoch(0);
  Output gradients(folder / (run.name + ".gradients")),
      statistics(folder / (run.name + ".statistics"));
  const auto set_state = [&](std::int64_t step) {
    runner.session().step_state() = {.learning_rate = kLearningRate,
                                     .optimizer_step = step + 1,
                                     .seed = kSeed,
                                     .random_step = step,
                                     .valid_rows = run.spec.batch};
  };
  Batch batch = *loader.next();
  runner.write_batch(batch);
  set_state(0);
  runner.session().run(evaluation);
  Json result = {{"logits", runner.session().read_value(evaluation, runner.logits(evaluation))}};
  for (int step = 0; step < run.steps; ++step) {
    if (step > 0) {
      batch = *loader.next();
      runner.write_batch(batch);
    }
    set_state(step);
    runner.clear_totals();
    runner.session().run(training);
    const MetricTotals totals = runner.totals();
    result["losses"].push_back(totals.loss / static_cast<double>(run.spec.batch));
    const double scale = runner.session().read_step_state().gradient_scale;
    if (step > 0 && run.spec.dtype != DType::f64) continue;
    write_values(gradients, runner, training, true, scale, gradient_name);
    write_values(statistics, runner, training, false, 1.0, [](const std::string& n) { return n; });
  }
  return result;
}

// Of all models, or of one.
void names(const std::string& wanted) {
  Json models = Json::object();
  for (const ModelInfo& model : all_models()) {
    if (!wanted.empty() && model.name != wanted) continue;
    StepSpec spec;
    spec.model = default_config(model.name);
    spec.batch = 1;
    models[std::string(model.name)] = parameters_json(evaluation_graph(spec).parameters);
  }
  std::puts(models.dump().c_str());
}

Run run_of(const std::string& text, StepSpec spec, int steps) {
  if (text == "f64") {
    spec.dtype = DType::f64;
    return {text, "reference", spec, steps};
  }
  std::istringstream pieces(text);
  std::string backend, precision = "fp32", count = "1";
  std::getline(pieces, backend, ':');
  std::getline(pieces, precision, ':');
  std::getline(pieces, count, ':');
  const auto* found = std::find(kPrecisionNames.begin(), kPrecisionNames.end(), precision);
  if (found == kPrecisionNames.end()) bad_input("unknown precision {}", precision);
  spec.precision = static_cast<Precision>(found - kPrecisionNames.begin());
  return {text, backend, spec, std::stoi(count)};
}

void train(const std::vector<std::string>& arguments) {
  StepSpec spec;
  spec.keep_gradients = true;
  spec.model = default_config(arguments[0]);
  spec.model.height = spec.model.width = std::stoll(arguments[1]);
  drop_nothing(spec.model);
  spec.batch = std::stoll(arguments[2]);
  spec.mean.assign(static_cast<std::size_t>(spec.model.channels), 0.5);
  spec.deviation.assign(static_cast<std::size_t>(spec.model.channels), 0.25);
  const int steps = std::stoi(arguments[3]);
  // One step has no use for a velocity.
  const double momentum = steps > 1 ? kMomentum : 0.0;
  spec.optimizer = SgdAttributes{.momentum = momentum};
  const fs::path folder = arguments[4];
  fs::create_directories(folder);
  const Dataset data = make_synthetic({.channels = spec.model.channels,
                                       .height = spec.model.height,
                                       .width = spec.model.width,
                                       .classes = static_cast<std::int32_t>(spec.model.classes),
                                       .count = spec.batch * steps,
                                       .test_count = 1,
                                       .seed = kSeed})
                           .train;
  const std::vector<Parameter> parameters = training_graph(spec).parameters;
  Json manifest = {{"model", arguments[0]},
                   {"image", spec.model.height},
                   {"batch", spec.batch},
                   {"steps", steps},
                   {"learning_rate", kLearningRate},
                   {"momentum", momentum},
                   {"mean", spec.mean[0]},
                   {"deviation", spec.deviation[0]},
                   {"parameters", parameters_json(parameters)}};
  const fs::path weights_path = folder / "weights.f32";
  Weights weights;
  if (fs::exists(weights_path)) {
    weights = read_weights(parameters, weights_path);
  } else {
    weights = initial_weights(parameters);
    Output file(weights_path);
    for (const Parameter& parameter : parameters) file.write<float>(weights.at(parameter.name));
  }
  Output(folder / "images.u8").write<std::uint8_t>(data.pixels);
  Output(folder / "labels.i32").write<std::int32_t>(data.labels);

  for (std::size_t i = 5; i < arguments.size(); ++i) {
    manifest["runs"][arguments[i]] =
        run_steps(run_of(arguments[i], spec, steps), weights, data, folder);
  }
  std::ofstream(folder / "manifest.json") << manifest.dump() << '\n';
}

}  // namespace

int main(int argc, char** argv) {
  const std::vector<std::string> arguments(argv + 1, argv + argc);
  try {
    if (!arguments.empty() && arguments.size() <= 2 && arguments[0] == "names") {
      names(arguments.size() == 2 ? arguments[1] : "");
    } else if (arguments.size() >= 5) {
      train(arguments);
    } else {
      std::fputs(
          "usage: zoo_parity names [MODEL]\n"
          "       zoo_parity MODEL IMAGE BATCH STEPS FOLDER RUN...\n",
          stderr);
      return 2;
    }
  } catch (const std::exception& error) {
    std::fprintf(stderr, "zoo_parity: %s\n", error.what());
    return 1;
  }
  return 0;
}
