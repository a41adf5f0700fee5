#include "documents/train.h"

#include <nlohmann/json.hpp>

#include "base/json_text.h"
#include "documents/classes.h"
#include "store/identity_fields.h"

namespace ridgeline {
namespace {

using Json = nlohmann::ordered_json;

}  // namespace

Json epoch_json(const EpochResult& epoch) {
  return {{"epoch", epoch.epoch},
          {"learning_rate", epoch.learning_rate},
          {"train_loss", epoch.train_loss},
          {"train_accuracy", epoch.train_accuracy},
          {"test_loss", or_null(epoch.test_loss)},
          {"test_accuracy", or_null(epoch.test_accuracy)},
          {"seconds", epoch.seconds},
          {"samples", epoch.samples},
          {"samples_per_second", epoch.samples_per_second()},
          {"data_wait_seconds", epoch.data_wait_seconds},
          {"checkpoint_seconds", epoch.checkpoint_seconds},
          {"evaluation_seconds", epoch.evaluation_seconds},
          {"complete", epoch.complete}};
}

std::string train_json(const TrainReport& report) {
  const TrainConfig& config = report.config;
  const TrainResult& result = report.result;
  const Dataset& train = report.data->train;
  const Executor& executor = report.identity.executor;
  Json epochs = Json::array();
  for (const EpochResult& epoch : result.epochs) epochs.push_back(epoch_json(epoch));
  Json document = {
      {"model", config.step.model.name},
      {"options", config.step.model.options},
      {"parameters", report.parameters},
      {"data",
       {{"name", train.name},
        {"source", train.source},
        {"train_samples", train.count()},
        {"test_samples", report.data->test.count()},
        {"image", fmt::format("{}x{}x{}", train.channels, train.height, train.width)},
        {"classes", train.classes},
        {"normalisation", normalisation_text(config.step)},
        {"crop", config.crop},
        {"flip", config.step.flip},
        {"workers", config.workers},
        {"decoder", name_of(config.decoder)}}},
      {"backend", config.plan.backend},
      {"device", executor.device},
      {"precision", report.identity.work.precision},
      {"threads", executor.threads},
      {"ranks", executor.ranks},
      {"micro_batch", config.micro_batch},
      {"clip_norm", config.step.clip_norm},
      {"seed", config.seed},
      {"batch", config.step.batch},
      {"full_batch", config.full_batch},
      {"last_batch", report.identity.work.last_batch},
      {"optimizer", optimizer_text(report.identity.work)},
      {"learning_rate", config.learning_rate},
      {"schedule", config.schedule.text()},
      {"label_smoothing", config.step.label_smoothing},
      {"state_bytes", report.state_bytes},
      {"scratch_bytes", report.scratch_bytes},
      {"load_seconds", report.load_seconds},
      {"setup_seconds", report.setup_seconds},
      {"first_step_seconds", result.first_step_seconds},
      {"training_seconds", result.training_seconds},
      {"total_seconds", result.total_seconds},
      {"checkpoint_seconds", result.checkpoint_seconds},
      {"steps", result.steps},
      {"energy_joules_per_sample", or_null(report.joules_per_sample)},
      {"epochs", std::move(epochs)},
      {"final_test_accuracy", or_null(result.final_test_accuracy)},
      {"final_test_loss", or_null(result.final_test_loss)},
      {"target_accuracy", or_null(config.target_accuracy)},
      {"target_reached", result.target ? Json{{"epoch", result.target->epoch},
                                              {"training_seconds", result.target->training_seconds},
                                              {"total_seconds", result.target->total_seconds}}
                                       : Json(nullptr)},
      {"loss_scaling", result.scaling ? Json{{"scale", result.scaling->scale},
                                             {"overflows", result.scaling->overflows}}
                                      : Json(nullptr)},
      {"interrupted", result.interrupted},
      {"warnings", result.warnings},
      {"broken_images", result.broken_images},
      {"error", text_or_null(report.error)},
      {"kernels", report.kernels},
      {"recorded_step", report.recorded},
      {"work", to_json(report.identity.work)},
      {"executor", to_json(executor)}};
  Json shares = Json::object();
  for (const auto& [provider, share] : report.providers) shares[provider] = share;
  document["provider_shares"] = std::move(shares);
  if (report.confusion) {
    document["confusion"] = confusion_json(*report.confusion, report.data->test.class_names);
  }
  return json_document(document);
}

}  // namespace ridgeline
