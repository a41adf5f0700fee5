// Rates against times, and against what the hardware can do.

#include <algorithm>
#include <cmath>

#include "analysis/stats/summary.h"
#include "audit/checks/checks.h"
#include "audit/context.h"

namespace ridgeline::audit {
namespace {

// A direct convolution does what is counted; Winograd's algorithm does up to 2.25 times less.
constexpr double kWinograd = 2.25;
// Clocks may be a little above what the data sheet assumes.
constexpr double kRoofTolerance = 1.05;
// A training that uses less than this share of the slowest GPU's fp32 waits for something else.
constexpr double kWaitingShare = 0.08;

struct RateOfWork {
  double flops_per_second = 0.0;
  double flops = 0.0;  // of one image
  bool training = true;
};

RateOfWork work_rate(const Context& context, const NetworkFacts& network, std::size_t row,
                     double rate) {
  const bool training = !context.is_inference(row);
  const double flops = training ? network.training_flops : network.forward_flops;
  return {rate * flops, flops, training};
}

void add_above_roof(Context& context, const Group& group, double rate, std::size_t fastest_row,
                    Findings& findings) {
  const std::size_t row = group.first();
  const NetworkFacts* network = context.network(row);
  const HardwareFacts* hardware = context.hardware(row);
  if (network == nullptr || hardware == nullptr) return;
  const std::string precision = context.precision(row);
  const auto roof = hardware->roof(precision);
  if (!roof) return;
  const RateOfWork work = work_rate(context, *network, row, rate);
  const double share = work.flops_per_second / *roof;
  const std::string numbers = fmt::format(
      "{}: {} img/s x {}FLOP of a {} image is {}, {} of the {} roof of {} ({})", context.label(row),
      plain_number(rate), amount_text(work.flops), work.training ? "training" : "forward",
      flop_rate_text(work.flops_per_second), share_text(share),
      precision.empty() ? "fp32/tf32" : precision, hardware->name, flop_rate_text(*roof));
  const char* cause =
      "the clock was stopped before the device had finished, the batch is another one, or part of "
      "the work was not done";
  if (share > kRoofTolerance) {
    // Another precision than the one told (or assumed), or forward work alone, may explain it.
    const bool explained = (precision.empty() && work.flops_per_second < hardware->fastest()) ||
                           rate * network->forward_flops < *roof || share < kWinograd;
    findings.push_back(found("above-roof", Severity::error,
                             explained ? Confidence::likely : Confidence::certain, numbers, cause,
                             {fastest_row}));
  } else if (share > 0.75 && work.training) {
    findings.push_back(found("above-roof", Severity::warning, Confidence::likely, numbers,
                             "whole trainings rarely reach two thirds of a peak: check that the "
                             "device was waited for",
                             {fastest_row}));
  }
}

}  // namespace

namespace {

// By how much a rate of queued steps may exceed that of single ones.
constexpr double kQueued = 1.3;

}  // namespace

void check_rate_times_time(Context& context, Findings& findings) {
  const Table& table = context.table();
  const Column* rate = table.find(Role::throughput);
  const Column* time = table.find(Role::batch_time);
  const Column* batch = table.find(Role::batch);
  if (rate == nullptr || time == nullptr) return;
  std::vector<std::size_t> rows, units;
  double worst = 1.0;
  for (std::size_t row = 0; row < table.rows(); ++row) {
    const auto size = context.batch(row);
    if (!size || !rate->has(row) || !time->has(row)) continue;
    const double share = rate->value(row) * time->value(row) / *size;
    if (!(share > 0.0)) continue;
    const double allowed =
        0.03 + rate->rounding(row) + time->rounding(row) + (batch == nullptr ? 0.0 : 1e-9);
    if (std::abs(share - 1.0) <= allowed) continue;
    const bool thousand = near(share, 1000.0, 0.1) || near(share, 0.001, 0.1);
    (thousand ? units : rows).push_back(row);
    if (!thousand && std::abs(std::log(share)) > std::abs(std::log(worst))) worst = share;
  }
  if (!rows.empty()) {
    const std::size_t row = rows.front();
    // Means of rates are not rates of means. Steps that are queued on a GPU overlap: their rate is
    // higher than the time of one that is waited for.
    const bool queued =
        worst > 1.0 && worst < kQueued && std::ranges::all_of(rows, [&](std::size_t each) {
          return context.kind(each) == "gpu" || context.hardware(each) != nullptr;
        });
    const bool small = queued || std::max(worst, 1.0 / worst) < 1.1;
    findings.push_back(found(
        "rate-times-time", small ? Severity::warning : Severity::error,
        small ? Confidence::likely : Confidence::certain,
        fmt::format(
            "{}: {} img/s x {} s = {} images, the batch is {}; {} of {} rows, off by up to "
            "a factor of {}",
            context.label(row), plain_number(rate->value(row)), plain_number(time->value(row)),
            plain_number(rate->value(row) * time->value(row)), plain_number(*context.batch(row)),
            rows.size(), table.rows(), plain_number(std::max(worst, 1.0 / worst))),
        "the time does not cover the whole iteration, or the rate was computed with another batch",
        rows));
  }
  if (!units.empty()) {
    const std::size_t row = units.front();
    findings.push_back(
        found("mixed-units", Severity::error, Confidence::certain,
              fmt::format("{}: {} img/s and {} {} per batch of {} differ by a factor of 1000; {} "
                          "of {} rows",
                          context.label(row), plain_number(rate->value(row)),
                          plain_number(time->value(row) / time->scale), time->unit,
                          plain_number(*context.batch(row)), units.size(), table.rows()),
              "milliseconds are labelled as seconds, or seconds as milliseconds", units));
  }
}

void check_above_roof(Context& context, Findings& findings) {
  for (const Group& group : context.groups()) {
    if (context.network(group.first()) == nullptr || context.is_warmup(group.first())) continue;
    std::vector<std::pair<double, std::size_t>> rates;
    for (const std::size_t row : group.rows) {
      const auto rate = context.rate(row);
      if (rate && *rate > 0.0) rates.emplace_back(*rate, row);
    }
    if (rates.empty()) continue;
    // A fast tenth of the rows is a pattern; a single one may be a clock's hiccup.
    const std::size_t place = rates.size() / 20;
    std::nth_element(rates.begin(), rates.begin() + static_cast<std::ptrdiff_t>(place), rates.end(),
                     std::greater<>());
    add_above_roof(context, group, rates[place].first, rates[place].second, findings);
  }
}

void check_far_below_roof(Context& context, Findings& findings) {
  for (const Group& group : context.groups()) {
    const std::size_t row = group.first();
    if (context.kind(row) != "gpu" && context.hardware(row) == nullptr) continue;
    if (context.is_warmup(row)) continue;
    const NetworkFacts* network = context.network(row);
    const auto rate = context.rate(group);
    const auto batch = context.batch(row);
    if (network == nullptr || !rate) continue;
    // Small batches and small networks are bound by launches, not by waiting.
    const RateOfWork work = work_rate(context, *network, row, *rate);
    if ((batch && *batch < 16.0 && work.training) || network->forward_flops < 1e8) continue;
    const HardwareFacts* named = context.hardware(row);
    const HardwareFacts& hardware = named != nullptr ? *named : context.facts().slowest_gpu();
    const auto roof = hardware.flops.find("fp32");
    if (roof == hardware.flops.end()) continue;
    const double share = work.flops_per_second / roof->second;
    if (share > kWaitingShare) continue;
    findings.push_back(found(
        "far-below-roof", Severity::warning, Confidence::likely,
        fmt::format("{}: {} img/s is {}, {} of the fp32 peak of {}{}", context.label(row),
                    plain_number(*rate), flop_rate_text(work.flops_per_second), share_text(share),
                    named != nullptr ? "" : "even the slowest GPU that is known, ", hardware.name),
        "the GPU waits: for the data loader, for memory that does not fit, or start-up is in the "
        "time",
        group.rows));
  }
}

}  // namespace ridgeline::audit
