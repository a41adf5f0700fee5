#pragma once

// What a run was, as stores up to schema version 4 and results of format 1 tell it: words for
// people. They are read here, once, and nowhere else.

#include "store/identity_fields.h"

namespace ridgeline {

struct WorkV4 {
  std::string kind = "training", model;
  std::string settings;  // "depth=3,filters=8,16": those that were set
  std::int64_t batch = 0;
  std::string image;
  std::int64_t classes = 0;
  std::string precision = "fp32";
  std::string optimizer;  // "sgd momentum 0.9 nesterov weight decay 0.0001"
  std::string data = "synthetic";
  std::int64_t data_samples = 0;
  std::string normalisation;  // "pixels / 255, in [0, 1]", "(pixels / 255 - 0.1,0.2) / 0.3,0.4"
  std::string variant;        // "freeze=features.*,label-smoothing=0.1,loader,crop,full batch"
};

struct ExecutorV4 {
  std::string backend, device;
  int threads = 0;
  std::string options;  // "deterministic,no-pass fusion,workers 4"; of a peer "channels_last,amp"
};

struct RunV4 {
  std::string command, arguments;
  WorkV4 work;
  ExecutorV4 executor;
  std::optional<double> learning_rate, test_samples, target_accuracy;  // numbers of the run
  std::int64_t first_epoch = 0, first_epoch_samples = 0;  // of its first row; 0: there is none
  int processors = 0;                                     // that were usable; 0: not known
};

// A command line of the program, from which what was not kept can be read.
[[nodiscard]] bool has_command_line(const RunV4& run);

// With the defaults of those programs where neither the words nor the command line tell. Words that
// are not understood become an entry of the settings: they keep unlike runs apart.
[[nodiscard]] Identity typed_identity(const RunV4& run);

template <>
struct Fields<WorkV4> {
  using R = WorkV4;
  static constexpr std::tuple list = {Field{"kind", &R::kind, "", ""},
                                      Field{"model", &R::model, "", ""},
                                      Field{"settings", &R::settings, "", ""},
                                      Field{"batch", &R::batch, "", ""},
                                      Field{"image", &R::image, "", ""},
                                      Field{"classes", &R::classes, "", ""},
                                      Field{"precision", &R::precision, "", ""},
                                      Field{"optimizer", &R::optimizer, "", ""},
                                      Field{"data", &R::data, "", ""},
                                      Field{"data_samples", &R::data_samples, "", ""},
                                      Field{"normalisation", &R::normalisation, "", ""},
                                      Field{"variant", &R::variant, "", ""}};
};

template <>
struct Fields<ExecutorV4> {
  using R = ExecutorV4;
  static constexpr std::tuple list = {
      Field{"backend", &R::backend, "", ""}, Field{"device", &R::device, "", ""},
      Field{"threads", &R::threads, "", ""}, Field{"options", &R::options, "", ""}};
};

}  // namespace ridgeline
