#pragma once

// Stores made by hand for the tests of reports: numbers are round, so that tests know the answers.
//
// Two machines: "desk" with a processor of 100 GFLOP/s and 20 GB/s, "server" with a graphics
// processor of 10 TFLOP/s and 1 TB/s. write_report_store() carries out one study ("trial") on both:
//   speed      mlp, mnist_cnn, resnet18 at batch 64: native and torch-cpu; auto and torch-cuda
//   sweep      mnist_cnn at batches 32 to 256 on both
//   ranks      mnist_cnn with a clipped norm by one and by two ranks, on the desk
//   training   mnist_cnn for three epochs, learning rates 0.01 and 0.1, on both
//   profile    mlp on both
//   inference  mnist_cnn at batches 1 and 64 on both

#include <functional>
#include <map>
#include <string>
#include <vector>

#include "store/store.h"

namespace ridgeline::testing {

// What of a run differs from the others; the rest follows from it.
struct ReportRun {
  std::string environment = "desk";  // or "server"
  std::string part = "speed";        // of the study; empty: of none
  std::string model = "mnist_cnn";
  Settings settings = {};  // the model's other options have their fallbacks
  std::int64_t batch = 64;
  ImageShape image = {1, 28, 28};
  std::string backend = "native", device = "cpu";
  std::string precision = "fp32";
  NameList modes = {};
  std::string group = {};
  double seconds = 0.010;    // the median of the iterations, exactly
  std::int64_t count = 22;   // measured iterations; a multiple of 22 has exactly that median
  double loader_wait = 0.0;  // seconds of each iteration; 0: no loader
  // Has the last word on what is stored of the run's identity.
  std::function<void(RunRecord&)> change = {};
};

struct ReportTraining {
  ReportRun run;
  std::string data = "fashion-mnist";
  std::string optimizer = "sgd";  // with momentum 0.9
  double learning_rate = 0.01;
  std::vector<double> accuracies = {0.80, 0.85, 0.84};  // after each epoch
  std::vector<double> seconds = {3.0, 2.0, 2.5};
  std::int64_t samples = 6000;  // of an epoch
  // Of a training that was resumed.
  std::int64_t first_epoch = 0;               // that were done before
  std::map<std::string, double> former = {};  // numbers: "former_seconds", ...
};

// FLOPs of a training step for one sample, as all helpers take it: mlp 50,000; mnist_cnn 1.4
// million; resnet18 120 million.
[[nodiscard]] double report_flops(const std::string& model);

// The machines with their ceilings; and one record of the study "trial" on each.
void write_report_machines(Store& store);
// Samples (22 that differ by up to 0.5%, blocks of 2; of a GPU also queued ones, 5% faster), split
// samples (30% forward, 60% backward, 10% optimizer), steps (95% of the iteration in all), readings
// of sensors over 2 seconds, memory, numbers. Backends torch-*: no steps, but parity.
RunId write_report_bench(Store& store, const ReportRun& run);
RunId write_report_training(Store& store, const ReportTraining& training);
// Adds the breakdown (90% kernel, 2% copy, 3% runtime, 4% CPU, 1% idle), live bytes and a timeline.
RunId write_report_profile(Store& store, const ReportRun& run);
RunId write_report_inference(Store& store, const ReportRun& run);

// The text of the study's file.
[[nodiscard]] std::string report_definition();

// All that the head of this file tells.
void write_report_store(Store& store);

}  // namespace ridgeline::testing
