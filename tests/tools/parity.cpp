// Trains a model of the zoo for some steps on every backend and writes all that another program
// needs to do the same: initial weights, batches, settings, and the losses that came out.
// usage: parity MODEL sgd|adam STEPS DATA MEAN DEVIATION FOLDER

#include <cstdio>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "backends/auto.h"
#include "backends/registry.h"
#include "base/error.h"
#include "data/catalog.h"
#include "data/loader.h"
#include "plan/session.h"
#include "train/step_graph.h"

namespace {

using namespace ridgeline;
using Json = nlohmann::json;

constexpr std::uint64_t kSeed = 3;
constexpr std::int64_t kBatch = 64;

template <typename T>
void write_file(const std::filesystem::path& path, std::span<const T> values) {
  std::ofstream file(path, std::ios::binary | std::ios::app);
  file.write(reinterpret_cast<const char*>(values.data()),
             static_cast<std::streamsize>(values.size_bytes()));
  if (!file) fail("cannot write {}", path.string());
}

std::vector<float> initial_floats(const Parameter& parameter) {
  const std::vector<double> values = initial_values(parameter, kSeed);
  return {values.begin(), values.end()};
}

std::vector<double> losses_on(const std::string& backend, const StepSpec& spec, const Dataset& data,
                              double learning_rate, int steps) {
  const StepGraph step = training_graph(spec);
  const std::unique_ptr<Device> device = make_cpu_device();
  Session session(*device);
  const Session::PlanId plan = session.add(
      plan_for(step.graph, {.backend = backend, .disabled_passes = {}, .cache = {}}, *device));
  session.prepare();
  for (const Parameter& parameter : step.parameters) {
    const std::vector<float> values = initial_floats(parameter);
    session.write(parameter.name, std::as_bytes(std::span(values)));
  }
  Loader loader(data, {.batch = spec.batch});
  loader.start_epoch(0);
  std::vector<double> losses;
  for (int i = 0; i < steps; ++i) {
    const Batch batch = *loader.next();
    session.write(kImages, std::as_bytes(batch.pixels));
    session.write(kLabels, std::as_bytes(batch.labels));
    session.step_state() = {.learning_rate = learning_rate,
                            .optimizer_step = i + 1,
                            .seed = kSeed,
                            .random_step = i,
                            .valid_rows = batch.rows};
    session.run(plan);
    losses.push_back(session.read_value(plan, step.loss)[0]);
  }
  return losses;
}

struct Settings {
  std::string model, optimizer;
  int steps = 0;
  std::string data;
  double mean = 0.0, deviation = 1.0;
};

void run(const Settings& settings, const std::filesystem::path& folder) {
  const int steps = settings.steps;
  const Dataset data = limit(load_dataset(settings.data).train, kBatch * steps);
  StepSpec spec;
  spec.model.name = settings.model;
  spec.batch = kBatch;
  spec.mean = {settings.mean};
  spec.deviation = {settings.deviation};
  const bool adam = settings.optimizer == "adam";
  const double learning_rate = adam ? 1e-3 : 0.01;
  if (adam) {
    spec.optimizer = AdamAttributes{};
  } else {
    spec.optimizer = SgdAttributes{.momentum = 0.9};
  }

  std::filesystem::create_directories(folder);
  Json manifest = {{"model", settings.model},
                   {"optimizer", settings.optimizer},
                   {"learning_rate", learning_rate},
                   {"steps", steps},
                   {"batch", kBatch},
                   {"mean", settings.mean},
                   {"deviation", settings.deviation}};
  for (const Parameter& parameter : training_graph(spec).parameters) {
    const std::string file = parameter.name + ".f32";
    std::filesystem::remove(folder / file);
    const std::vector<float> values = initial_floats(parameter);
    write_file<float>(folder / file, values);
    Json shape = Json::array();
    for (int axis = 0; axis < parameter.shape.rank(); ++axis)
      shape.push_back(parameter.shape[axis]);
    manifest["parameters"].push_back({{"name", parameter.name}, {"file", file}, {"shape", shape}});
  }
  for (const char* name : {"images.u8", "labels.i32"}) std::filesystem::remove(folder / name);
  write_file<std::uint8_t>(folder / "images.u8", data.pixels);
  write_file<std::int32_t>(folder / "labels.i32", data.labels);
  std::vector<std::string> backends = {"auto"};
  for (const Backend* backend : all_backends()) {
    if (backend->device == "cpu") backends.emplace_back(backend->name);
  }
  for (const std::string& backend : backends) {
    manifest["losses"][backend] = losses_on(backend, spec, data, learning_rate, steps);
  }
  std::ofstream(folder / "manifest.json") << manifest.dump(1) << '\n';
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 8) {
    std::fputs("usage: parity MODEL sgd|adam STEPS DATA MEAN DEVIATION FOLDER\n", stderr);
    return 2;
  }
  try {
    run({argv[1], argv[2], std::stoi(argv[3]), argv[4], std::stod(argv[5]), std::stod(argv[6])},
        argv[7]);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "parity: %s\n", error.what());
    return 1;
  }
  return 0;
}
