#include "audit/roles.h"

#include <algorithm>
#include <array>
#include <vector>

#include "base/error.h"
#include "base/suggest.h"

namespace ridgeline::audit {
namespace {

constexpr Dimension kNone = Dimension::none;

constexpr std::array kRoles = std::to_array<RoleInfo>({
    {Role::none, "none", kNone, true, false, "not used"},
    {Role::run, "run", kNone, true, true, "which run the row belongs to"},
    {Role::model, "model", kNone, true, true, "name of the network"},
    {Role::batch, "batch", kNone, false, true, "samples per iteration"},
    {Role::image, "image", kNone, true, true, "size of the images: 224, 64x64"},
    {Role::device, "device", kNone, true, true, "hardware: T4, RTX 4080 laptop, cpu"},
    {Role::backend, "backend", kNone, true, true, "framework or implementation"},
    {Role::precision, "precision", kNone, true, true, "fp32, tf32, bf16, fp16, amp"},
    {Role::dataset, "dataset", kNone, true, true, "name of the data"},
    {Role::classes, "classes", kNone, false, true, "number of classes"},
    {Role::frozen, "frozen", kNone, true, true, "layers that are not trained"},
    {Role::seed, "seed", kNone, true, true, "of the random numbers"},
    {Role::condition, "condition", kNone, true, true, "must be equal in a comparison"},
    {Role::operation, "operation", kNone, true, true, "the part of a step that the row is"},
    {Role::phase, "phase", kNone, true, true, "warmup or measured"},
    {Role::kind, "kind", kNone, true, true, "training or inference"},
    {Role::epoch, "epoch", kNone, false, false, "number of the epoch"},
    {Role::iteration, "iteration", kNone, false, false, "number of the iteration"},
    {Role::timestamp, "timestamp", kNone, true, false, "when"},
    {Role::iterations, "iterations", kNone, false, false, "iterations that are claimed"},
    {Role::recorded_iterations, "recorded-iterations", kNone, false, false,
     "iterations that were recorded"},
    {Role::epochs, "epochs", kNone, false, false, "number of epochs"},
    {Role::batches_per_epoch, "batches-per-epoch", kNone, false, false, "iterations of an epoch"},
    {Role::samples, "samples", kNone, false, false, "samples of an epoch or of the set"},
    {Role::test_samples, "test-samples", kNone, false, false, "samples of the test set"},
    {Role::data_samples, "data-samples", kNone, false, false, "samples that the data has"},
    {Role::repeats, "repeats", kNone, false, false, "measurements behind the number"},
    {Role::readings, "readings", kNone, false, false, "sensor readings behind the utilisation"},
    {Role::batch_time, "batch-time", Dimension::time, false, false, "time of one iteration"},
    {Role::image_time, "image-time", Dimension::time, false, false, "time of one image"},
    {Role::epoch_time, "epoch-time", Dimension::time, false, false, "time of one epoch"},
    {Role::total_time, "total-time", Dimension::time, false, false, "time of the whole training"},
    {Role::time, "time", Dimension::time, false, false, "time of what the row is"},
    {Role::kernel_time, "kernel-time", Dimension::time, false, false, "time in which kernels ran"},
    {Role::late_time, "late-time", Dimension::time, false, false,
     "kernels after the end of their step"},
    {Role::deviation, "deviation", kNone, false, false, "standard deviation of the measure"},
    {Role::throughput, "throughput", Dimension::throughput, false, false, "samples per second"},
    {Role::accuracy, "accuracy", Dimension::share, false, false, "test accuracy"},
    {Role::final_accuracy, "final-accuracy", Dimension::share, false, false,
     "accuracy after the last epoch"},
    {Role::best_accuracy, "best-accuracy", Dimension::share, false, false, "highest accuracy"},
    {Role::train_accuracy, "train-accuracy", Dimension::share, false, false,
     "accuracy on the training set"},
    {Role::majority, "majority", Dimension::share, false, false, "share of the largest class"},
    {Role::loss, "loss", kNone, false, false, "value of the loss"},
    {Role::utilisation, "utilisation", Dimension::share, false, false, "of the device"},
    {Role::memory, "memory", Dimension::bytes, false, false, "memory in use"},
    {Role::parameter_memory, "parameter-memory", Dimension::bytes, false, false,
     "memory of the parameters"},
    {Role::power, "power", Dimension::power, false, false, "power of the device"},
    {Role::parameters, "parameters", kNone, false, false, "number of parameters"},
    {Role::flops, "flops", Dimension::flops, false, false, "FLOPs of one image"},
    {Role::macs, "macs", Dimension::macs, false, false, "multiply-accumulates of one image"},
    {Role::flop_rate, "flop-rate", Dimension::flop_rate, false, false, "achieved FLOP/s"},
    {Role::peak_rate, "peak-rate", Dimension::flop_rate, false, false, "peak FLOP/s"},
    {Role::bandwidth, "bandwidth", Dimension::bandwidth, false, false, "memory bandwidth"},
    {Role::intensity, "intensity", Dimension::intensity, false, false, "FLOP per byte"},
    {Role::efficiency, "efficiency", Dimension::share, false, false, "share of the peak or roof"},
    {Role::speedup, "speedup", Dimension::ratio, false, false, "how many times as fast"},
    {Role::speedup_low, "speedup-low", Dimension::ratio, false, false, "lower end of its interval"},
    {Role::speedup_high, "speedup-high", Dimension::ratio, false, false,
     "upper end of its interval"},
});

// The first rule with a phrase that the title holds decides.
struct TitleRule {
  Role role;
  std::vector<std::string_view> phrases;
};

const std::vector<TitleRule>& title_rules() {
  static const std::vector<TitleRule> rules = {
      {Role::none,
       {"schedule", "warmup epochs", "first epoch", "loss scale", "last batch", "full batch",
        "target accuracy", "notes", "note", "model hash"}},
      {Role::speedup, {"speedup", "speed up", "faster", "acceleration"}},
      {Role::readings, {"readings", "snapshots", "utilisation samples", "utilization samples"}},
      {Role::recorded_iterations,
       {"recorded iterations", "rows per configuration", "iterations recorded", "actual iterations",
        "iterations in file"}},
      {Role::batches_per_epoch, {"batches per epoch", "iterations per epoch", "steps per epoch"}},
      {Role::late_time, {"kernels beyond the step"}},
      {Role::kernel_time, {"kernel time", "kernels"}},
      {Role::efficiency, {"efficiency", "mfu", "of peak", "share of roof", "over roof"}},
      {Role::utilisation, {"utilisation", "utilization", "util", "gpu load", "cpu load"}},
      {Role::intensity, {"intensity"}},
      {Role::peak_rate,
       {"peak flops", "peak gflops", "peak tflops", "peak rate", "peak compute", "peak performance",
        "theoretical peak"}},
      {Role::bandwidth, {"bandwidth"}},
      {Role::majority, {"majority", "largest class", "majority share"}},
      {Role::train_accuracy, {"train accuracy", "train acc", "training accuracy"}},
      {Role::final_accuracy,
       {"final accuracy", "final test accuracy", "final acc", "last accuracy", "final test acc"}},
      {Role::best_accuracy,
       {"best accuracy", "max accuracy", "maximum accuracy", "best acc", "maximum test accuracy",
        "max test accuracy", "peak accuracy"}},
      {Role::accuracy, {"accuracy", "acc", "top1", "top 1", "acc1", "acc 1"}},
      {Role::deviation, {"std", "stddev", "stdev", "deviation", "sd"}},
      {Role::parameter_memory,
       {"parameter memory", "parameters memory", "parameter size", "model size", "weights size",
        "parameter bytes"}},
      {Role::memory, {"memory", "mem", "vram", "ram", "rss"}},
      {Role::throughput, {"throughput", "images per second", "samples per second"}},
      {Role::parameters, {"parameters", "params", "param count", "trainable parameters"}},
      {Role::macs, {"macs", "madds", "multiply adds"}},
      {Role::flop_rate,
       {"achieved flops", "achieved gflops", "achieved tflops", "achieved", "attained", "flop rate",
        "flops rate", "flops per second"}},
      {Role::flops, {"flops", "flop", "gflops"}},
      {Role::batches_per_epoch, {"batches"}},
      {Role::data_samples,
       {"data samples", "dataset samples", "dataset size", "dataset rows", "file rows",
        "rows in file"}},
      {Role::test_samples, {"test samples", "test images", "test set size"}},
      {Role::none, {"workers", "threads"}},
      {Role::repeats, {"repeats", "repetitions", "runs", "n runs", "trials"}},
      {Role::samples, {"samples", "train samples", "training samples", "training images"}},
      {Role::power, {"power"}},
      {Role::loss, {"loss"}},
      {Role::classes, {"classes", "num classes"}},
      {Role::image, {"image size", "image", "resolution", "input size", "img size", "crop"}},
      {Role::frozen, {"frozen", "freeze", "frozen layers"}},
      {Role::precision, {"precision", "dtype", "amp"}},
      {Role::condition,
       {"normalisation", "normalization", "optimizer", "learning rate", "lr", "augment",
        "augmentation", "gradient scaling", "options", "settings"}},
      {Role::dataset, {"dataset", "data"}},
      {Role::seed, {"seed"}},
      {Role::timestamp, {"timestamp", "date", "started"}},
      {Role::kind, {"kind", "mode", "run kind"}},
      {Role::phase, {"phase", "stage"}},
      {Role::model, {"model", "network", "architecture", "arch"}},
      {Role::backend,
       {"backend", "executor", "framework", "implementation", "library", "configuration"}},
      {Role::device,
       {"device", "gpu", "hardware", "accelerator", "card", "machine", "env", "environment",
        "platform", "processor"}},
      {Role::operation,
       {"operation", "operator", "op", "ops", "layer", "kernel", "component", "category", "sensor",
        "step name", "activity"}},
      {Role::run, {"run", "run id", "uuid", "experiment"}},
      {Role::epochs, {"epochs", "num epochs"}},
      {Role::iterations, {"iterations", "claimed iterations", "num iterations"}},
      {Role::batch, {"batch size", "batch", "bs", "batchsize", "minibatch"}},
      {Role::epoch, {"epoch"}},
      {Role::iteration, {"iteration", "iter", "step", "batch idx", "batch index"}},
  };
  return rules;
}

bool has_phrase(const std::string& words, std::string_view phrase) {
  const std::string padded = ' ' + words + ' ';
  return padded.find(' ' + std::string(phrase) + ' ') != std::string::npos;
}

bool has_any(const std::string& words, std::initializer_list<std::string_view> phrases) {
  return std::ranges::any_of(phrases,
                             [&](std::string_view phrase) { return has_phrase(words, phrase); });
}

// Parts of a measurement and the ends of its range: useful to people, not checked.
bool is_side_figure(const std::string& words) {
  return has_any(
      words,
      {"min",  "minimum", "max",      "maximum",   "p50",        "p90",  "p95",    "p99",  "low",
       "high", "ci",      "iqr",      "at",        "begin",      "end",  "wait",   "data", "upload",
       "copy", "forward", "backward", "optimizer", "evaluation", "eval", "device", "start"});
}

Role time_role(const std::string& words) {
  if (has_any(words, {"std", "stddev", "stdev", "deviation", "sd"})) return Role::deviation;
  if (has_any(words, {"kernels beyond the step"})) return Role::late_time;
  if (has_any(words, {"kernel"})) return Role::kernel_time;
  if (is_side_figure(words)) return Role::none;
  if (has_any(words, {"per image", "image", "per sample", "inference latency"})) {
    return Role::image_time;
  }
  if (has_any(words, {"epoch"})) return Role::epoch_time;
  if (has_any(words, {"batch", "step", "iteration", "iter", "latency", "wall"})) {
    return Role::batch_time;
  }
  if (has_any(words, {"total", "training", "train", "runtime", "overall", "duration"})) {
    return Role::total_time;
  }
  return Role::time;
}

Role role_by_phrase(const std::string& words) {
  if (has_any(words, {"time", "latency", "duration", "runtime", "elapsed"}) &&
      !has_any(words, {"speedup", "speed up"})) {
    return time_role(words);
  }
  for (const TitleRule& rule : title_rules()) {
    for (const std::string_view phrase : rule.phrases) {
      if (has_phrase(words, phrase)) return rule.role;
    }
  }
  return Role::none;
}

// "max Acc@1" is not the accuracy of an epoch, and "speed-up of T4 low" the end of an interval.
Role role_by_words(const std::string& words) {
  const Role role = role_by_phrase(words);
  if (role == Role::speedup && words.ends_with(" low")) return Role::speedup_low;
  if (role == Role::speedup && words.ends_with(" high")) return Role::speedup_high;
  if (role != Role::accuracy) return role;
  if (has_any(words, {"max", "maximum", "best", "highest"})) return Role::best_accuracy;
  if (has_any(words, {"final", "last"})) return Role::final_accuracy;
  return has_any(words, {"train", "training"}) ? Role::train_accuracy : role;
}

}  // namespace

std::span<const RoleInfo> all_roles() { return kRoles; }

const RoleInfo& info_of(Role role) { return *std::ranges::find(kRoles, role, &RoleInfo::role); }

Role role_named(std::string_view name) {
  std::vector<std::string_view> names;
  for (const RoleInfo& info : kRoles) {
    if (info.name == name) return info.role;
    names.push_back(info.name);
  }
  bad_input("--map: unknown role '{}'{}; 'ridgeline audit --roles' lists them", name,
            did_you_mean(name, names));
}

Role role_of_title(const Title& title) {
  const Dimension dimension = title.unit ? title.unit->dimension : Dimension::none;
  const std::string& words = title.words;
  switch (dimension) {
    case Dimension::time:
      // "min" behind another unit of time is the smallest, not minutes.
      if (title.unit->name == "min" && has_any(words, {"ms", "s", "time"})) return Role::none;
      return time_role(words);
    case Dimension::throughput:
      if (has_any(words, {"std", "stddev", "stdev", "deviation", "sd"})) return Role::deviation;
      return is_side_figure(words) ? Role::none : Role::throughput;
    case Dimension::flop_rate:
      return has_any(words, {"peak", "theoretical", "roof"}) ? Role::peak_rate : Role::flop_rate;
    case Dimension::flops:
      if (has_any(words, {"peak", "theoretical"})) return Role::peak_rate;
      if (has_any(words, {"achieved", "attained", "sustained", "performance"})) {
        return Role::flop_rate;
      }
      return Role::flops;
    case Dimension::macs:
      return Role::macs;
    case Dimension::intensity:
      return Role::intensity;
    case Dimension::bandwidth:
      return Role::bandwidth;
    case Dimension::power:
      return Role::power;
    case Dimension::bytes:
      if (has_any(words, {"parameter", "parameters", "weights", "model"})) {
        return Role::parameter_memory;
      }
      return has_any(words, {"memory", "mem", "vram", "ram", "rss", "peak", "allocated"}) ||
                     words.empty()
                 ? Role::memory
                 : Role::none;
    case Dimension::share: {
      // A share of something else, "kernel share (%)", is none of ours.
      const Role role = role_by_words(words);
      return info_of(role).dimension == Dimension::share || role == Role::deviation ? role
                                                                                    : Role::none;
    }
    default:
      return role_by_words(words);
  }
}

}  // namespace ridgeline::audit
