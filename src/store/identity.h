#pragma once

// What a run was, as typed values: Work is what is computed, Executor is who computes it and how.
// Runs of equal work can be compared; runs that are equal in both are repetitions of each other.
// The fields are listed once, with all that is known of them, in fields.h.

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace ridgeline {

using Settings = std::map<std::string, std::string>;
using NameList = std::vector<std::string>;  // sorted, each name once
using NumberList = std::vector<double>;

struct ImageShape {
  std::int64_t channels = 0, height = 0, width = 0;

  [[nodiscard]] std::string text() const;  // "3x224x224"; empty: not known
  [[nodiscard]] double pixels() const;     // of all channels
  // Of text(); nothing for anything else.
  [[nodiscard]] static std::optional<ImageShape> parse(std::string_view text);
  auto operator<=>(const ImageShape&) const = default;
};

struct Work {
  std::string kind = "training";  // or "inference", "evaluation"
  // The network.
  std::string model;
  std::string model_hash;  // of the file that the network comes from; empty: it is of the zoo
  Settings settings;       // every option of the model with its value
  ImageShape image;
  std::int64_t classes = 0;
  std::string init = "pytorch";  // how weights begin, where no file gives them
  std::string weights;  // the file that they come from: its name and a hash of its contents
  NameList freeze;      // patterns of parameters that are not trained
  // One iteration.
  std::int64_t batch = 0;
  bool full_batch = false;  // the whole data set is one batch
  // The most samples that a process computes at a time, gradients accumulated; 0: all of its own.
  std::int64_t micro_batch = 0;
  std::string precision = "fp32";
  std::string optimizer;  // "sgd", "adam", "adamw"; empty: nothing is trained
  std::optional<double> learning_rate;
  double momentum = 0.0;
  bool nesterov = false;
  double weight_decay = 0.0;
  double label_smoothing = 0.0;
  double clip_norm = 0.0;            // the largest norm of all gradients together; 0: any
  bool synchronised_norms = false;   // batch norms over the samples of all ranks
  std::optional<double> loss_scale;  // what the loss scale of fp16 begins with, where it was chosen
  // The data.
  std::string data = "synthetic";
  std::int64_t data_samples = 0;  // that batches are drawn from; 0: one batch lies on the device
  std::int64_t test_samples = 0;  // that accuracies are made from; 0: none
  NumberList normalisation;      // mean of each channel, then their deviations; empty: pixels / 255
  std::string augment = "none";  // "flip"; "crop": random resized crop and flip
  bool loader = false;           // every iteration gets its batch through the loader
  std::string last_batch = "smaller";
  // A whole training; an iteration that is measured again and again has none of it.
  std::int64_t epochs = 0;       // asked for; with full batches iterations
  std::int64_t first_epoch = 0;  // that were done before: a training that was resumed
  std::optional<double> target_accuracy;
  std::string schedule = "constant";
  std::int64_t schedule_step = 0;  // epochs between two drops of schedule "step"
  double schedule_gamma = 0.0;     // the factor of a drop
  std::int64_t warmup_epochs = 0;

  bool operator==(const Work&) const = default;
};

// The transport of ranks that exchange nothing.
inline constexpr const char* kUnconnected = "unconnected";

struct Executor {
  std::string backend;  // "native", "auto", "torch-cpu"
  std::string device;   // "cpu", "cuda:0"
  int threads = 0;
  int workers = 0;                // threads of the loader; 0: there is none
  std::string decoder = {};       // of JPEG images: "gpu", "nvjpeg"; empty: the host
  int ranks = 1;                  // processes that share the work
  int nodes = 1;                  // machines that they run on
  std::string transport = {};     // what joins them: "Open MPI v4.1.4"; empty: there is one
  std::int64_t bucket_bytes = 0;  // of gradients that travel together; 0: none do
  std::string reduce = {};        // "bf16", "fp16": how they travel; empty: as they are
  bool deterministic = false;
  bool recompute = false;         // outputs of batch norms are computed again, not kept
  NameList disabled_passes = {};  // of planning
  NameList modes = {};            // of a peer: "channels_last", "compile"

  bool operator==(const Executor&) const = default;
};

}  // namespace ridgeline
