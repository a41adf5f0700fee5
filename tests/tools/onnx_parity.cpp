// Runs the network of an ONNX file, or of the zoo, for a script that compares it with others.
// usage: onnx_parity run MODEL IMAGE BATCH BACKEND|f64 INPUT OUTPUT
//        onnx_parity plan MODEL IMAGE BATCH training|evaluation
//        onnx_parity weights MODEL OUTPUT
// f64 is the reference in double. INPUT and OUTPUT are doubles, OUTPUT of weights floats; IMAGE is
// the height and width. `plan` prints the steps of a plan without names, so that plans of one
// network are equal texts. `weights` prints the parameters as JSON.

#include <cstdio>
#include <cstring>
#include <fstream>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/mapped_file.h"
#include "onnx/network.h"
#include "train/inference_runner.h"

namespace {

using namespace ridgeline;
using Json = nlohmann::json;

StepSpec spec_of(const std::string& model, const std::string& image, const std::string& batch) {
  StepSpec spec;
  spec.model = onnx::named_config(model);
  if (image != "0") spec.model.height = spec.model.width = std::stoll(image);
  spec.batch = std::stoll(batch);
  return spec;
}

template <typename T>
void write(const std::string& path, const std::vector<T>& values) {
  std::ofstream file(path, std::ios::binary);
  file.write(reinterpret_cast<const char*>(values.data()),
             static_cast<std::streamsize>(values.size() * sizeof(T)));
  if (!file) fail("cannot write {}", path);
}

void run(const std::vector<std::string>& arguments) {
  StepSpec spec = spec_of(arguments[1], arguments[2], arguments[3]);
  const bool exact = arguments[4] == "f64";
  spec.dtype = exact ? DType::f64 : DType::f32;
  spec.tensor_input = true;
  const std::unique_ptr<Device> device = make_device("cpu");
  InferenceRunner runner(
      *device, {.backend = exact ? "reference" : arguments[4], .disabled_passes = {}, .cache = {}},
      spec);
  runner.prepare(1);
  const MappedFile input(arguments[5]);
  const std::span<const std::byte> bytes = input.bytes();
  if (exact) {
    runner.session().write(kImages, bytes);
  } else {
    std::vector<double> values(bytes.size() / sizeof(double));
    std::memcpy(values.data(), bytes.data(), bytes.size());
    runner.write_tensor(std::vector<float>(values.begin(), values.end()));
  }
  runner.run();
  write(arguments[6], runner.logits());
}

std::string shapes_of(const Graph& graph, const std::vector<ValueId>& values) {
  std::string text;
  for (const ValueId id : values) text += " " + graph.value(id).spec.shape.text();
  return text;
}

void plan(const std::vector<std::string>& arguments) {
  const StepSpec spec = spec_of(arguments[1], arguments[2], arguments[3]);
  const std::unique_ptr<Device> device = make_device("cpu");
  const bool training = arguments[4] == "training";
  StepGraph step = training ? training_graph(spec) : evaluation_graph(spec);
  const Plan made = plan_for(std::move(step.graph),
                             {.backend = "native", .disabled_passes = {}, .cache = {}}, *device);
  for (const Step& each : made.steps) {
    std::string line = fmt::format("{}:", each.kernel_name());
    for (const NodeId id : each.nodes) {
      const Node& node = made.graph->node(id);
      line += fmt::format(" {}({} ->{})", name_of(node.kind), shapes_of(*made.graph, node.inputs),
                          shapes_of(*made.graph, node.outputs));
    }
    std::puts(line.c_str());
  }
}

void weights(const std::vector<std::string>& arguments) {
  const StepSpec spec = spec_of(arguments[1], "0", "1");
  Json list = Json::array();
  std::vector<float> all;
  for (const Parameter& parameter : evaluation_graph(spec).parameters) {
    std::vector<std::int64_t> dims;
    for (int axis = 0; axis < parameter.file_shape.rank(); ++axis) {
      dims.push_back(parameter.file_shape[axis]);
    }
    list.push_back({{"name", parameter.name},
                    {"shape", dims},
                    {"trained", parameter.role == Role::parameter}});
    for (const double value : initial_values(parameter, 1))
      all.push_back(static_cast<float>(value));
  }
  write(arguments[2], all);
  std::puts(list.dump().c_str());
}

}  // namespace

int main(int argc, char** argv) {
  const std::vector<std::string> arguments(argv + 1, argv + argc);
  try {
    if (arguments.size() == 7 && arguments[0] == "run") {
      run(arguments);
    } else if (arguments.size() == 5 && arguments[0] == "plan") {
      plan(arguments);
    } else if (arguments.size() == 3 && arguments[0] == "weights") {
      weights(arguments);
    } else {
      std::fputs("usage: onnx_parity run|plan|weights MODEL ...\n", stderr);
      return 2;
    }
  } catch (const std::exception& error) {
    std::fprintf(stderr, "onnx_parity: %s\n", error.what());
    return 1;
  }
  return 0;
}
