#include "cli/train_output.h"

#include <algorithm>

#include "base/error.h"
#include "base/text.h"
#include "cli/class_output.h"
#include "cli/options.h"
#include "cli/output.h"
#include "cli/tables.h"

namespace ridgeline::cli {
namespace {

constexpr double kWorthTelling = 0.1;  // share of the time spent waiting for data
constexpr double kLeastSaving = 1e-3;  // seconds; less where no checkpoint is asked for

std::string shares_text(const ProviderShares& shares) {
  std::string text;
  for (const auto& [provider, share] : shares) {
    text += fmt::format("{}{} {:.1f}%", text.empty() ? "" : ", ", provider, 100.0 * share);
  }
  return text;
}

// Tells of a run that waits for its data.
std::string data_wait_text(const TrainResult& result) {
  double waited = 0.0, seconds = 0.0;
  for (const EpochResult& epoch : result.epochs) {
    waited += epoch.data_wait_seconds;
    seconds += epoch.seconds;
  }
  if (!(waited > kWorthTelling * seconds)) return {};
  return fmt::format(
      "data                 {:.0f}% of the time is spent waiting for data ({} of {}): more "
      "--workers "
      "or a pack would help\n",
      100.0 * waited / seconds, duration_text(waited), duration_text(seconds));
}

std::string broken_text(const std::vector<std::string>& images) {
  if (images.empty()) return {};
  return fmt::format("broken images        {}, replaced by the next readable ones\n  {}\n",
                     count_text(std::ssize(images)), listed(images, "\n  "));
}

// The table grows line by line, so its columns have fixed widths; the most important come first.
struct EpochColumn {
  std::string title;
  std::size_t width;
  std::string (*cell)(const EpochResult& epoch);
};

std::vector<EpochColumn> epoch_columns(const TrainConfig& config) {
  using Epoch = const EpochResult&;
  std::vector<EpochColumn> columns = {
      {config.full_batch ? "iteration" : "epoch", 9,
       [](Epoch epoch) { return fmt::format("{}", epoch.epoch); }},
      {"train loss", 10, [](Epoch epoch) { return fmt::format("{:.4f}", epoch.train_loss); }},
      {"train acc", 9, [](Epoch epoch) { return percent_text(epoch.train_accuracy); }},
      {"test loss", 9,
       [](Epoch epoch) {
         return epoch.test_loss ? fmt::format("{:.4f}", *epoch.test_loss) : std::string("n/a");
       }},
      {"test acc", 9, [](Epoch epoch) { return percent_or_na(epoch.test_accuracy); }},
      {"time", 10, [](Epoch epoch) { return duration_text(epoch.seconds); }},
      {"samples/s", 11,
       [](Epoch epoch) { return count_text(std::llround(epoch.samples_per_second())); }},
      {"data wait", 9,
       [](Epoch epoch) {
         return epoch.data_wait_seconds > 0.0 ? duration_text(epoch.data_wait_seconds)
                                              : std::string("0 s");
       }},
      {"test time", 9, [](Epoch epoch) {
         return epoch.test_accuracy ? duration_text(epoch.evaluation_seconds) : std::string("n/a");
       }}};
  if (config.schedule.changes()) {
    columns.insert(columns.begin() + 1, {"lr", 10, [](Epoch epoch) {
                                           return fmt::format("{:.4g}", epoch.learning_rate);
                                         }});
  }
  return columns;
}

// How many of them fit.
std::size_t columns_shown(const std::vector<EpochColumn>& columns) {
  const std::size_t width = table_width();
  std::size_t total = 0;
  for (std::size_t i = 0; i < columns.size(); ++i) {
    total += columns[i].width + (i > 0 ? 2 : 0);
    if (width > 0 && total > width) return std::max<std::size_t>(i, 1);
  }
  return columns.size();
}

}  // namespace

std::string header_text(const TrainReport& report) {
  const TrainConfig& config = report.config;
  const Dataset& train = report.data->train;
  const Executor& executor = report.identity.executor;
  std::string options;
  for (const auto& [name, value] : config.step.model.options) {
    options += fmt::format(", {}={}", name, value);
  }
  std::string text;
  text += fmt::format("model      {}{}, {} parameters\n", config.step.model.name, options,
                      count_text(report.parameters));
  text +=
      fmt::format("data       {}: {}; {} train, {} test, {}x{}x{}, {} classes\n", train.name,
                  train.source, count_text(train.count()), count_text(report.data->test.count()),
                  train.channels, train.height, train.width, train.classes);
  text += fmt::format("input      {}{}{}\n", normalisation_text(config.step),
                      config.crop ? ", cropped at random" : "",
                      config.step.flip ? ", flipped at random" : "");
  text += fmt::format("backend    {} on {}, {} thread{}, {}, seed {}\n", config.plan.backend,
                      executor.device, executor.threads, executor.threads == 1 ? "" : "s",
                      report.identity.work.precision, config.seed);
  if (executor.ranks > 1) {
    text += fmt::format("ranks      {} on {} machine{}, {}{}\n", executor.ranks, executor.nodes,
                        executor.nodes == 1 ? "" : "s", executor.transport,
                        config.synchronise_norms ? ", batch norms synchronised" : "");
  }
  if (config.full_batch) {
    text += fmt::format("training   full batch of {}, {} iterations, {}\n",
                        count_text(config.step.batch), config.epochs,
                        optimizer_text(report.identity.work));
  } else {
    text += fmt::format("training   batch {} (last batch: {}), {} epoch{}, {}\n", config.step.batch,
                        report.identity.work.last_batch, config.epochs,
                        config.epochs == 1 ? "" : "s", optimizer_text(report.identity.work));
  }
  if (config.micro_batch > 0) {
    text += fmt::format("           at most {} samples at a time\n", config.micro_batch);
  }
  if (config.step.clip_norm > 0.0) {
    text += fmt::format("           gradients clipped at norm {}\n", config.step.clip_norm);
  }
  if (config.step.label_smoothing > 0.0) {
    text += fmt::format("           label smoothing {}\n", config.step.label_smoothing);
  }
  if (config.schedule.changes()) {
    text += fmt::format("schedule   {}\n", config.schedule.text());
  }
  text += report.story;
  text += fmt::format("memory     {} state + {} scratch\n", bytes_text(report.state_bytes),
                      bytes_text(report.scratch_bytes));
  text += fmt::format("setup      data {}, plans {}\n", duration_text(report.load_seconds),
                      duration_text(report.setup_seconds));
  return text;
}

std::string table_header(const TrainConfig& config) {
  const std::vector<EpochColumn> columns = epoch_columns(config);
  const std::size_t shown = columns_shown(columns);
  std::string names, rule;
  std::vector<std::string> hidden;
  for (std::size_t i = 0; i < columns.size(); ++i) {
    if (i >= shown) {
      hidden.push_back(columns[i].title);
      continue;
    }
    names += fmt::format("{}{:>{}}", i > 0 ? "  " : "", columns[i].title, columns[i].width);
    rule += (i > 0 ? "  " : "") + std::string(columns[i].width, '-');
  }
  const std::string note =
      hidden.empty() ? ""
                     : fmt::format("(not shown: {}; --wide shows all)\n", joined(hidden, ", "));
  return note + names + '\n' + rule + '\n';
}

std::string table_row(const TrainConfig& config, const EpochResult& epoch) {
  const std::vector<EpochColumn> columns = epoch_columns(config);
  std::string line;
  for (std::size_t i = 0; i < columns_shown(columns); ++i) {
    line += fmt::format("{}{:>{}}", i > 0 ? "  " : "", columns[i].cell(epoch), columns[i].width);
  }
  return line + (epoch.complete ? "\n" : "  interrupted\n");
}

std::string summary_text(const TrainReport& report) {
  const TrainResult& result = report.result;
  const std::string matrix =
      report.confusion ? confusion_text(*report.confusion, report.data->test.class_names) + '\n'
                       : "";
  std::string text;
  const char* unit = report.config.full_batch ? "iteration" : "epoch";
  text += fmt::format("final test accuracy  {}\n", percent_or_na(result.final_test_accuracy));
  if (report.config.target_accuracy) {
    const std::string target = percent_text(*report.config.target_accuracy);
    text += result.target ? fmt::format(
                                "target {}        reached at {} {}, after {} of training ({} with "
                                "evaluations)\n",
                                target, unit, result.target->epoch,
                                duration_text(result.target->training_seconds),
                                duration_text(result.target->total_seconds))
                          : fmt::format("target {}        not reached\n", target);
  }
  text +=
      fmt::format("training time        {} in {} steps (first step {}), {} with evaluations\n",
                  duration_text(result.training_seconds), count_text(result.steps),
                  duration_text(result.first_step_seconds), duration_text(result.total_seconds));
  if (result.checkpoint_seconds > kLeastSaving) {
    text += fmt::format("checkpoints          {} more\n", duration_text(result.checkpoint_seconds));
  }
  if (result.scaling) {
    text += fmt::format("loss scale           {:g}; {} step{} skipped for overflow\n",
                        result.scaling->scale, result.scaling->overflows,
                        result.scaling->overflows == 1 ? "" : "s");
  }
  if (!report.providers.empty()) {
    text +=
        fmt::format("backends             {} of a step's time\n", shares_text(report.providers));
  }
  if (report.joules_per_sample) {
    text += fmt::format("energy               {:.4g} J per training sample\n",
                        *report.joules_per_sample);
  }
  text += data_wait_text(result) + broken_text(result.broken_images);
  if (result.interrupted) text += "interrupted: these are the results so far\n";
  return '\n' + matrix + fitted(text);
}

std::string train_csv(const TrainReport& report) {
  const TrainConfig& config = report.config;
  const Executor& executor = report.identity.executor;
  std::string text =
      "model,backend,device,batch,precision,threads,seed,epoch,train_loss,train_accuracy,test_loss,"
      "test_accuracy,seconds,samples,samples_per_second,data_wait_seconds,evaluation_seconds\n";
  for (const EpochResult& epoch : report.result.epochs) {
    text += csv_line(config.step.model.name, config.plan.backend, executor.device,
                     config.step.batch, report.identity.work.precision, executor.threads,
                     config.seed, epoch.epoch, epoch.train_loss, epoch.train_accuracy,
                     epoch.test_loss, epoch.test_accuracy, epoch.seconds, epoch.samples,
                     epoch.samples_per_second(), epoch.data_wait_seconds, epoch.evaluation_seconds);
  }
  return text;
}

}  // namespace ridgeline::cli
