#pragma once

// What a call can be told, as options that several commands share, and what becomes of them.

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "backends/auto.h"
#include "data/dataset.h"
#include "data/image_transform.h"
#include "devices/image_place.h"
#include "lab/listener.h"
#include "store/identity.h"
#include "train/schedule.h"
#include "train/step_graph.h"

namespace ridgeline {

// What to compute and who computes it.
struct RunOptions {
  std::string model;
  std::vector<std::string> settings;  // NAME=VALUE
  std::string init = "pytorch";
  std::string backend;  // empty: the device's usual one
  std::string device = "cpu";
  std::string precision = "fp32";
  std::int64_t batch = 64;
  std::optional<std::int64_t> classes;  // nothing: the model's own
  std::int64_t seed = 0;
  int threads = 0;
  std::vector<std::string> freeze;  // patterns of parameter names
  bool recompute = false;
  bool deterministic = false;
  std::vector<std::string> disabled_passes;
  bool print_plan = false, explain = false;
};
struct OptimizerOptions {
  std::string name = "sgd";
  std::optional<double> learning_rate;  // nothing: the optimizer's usual one
  std::optional<double> momentum;       // nothing: 0.9 for sgd, none for adam
  bool nesterov = false;
  std::optional<double> weight_decay;  // nothing: the optimizer's usual one
  double label_smoothing = 0.0;
};
[[nodiscard]] double momentum_of(const OptimizerOptions& options);

struct ScheduleOptions {
  std::string name = "constant";
  std::optional<std::int64_t> step_size;
  std::optional<double> gamma;
  std::int64_t warmup = 0;
};
[[nodiscard]] Schedule schedule_of(const ScheduleOptions& options);

// Checks what no deeper layer would check, and sets the thread count.
void apply(const RunOptions& options);

// Throws bad_input for a rate of readings that is none.
void check_telemetry(double hz);
// For a name of --decoder. "auto" is the GPU for image files where the device is one. Bad_input
// with the reason where the device or the data has no use for it.
[[nodiscard]] Decoder decoder_of(const std::string& name, const Dataset& data,
                                 const Device& device);
// Threads that decode images; 0: one for each usable processor.
[[nodiscard]] int checked_workers(int workers);

[[nodiscard]] ModelConfig model_config(const RunOptions& options);
// For a backend's name; empty: what is usual on the device, native or auto. Throws bad_input for an
// unknown or unavailable one.
[[nodiscard]] PlanRequest plan_request(const RunOptions& options, const std::string& backend);
// The listener hears how far `auto` is with its search. REQUIRES: it lives as long as plans are
// made.
void tell_of_search(PlanRequest& request, CallListener& listener);
// Throws bad_input with the reason where the device cannot compute in it.
[[nodiscard]] Precision precision_of(const RunOptions& options, const Device& device);
[[nodiscard]] OptimizerAttributes optimizer_attributes(const OptimizerOptions& options);
[[nodiscard]] double learning_rate(const OptimizerOptions& options);

// How gradients travel between ranks, for a name of --reduce.
inline constexpr std::array<std::string_view, 3> kReduceNames = {"fp32", "bf16", "fp16"};
[[nodiscard]] DType wire_type(const std::string& reduce);
// The name in a run's identity; empty: as they are.
[[nodiscard]] std::string reduce_name(DType wire);

// Fits a model to images: channels, height, width and classes of the data.
void fit_to_data(ModelConfig& model, const Dataset& data);

// "224" or "224x224": the data has its own channels.
[[nodiscard]] FrameSize parse_frame(const std::string& text, const char* option = "--image");
// The model's images in the size told; nothing told: as they are.
void set_image(ModelConfig& model, const std::string& text);
// "28", "28x28" or "1x28x28"; where channels are not told they are `channels`.
[[nodiscard]] ImageShape parse_image(const std::string& text, std::int64_t channels,
                                     const char* option = "--image");

// "unit", "mnist", "imagenet" or MEAN,...,DEVIATION,...: sets mean and deviation of the step.
void set_normalisation(StepSpec& step, const std::string& text);
// What is usual for the data: imagenet for photographs in colour, else unit.
[[nodiscard]] std::string usual_normalisation(const Dataset& data);
[[nodiscard]] std::string normalisation_text(const StepSpec& step);

// "; did you mean 'b'? Known: a, b, c": the end of a message about an unknown name.
[[nodiscard]] std::string known_names(std::string_view name,
                                      std::span<const std::string_view> names);

// The position of a value in a fixed list; bad_input with the nearest name when it is not there.
[[nodiscard]] std::size_t choice_of(const char* option, const std::string& value,
                                    std::span<const std::string_view> names);

}  // namespace ridgeline
