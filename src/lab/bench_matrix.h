#pragma once

// The configurations that one call of `bench` measures: the product of the lists that its options
// give, each of them checked and made ready to be measured, or left out with the reason.

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "lab/options.h"
#include "lab/step_data.h"
#include "measure/iterations/measurement.h"
#include "ranks/ranks.h"

namespace ridgeline {

// Lists as the options give them: "16,32".
struct BenchAxes {
  std::string models, backends, devices, batches = "64", precisions = "fp32", images, samples;
  std::string optimizers = "sgd";
  std::string ranks = "1";
};

// Of steps that several processes share.
struct RankWork {
  bool weak = false;                 // a batch is that of each rank, not of all
  bool unconnected = false;          // measures as many processes that exchange nothing, too
  std::optional<double> bucket_mib;  // nothing: the usual one
  // Bytes, by ranks and kind of device; for others what is usual without links that were measured.
  std::map<std::pair<int, std::string>, std::int64_t> usual_buckets = {};
  bool synchronise_norms = false;
  std::string reduce = "fp32";  // how gradients travel
  // The words that start this program as a rank of the configuration with that number.
  std::function<std::vector<std::string>(std::size_t number, int threads, double bucket_mib)>
      command = {};
};

// What all configurations share.
struct BenchWork {
  RunOptions run;
  OptimizerOptions optimizer;
  StepDataOptions data;
  bool inference = false;
  bool loader = false;  // batches come through the loader, every iteration
  int workers = 0;      // 0: one for each usable processor
  std::string decoder = "auto";
  double peer_seconds = 600.0;
  RankWork ranks = {};
};

// One configuration, by the words of the options; empty: what is usual.
struct Combination {
  std::string model, image, samples, batch, precision, optimizer, device, backend;
  std::string ranks = "1";  // "4", or "4 unconnected"
  std::size_t number = 0;   // its place in the list of all

  [[nodiscard]] int rank_count() const;
  [[nodiscard]] bool connected() const;
  [[nodiscard]] std::string text() const;  // "resnet18, batch 16, image 64, fp32, native on cpu"
};

// All of them, backends of the same work as neighbours. Throws bad_input for names that no backend
// or peer knows, numbers that are none, and what is named twice.
[[nodiscard]] std::vector<Combination> combinations(const BenchAxes& axes, const BenchWork& work);

struct LeftOut {
  Combination combination;
  std::string reason;
  bool lacks_memory = false;  // it is too large for this machine
};

struct BenchMatrix {
  StepList steps;
  std::vector<NetworkRecord> networks;  // of the steps
  std::vector<LeftOut> left_out;
  std::vector<std::shared_ptr<Device>> devices;  // that the steps use

  [[nodiscard]] std::vector<Subject> subjects() const;
  [[nodiscard]] std::int64_t available_memory(const std::string& device) const;
};

// Plans all of them, tells plans where asked for, and allocates nothing but the data. Throws
// bad_input when none can be measured.
// `ranks`: this process is one of them, and takes its part of the steps; null: it starts them.
[[nodiscard]] BenchMatrix make_matrix(const std::vector<Combination>& combinations,
                                      const BenchWork& work, CallListener& listener,
                                      Ranks* ranks = nullptr);

// What one of several ranks computes of a configuration.
[[nodiscard]] std::unique_ptr<MeasuredStep> make_step_of_rank(const Combination& combination,
                                                              const BenchWork& work, Ranks& ranks,
                                                              CallListener& listener);

}  // namespace ridgeline
