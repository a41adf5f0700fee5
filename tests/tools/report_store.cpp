// report_store FILE SAMPLES: a store of made-up measurements with so many samples, for trying how
// long reports take.

#include "support/report_store.h"

#include <cstdio>
#include <cstdlib>

using namespace ridgeline;
using namespace ridgeline::testing;

int main(int argc, char** argv) {
  if (argc != 3) {
    std::fprintf(stderr, "usage: report_store FILE SAMPLES\n");
    return 2;
  }
  Store store{std::filesystem::path(argv[1])};
  write_report_store(store);
  const std::vector<std::int64_t> batches = {8, 16, 512, 1024, 2048};
  struct Executor {
    const char *environment, *backend, *device;
    double speed;
  };
  const std::vector<Executor> executors = {{"desk", "native", "cpu", 1.0},
                                           {"desk", "torch-cpu", "cpu", 0.8},
                                           {"server", "auto", "cuda:0", 60.0},
                                           {"server", "torch-cuda", "cuda:0", 40.0}};
  const std::vector<std::string> models = {"mlp", "mnist_cnn", "resnet18"};
  const auto runs = static_cast<std::int64_t>(batches.size() * executors.size() * models.size());
  // Multiples of 22: see ReportRun.
  const std::int64_t count = std::atoll(argv[2]) / runs / 22 * 22 + 22;
  for (const std::string& model : models) {
    for (const Executor& executor : executors) {
      for (const std::int64_t batch : batches) {
        ReportRun run;
        run.environment = executor.environment;
        run.part = "sweep";
        run.model = model;
        run.batch = batch;
        run.backend = executor.backend;
        run.device = executor.device;
        run.seconds = report_flops(model) * static_cast<double>(batch) / 50e9 / executor.speed;
        run.count = count;
        (void)write_report_bench(store, run);
      }
    }
  }
  return 0;
}
