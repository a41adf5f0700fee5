#include "train/checkpoint_json.h"

#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/json_text.h"
#include "build_info.h"

namespace ridgeline {
namespace {

using Json = nlohmann::ordered_json;

constexpr int kFormat = 1;

template <typename T>
Json or_null(const std::optional<T>& value) {
  return value ? Json(*value) : Json(nullptr);
}

template <typename T>
void read_optional(const Json& json, const char* key, std::optional<T>& value) {
  if (!json.at(key).is_null()) value = json.at(key).get<T>();
}

Json json_of(const ModelConfig& model) {
  Json json = {
      {"name", model.name},       {"channels", model.channels},
      {"height", model.height},   {"width", model.width},
      {"classes", model.classes}, {"init", model.init == InitScheme::he ? "he" : "pytorch"},
      {"options", model.options}};
  if (model.source) {
    json["file"] = std::filesystem::absolute(model.source->path()).string();
    json["file_hash"] = model.source->hash();
  }
  return json;
}

ModelConfig read_model(const Json& json) {
  ModelConfig model;
  model.name = json.at("name").get<std::string>();
  model.channels = json.at("channels").get<std::int64_t>();
  model.height = json.at("height").get<std::int64_t>();
  model.width = json.at("width").get<std::int64_t>();
  model.classes = json.at("classes").get<std::int64_t>();
  model.init = json.at("init") == "he" ? InitScheme::he : InitScheme::pytorch;
  model.options = json.at("options").get<std::map<std::string, std::string>>();
  return model;
}

Json json_of(const EpochResult& epoch) {
  return {{"epoch", epoch.epoch},
          {"learning_rate", epoch.learning_rate},
          {"train_loss", epoch.train_loss},
          {"train_accuracy", epoch.train_accuracy},
          {"test_loss", or_null(epoch.test_loss)},
          {"test_accuracy", or_null(epoch.test_accuracy)},
          {"samples", epoch.samples},
          {"seconds", epoch.seconds},
          {"data_wait_seconds", epoch.data_wait_seconds},
          {"evaluation_seconds", epoch.evaluation_seconds}};
}

EpochResult read_epoch(const Json& json) {
  EpochResult epoch;
  epoch.epoch = json.at("epoch").get<std::int64_t>();
  epoch.learning_rate = json.at("learning_rate").get<double>();
  epoch.train_loss = json.at("train_loss").get<double>();
  epoch.train_accuracy = json.at("train_accuracy").get<double>();
  read_optional(json, "test_loss", epoch.test_loss);
  read_optional(json, "test_accuracy", epoch.test_accuracy);
  epoch.samples = json.at("samples").get<std::int64_t>();
  epoch.seconds = json.at("seconds").get<double>();
  epoch.data_wait_seconds = json.at("data_wait_seconds").get<double>();
  epoch.evaluation_seconds = json.at("evaluation_seconds").get<double>();
  return epoch;
}

Json json_of(const TrainProgress& progress) {
  const TrainResult& result = progress.result;
  Json epochs = Json::array();
  for (const EpochResult& epoch : result.epochs) {
    if (epoch.complete) epochs.push_back(json_of(epoch));
  }
  return {{"epoch", progress.epoch},
          {"step_in_epoch", progress.step_in_epoch},
          {"steps", result.steps},
          {"totals",
           {{"loss", progress.totals.loss},
            {"top1", progress.totals.top1},
            {"top5", progress.totals.top5},
            {"rows", progress.totals.rows}}},
          {"loss", progress.loss},
          {"still_unchanged", progress.still_unchanged},
          {"best", progress.best ? Json{{"epoch", progress.best->epoch},
                                        {"accuracy", progress.best->accuracy},
                                        {"loss", progress.best->loss}}
                                 : Json(nullptr)},
          {"untested", progress.untested ? json_of(*progress.untested) : Json(nullptr)},
          {"first_step_seconds", result.first_step_seconds},
          {"training_seconds", result.training_seconds},
          {"total_seconds", result.total_seconds},
          {"checkpoint_seconds", result.checkpoint_seconds},
          {"final_test_loss", or_null(result.final_test_loss)},
          {"final_test_accuracy", or_null(result.final_test_accuracy)},
          {"target", result.target ? Json{{"epoch", result.target->epoch},
                                          {"training_seconds", result.target->training_seconds},
                                          {"total_seconds", result.target->total_seconds}}
                                   : Json(nullptr)},
          {"loss_scaling", result.scaling ? Json{{"scale", result.scaling->scale},
                                                 {"overflows", result.scaling->overflows},
                                                 {"steps_in_range", result.scaling->steps_in_range}}
                                          : Json(nullptr)},
          {"warnings", result.warnings},
          {"changes", progress.changes},
          {"epochs", std::move(epochs)}};
}

TrainProgress read_progress(const Json& json) {
  TrainProgress progress;
  TrainResult& result = progress.result;
  progress.epoch = json.at("epoch").get<std::int64_t>();
  progress.step_in_epoch = json.at("step_in_epoch").get<std::int64_t>();
  result.steps = json.at("steps").get<std::int64_t>();
  const Json& totals = json.at("totals");
  progress.totals = {totals.at("loss").get<double>(), totals.at("top1").get<double>(),
                     totals.at("top5").get<double>(), totals.at("rows").get<double>()};
  progress.loss = json.at("loss").get<double>();
  progress.still_unchanged = json.at("still_unchanged").get<bool>();
  if (const Json& best = json.at("best"); !best.is_null()) {
    progress.best = {best.at("epoch").get<std::int64_t>(), best.at("accuracy").get<double>(),
                     best.value("loss", 0.0)};
  }
  if (const Json untested = json.value("untested", Json(nullptr)); !untested.is_null()) {
    progress.untested = read_epoch(untested);
  }
  result.first_step_seconds = json.at("first_step_seconds").get<double>();
  result.training_seconds = json.at("training_seconds").get<double>();
  result.total_seconds = json.at("total_seconds").get<double>();
  result.checkpoint_seconds = json.value("checkpoint_seconds", 0.0);
  read_optional(json, "final_test_loss", result.final_test_loss);
  read_optional(json, "final_test_accuracy", result.final_test_accuracy);
  if (const Json& target = json.at("target"); !target.is_null()) {
    result.target = {target.at("epoch").get<std::int64_t>(),
                     target.at("training_seconds").get<double>(),
                     target.at("total_seconds").get<double>()};
  }
  if (const Json scaling = json.value("loss_scaling", Json(nullptr)); !scaling.is_null()) {
    result.scaling = {scaling.at("scale").get<double>(),
                      scaling.at("overflows").get<std::int64_t>(),
                      scaling.at("steps_in_range").get<std::int64_t>()};
  }
  result.warnings = json.at("warnings").get<std::vector<std::string>>();
  progress.changes = json.value("changes", std::vector<std::string>());
  for (const Json& epoch : json.at("epochs")) result.epochs.push_back(read_epoch(epoch));
  if (progress.epoch < 0 || progress.step_in_epoch < 0 || result.steps < 0) {
    bad_input("a count is negative");
  }
  return progress;
}

// Former versions wrote "f32" for every precision. Only fp16 has a loss scale.
void settle_precision(Checkpoint& checkpoint) {
  if (checkpoint.settings[kPrecision] != "f32") return;
  if (checkpoint.progress.result.scaling) {
    checkpoint.settings[kPrecision] = name_of(Precision::fp16);
  } else {
    checkpoint.settings.erase(kPrecision);
  }
}

}  // namespace

std::string checkpoint_text(const Checkpoint& checkpoint) {
  const Json document = {{"format", kFormat},
                         {"ridgeline", build_info::version},
                         {"model", json_of(checkpoint.model)},
                         {"class_names", checkpoint.class_names},
                         {"weights", checkpoint.weights},
                         {"settings", checkpoint.settings},
                         {"surroundings", checkpoint.surroundings},
                         {"best_folder", checkpoint.best},
                         {"progress", json_of(checkpoint.progress)},
                         {"choices", checkpoint.choices},
                         {"library_choices", checkpoint.library_choices},
                         {"kernels", checkpoint.kernels}};
  return json_text(document, 1) + '\n';
}

Checkpoint parse_checkpoint(const std::string& text, const std::string& where) {
  try {
    const Json document = Json::parse(text);
    if (const int format = document.at("format").get<int>(); format != kFormat) {
      bad_input("format {} is unknown; this program reads {}", format, kFormat);
    }
    Checkpoint checkpoint;
    checkpoint.model = read_model(document.at("model"));
    checkpoint.model_file = document.at("model").value("file", "");
    checkpoint.model_hash = document.at("model").value("file_hash", "");
    checkpoint.class_names = document.at("class_names").get<std::vector<std::string>>();
    checkpoint.weights = document.value("weights", "");
    checkpoint.settings = document.at("settings").get<Settings>();
    checkpoint.surroundings = document.at("surroundings").get<Settings>();
    checkpoint.best = document.at("best_folder").get<std::string>();
    checkpoint.progress = read_progress(document.at("progress"));
    checkpoint.choices = document.at("choices").get<PlanChoices>();
    checkpoint.library_choices = document.value("library_choices", PlanChoices());
    checkpoint.kernels = document.value("kernels", std::vector<std::string>());
    settle_precision(checkpoint);
    return checkpoint;
  } catch (const Json::exception& error) {
    bad_input("{}: broken checkpoint: {}", where, error.what());
  } catch (const Error& error) {
    bad_input("{}: broken checkpoint: {}", where, error.what());
  }
}

}  // namespace ridgeline
