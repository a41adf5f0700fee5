#include "measure/iterations/result.h"

#include "analysis/stats/series.h"
#include "base/error.h"

namespace ridgeline {
namespace {

// Blocks of different processes are different blocks.
constexpr std::int64_t kBlocksOfAProcess = std::int64_t{1} << 32;

struct Series {
  std::vector<double> values;
  std::vector<std::int64_t> blocks;

  void add(const Sample& sample, double value) {
    values.push_back(value);
    blocks.push_back(sample.process * kBlocksOfAProcess + sample.block);
  }
  void add(const Sample& sample, const std::optional<double>& value) {
    if (value) add(sample, *value);
  }
  [[nodiscard]] std::optional<double> median() const {
    if (values.empty()) return std::nullopt;
    return median_of(values);
  }
};

std::int64_t distinct(const std::vector<std::int64_t>& blocks) {
  std::int64_t count = 0;
  for (std::size_t i = 0; i < blocks.size(); ++i) {
    count += i == 0 || blocks[i] != blocks[i - 1] ? 1 : 0;
  }
  return count;
}

}  // namespace

ResultCollector::ResultCollector(std::vector<Subject> subjects) {
  for (Subject& subject : subjects) {
    results_.emplace_back();
    results_.back().subject = std::move(subject);
  }
}

void ResultCollector::prepared(std::size_t candidate, const Preparation& preparation) {
  results_[candidate].preparation = preparation;
}

void ResultCollector::measured(std::size_t candidate, std::span<const Sample> samples) {
  std::vector<Sample>& all = results_[candidate].samples;
  all.insert(all.end(), samples.begin(), samples.end());
}

void ResultCollector::readings(std::size_t candidate, std::span<const Reading> readings) {
  std::vector<Reading>& all = results_[candidate].readings;
  all.insert(all.end(), readings.begin(), readings.end());
}

void ResultCollector::ended(std::size_t candidate, const Ending& ending) {
  Measured& result = results_[candidate];
  // Of several processes the first to tell gives the details; the worst ending is the run's.
  const bool told =
      !result.ending.details.numbers.empty() || !result.ending.details.kernels.empty();
  StepDetails details = told ? std::move(result.ending.details) : ending.details;
  const bool worse =
      ending.status != RunStatus::complete && result.ending.status != RunStatus::failed;
  if (!result.ended || worse) result.ending = ending;
  result.ending.details = std::move(details);
  result.ended = true;
}

bool has_samples(const Measured& measured) {
  for (const Sample& sample : measured.samples) {
    if (sample.kind == SampleKind::measured) return true;
  }
  return false;
}

MeasuredSummary summarise(const Measured& measured) {
  Series wall, device, queued, wait, upload, exchange, exposed, forward, backward, optimizer;
  MeasuredSummary summary;
  if (!measured.samples.empty()) summary.first_seconds = measured.samples.front().wall_seconds;
  for (const Sample& sample : measured.samples) {
    switch (sample.kind) {
      case SampleKind::warmup:
        ++summary.warmup_iterations;
        summary.warmup_seconds += sample.wall_seconds;
        break;
      case SampleKind::measured:
        wall.add(sample, sample.wall_seconds);
        device.add(sample, sample.device_seconds);
        wait.add(sample, sample.data_wait_seconds);
        upload.add(sample, sample.upload_seconds);
        exchange.add(sample, sample.exchange_seconds);
        exposed.add(sample, sample.exposed_seconds);
        break;
      case SampleKind::queued:
        queued.add(sample, sample.device_seconds);
        break;
      case SampleKind::watched:
        break;
      case SampleKind::split:
        forward.add(sample, sample.forward_seconds);
        backward.add(sample, sample.backward_seconds);
        optimizer.add(sample, sample.optimizer_seconds);
        break;
    }
  }
  ensure(!wall.values.empty(), "nothing was measured");
  summary.wall = summarise(std::span<const double>(wall.values));
  summary.interval = block_bootstrap(wall.values, wall.blocks);
  summary.p50 = percentile(wall.values, 50.0);
  summary.p90 = percentile(wall.values, 90.0);
  summary.p99 = percentile(wall.values, 99.0);
  summary.blocks = distinct(wall.blocks);
  summary.device_seconds = device.median();
  if (!queued.values.empty()) summary.queued = block_bootstrap(queued.values, queued.blocks);
  summary.seconds_per_iteration = summary.queued ? summary.queued->median : summary.interval.median;
  summary.samples_per_second =
      static_cast<double>(measured.subject.work.batch) / summary.seconds_per_iteration;
  summary.data_wait_seconds = wait.median();
  summary.upload_seconds = upload.median();
  summary.exchange_seconds = exchange.median();
  summary.exposed_seconds = exposed.median();
  summary.forward_seconds = forward.median();
  summary.backward_seconds = backward.median();
  summary.optimizer_seconds = optimizer.median();
  summary.findings = series_findings(measured.samples);
  return summary;
}

void add_to(std::map<std::string, double>& numbers, std::map<std::string, std::string>& notes,
            const Measured& measured, const MeasuredSummary& summary) {
  const auto set = [&](const char* name, const std::optional<double>& value) {
    if (value) numbers[name] = *value;
  };
  set("setup_seconds", measured.preparation.setup_seconds);
  set("autotune_seconds", measured.preparation.autotune_seconds);
  set("first_step_seconds", summary.first_seconds);
  set("warmup_iterations", static_cast<double>(summary.warmup_iterations));
  set("warmup_seconds", summary.warmup_seconds);
  set("measured_iterations", static_cast<double>(summary.wall.count));
  set("median_seconds", summary.interval.median);
  set("ci_low_seconds", summary.interval.low);
  set("ci_high_seconds", summary.interval.high);
  set("device_median_seconds", summary.device_seconds);
  if (summary.queued) set("queued_seconds", summary.queued->median);
  set("samples_per_second", summary.samples_per_second);
  set("exchange_seconds", summary.exchange_seconds);
  set("exposed_seconds", summary.exposed_seconds);
  const auto flops =
      numbers.find(measured.subject.work.kind == "inference" ? "forward_flops" : "training_flops");
  if (flops != numbers.end()) {
    set("achieved_flops_per_second", flops->second / summary.seconds_per_iteration);
  }
  if (numbers.contains("plan_bytes_read")) {
    set("achieved_bytes_per_second", (numbers["plan_bytes_read"] + numbers["plan_bytes_written"]) /
                                         summary.seconds_per_iteration);
  }
  if (summary.data_wait_seconds && summary.wall.mean > 0.0) {
    double waited = 0.0, total = 0.0;
    for (const Sample& sample : measured.samples) {
      if (sample.kind != SampleKind::measured) continue;
      waited += sample.data_wait_seconds.value_or(0.0);
      total += sample.wall_seconds;
    }
    set("data_wait_share", waited / total);
  }
  if (measured.subject.work.kind == "inference") {
    set("latency_p50_seconds", summary.p50);
    set("latency_p90_seconds", summary.p90);
    set("latency_p99_seconds", summary.p99);
  }
  notes["clock"] = summary.device_seconds ? "host, device" : "host";
  notes["stopping"] = text_of(measured.ending.reason);
  notes["steadiness"] = measured.ending.warmup;
}

}  // namespace ridgeline
