// Accuracies, epochs and the size of the data.

#include <algorithm>
#include <cmath>
#include <numeric>

#include "audit/checks/checks.h"
#include "audit/context.h"
#include "base/text.h"

namespace ridgeline::audit {
namespace {

// The highest accuracy of a group, whatever column tells it.
std::optional<double> best_accuracy(const Table& table, const Group& group) {
  std::optional<double> best;
  for (const std::size_t row : group.rows) {
    for (const Role role : {Role::accuracy, Role::final_accuracy, Role::best_accuracy}) {
      const auto value = table.number(role, row);
      if (value && (!best || *value > *best)) best = value;
    }
  }
  return best;
}

void judge_epoch_size(Context& context, const Group& group, Findings& findings) {
  const Table& table = context.table();
  const std::size_t row = group.first();
  const auto batches = table.number(Role::batches_per_epoch, row);
  const auto batch = context.batch(row);
  if (!batches || !batch) return;
  const DatasetFacts* data = context.dataset(row);
  std::optional<double> whole = table.number(Role::data_samples, row);
  if (!whole) whole = table.number(Role::samples, row);
  if (!whole && data != nullptr && data->training > 0) whole = static_cast<double>(data->training);
  if (!whole || *batches * *batch >= 0.9 * *whole) return;
  findings.push_back(
      found("data-size", Severity::error, Confidence::likely,
            fmt::format("{}: {} batches of {} are {} samples, {} of the {} that an epoch has",
                        context.label(row), plain_number(*batches), plain_number(*batch),
                        plain_number(*batches * *batch), share_text(*batches * *batch / *whole),
                        plain_number(*whole)),
            "this is no epoch: times and accuracies of it cannot be compared with those of others",
            group.rows));
}

}  // namespace

void check_chance(Context& context, Findings& findings) {
  const Table& table = context.table();
  for (const Group& group : context.groups()) {
    const std::size_t row = group.first();
    const auto best = best_accuracy(table, group);
    if (!best) continue;
    const auto classes = context.classes(row);
    const double chance = classes && *classes > 1 ? 1.0 / static_cast<double>(*classes) : 0.0;
    const auto majority = table.number(Role::majority, row);
    if (chance > 0.0 && *best <= 1.1 * chance) {
      findings.push_back(
          found("chance", Severity::warning, Confidence::certain,
                fmt::format("{}: the accuracy is {}, chance among {} classes is {}",
                            context.label(row), share_text(*best), *classes, share_text(chance)),
                "the network learnt nothing: diverged, a wrong learning rate or "
                "wrong labels",
                group.rows));
    } else if (majority && std::abs(*best - *majority) < 0.003) {
      findings.push_back(
          found("chance", Severity::warning, Confidence::likely,
                fmt::format("{}: the accuracy is {}, the largest class has {}", context.label(row),
                            share_text(*best), share_text(*majority)),
                "always naming the largest class gives the same", group.rows));
    }
  }
}

void check_final_accuracy(Context& context, Findings& findings) {
  const Table& table = context.table();
  const Column* final_one = table.find(Role::final_accuracy);
  if (final_one == nullptr) return;
  for (const Group& group : context.groups()) {
    const std::vector<double> series = context.series(group, Role::accuracy);
    if (series.size() < 3 || !final_one->has(group.first())) continue;
    const double claimed = final_one->value(group.first());
    const double mean =
        std::accumulate(series.begin(), series.end(), 0.0) / static_cast<double>(series.size());
    const double digits = 0.0006;
    if (std::abs(claimed - mean) > digits || std::abs(claimed - series.back()) <= 2.0 * digits) {
      continue;
    }
    findings.push_back(found("final-accuracy", Severity::error, Confidence::certain,
                             fmt::format("{}: the final accuracy of {} is the mean of {} epochs; "
                                         "the last one has {}",
                                         context.label(group.first()), share_text(claimed),
                                         series.size(), share_text(series.back())),
                             "give the last epoch's, or the best one's and say so", group.rows));
  }
  // Without the epochs only a hint: every run ends well below its best.
  const Column* best = table.find(Role::best_accuracy);
  if (best == nullptr || table.find(Role::epoch) != nullptr) return;
  std::vector<std::size_t> below;
  std::size_t rows = 0;
  for (std::size_t row = 0; row < table.rows(); ++row) {
    if (!best->has(row) || !final_one->has(row)) continue;
    ++rows;
    if (best->value(row) - final_one->value(row) > 0.004) below.push_back(row);
  }
  if (rows < 2 || below.size() != rows) return;
  findings.push_back(
      found("final-accuracy", Severity::warning, Confidence::possible,
            fmt::format("all {} final accuracies are clearly below the best ones: {} and {}", rows,
                        share_text(final_one->value(below.front())),
                        share_text(best->value(below.front()))),
            "a mean over the epochs looks like this; the last of some epochs is mostly near the "
            "best",
            below));
}

void check_data_size(Context& context, Findings& findings) {
  const Table& table = context.table();
  for (const Group& group : context.groups()) {
    const std::size_t row = group.first();
    judge_epoch_size(context, group, findings);
    const DatasetFacts* data = context.dataset(row);
    const auto samples = table.number(Role::samples, row);
    const auto there = table.number(Role::data_samples, row);
    const auto add = [&](double claimed, double right, const std::string& what,
                         Confidence confidence) {
      findings.push_back(found("data-size", Severity::error, confidence,
                               fmt::format("{}: {} samples, {} has {}", context.label(row),
                                           count_text(static_cast<std::int64_t>(claimed)), what,
                                           count_text(static_cast<std::int64_t>(right))),
                               "padding, another file, or a number from another source",
                               group.rows));
    };
    if (samples && there && *samples > *there) {
      add(*samples, *there, "the data", Confidence::certain);
    } else if (samples && !there && data != nullptr && data->training > 0 &&
               *samples > static_cast<double>(data->training + data->test)) {
      add(*samples, static_cast<double>(data->training),
          "the training set of " + table.word(Role::dataset, row), Confidence::likely);
    }
    const auto test = table.number(Role::test_samples, row);
    if (test && data != nullptr && data->test > 0 && *test > static_cast<double>(data->test)) {
      add(*test, static_cast<double>(data->test),
          "the test set of " + table.word(Role::dataset, row), Confidence::likely);
    }
  }
}

}  // namespace ridgeline::audit
