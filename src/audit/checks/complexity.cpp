// Work, parameters and intensity against the exact ones of the named network, and roofs against
// data sheets.

#include <algorithm>
#include <cmath>
#include <map>
#include <set>

#include "audit/checks/checks.h"
#include "audit/context.h"
#include "base/text.h"

namespace ridgeline::audit {
namespace {

// Counters differ in what they count beside products: biases, norms, activations.
constexpr double kCounting = 0.05;

bool titled(const Column& column, std::string_view word) {
  const std::string words = ' ' + read_title(column.name).words + ' ';
  return words.find(word) != std::string::npos;
}

struct Claim {
  double flops = 0.0;     // of one image
  bool training = false;  // else of the forward pass
  std::string text;       // "FLOPs 1.82 G"
  Confidence confidence = Confidence::certain;
};

void judge_flops(Context& context, const NetworkFacts& network, const Claim& claim,
                 const std::vector<std::size_t>& rows, Findings& findings) {
  const auto is = [&](double flops) { return near(claim.flops, flops, kCounting); };
  const bool forward = is(network.forward_flops) || is(2.0 * network.forward_macs);
  const bool training = is(network.training_flops) || is(2.0 * network.training_macs) ||
                        is(3.0 * network.forward_flops);
  if (training || (forward && !claim.training)) return;
  const std::string label = fmt::format("{}: {}", context.label(rows.front()), claim.text);
  if (is(network.forward_macs) || is(network.training_macs) || is(3.0 * network.forward_macs)) {
    const bool whole = !is(network.forward_macs);
    const double right = claim.training ? network.training_flops
                         : whole        ? 2.0 * network.training_macs
                                        : 2.0 * network.forward_macs;
    findings.push_back(
        found("flops", Severity::error, claim.confidence,
              fmt::format("{} is the number of multiply-accumulates of {} at {}x{}; the FLOPs are "
                          "{}, {} times as many",
                          label, network.name, network.image, network.image, amount_text(right),
                          plain_number(right / claim.flops)),
              "a MAC is two FLOPs; training is about three times the forward pass", rows));
  } else if (forward) {
    findings.push_back(found(
        "flops", Severity::error, claim.confidence,
        fmt::format("{} is the forward pass of {} at {}x{} alone; training needs {}, {} times "
                    "as many",
                    label, network.name, network.image, network.image,
                    amount_text(network.training_flops),
                    plain_number(network.training_flops / claim.flops)),
        "the backward pass is about twice the forward pass", rows));
  }
}

void judge_achieved(Context& context, const Group& group, Findings& findings) {
  const std::size_t row = group.first();
  const auto achieved = context.table().number(Role::flop_rate, row);
  const auto rate = context.rate(row);
  const NetworkFacts* network = context.network(row);
  if (!achieved || !rate || network == nullptr || !(*rate > 0.0)) return;
  judge_flops(
      context, *network,
      {.flops = *achieved / *rate,
       .training = !context.is_inference(row),
       .text = fmt::format("{} at {} img/s is {}FLOP an image, which", flop_rate_text(*achieved),
                           plain_number(*rate), amount_text(*achieved / *rate)),
       .confidence = Confidence::likely},
      group.rows, findings);
}

void judge_parameter_memory(Context& context, const Group& group, Findings& findings) {
  const std::size_t row = group.first();
  const auto bytes = context.table().number(Role::parameter_memory, row);
  if (!bytes) return;
  auto count = context.table().number(Role::parameters, row);
  const NetworkFacts* network = context.network(row);
  if (!count && network != nullptr) count = network->parameters;
  if (!count || !(*count > 0.0)) return;
  const double each = *bytes / *count;
  // From one byte (int8) to double precision with gradients and two moments.
  if (each >= 0.9 && each <= 36.0) return;
  findings.push_back(
      found("parameters", Severity::error, Confidence::certain,
            fmt::format("{}: {} for {} parameters is {} bytes each; in fp32 they take {}",
                        context.label(row), bytes_text(static_cast<std::int64_t>(*bytes)),
                        count_text(static_cast<std::int64_t>(*count)), plain_number(each),
                        bytes_text(static_cast<std::int64_t>(4.0 * *count))),
            "KB and MB were mixed up, or the memory is that of something else", group.rows));
}

}  // namespace

void check_flops(Context& context, Findings& findings) {
  const Table& table = context.table();
  const Column* flops = table.find(Role::flops);
  const Column* macs = table.find(Role::macs);
  std::vector<std::string> seen;
  for (const Group& group : context.groups()) {
    const std::size_t row = group.first();
    if (flops == nullptr && macs == nullptr) {
      judge_achieved(context, group, findings);
      continue;
    }
    const NetworkFacts* network = context.network(row);
    judge_achieved(context, group, findings);
    if (network == nullptr) continue;
    // Once for each model and value.
    const std::string key = fmt::format(
        "{} {}", context.model(row),
        table.number(Role::flops, row).value_or(table.number(Role::macs, row).value_or(0.0)));
    if (std::ranges::find(seen, key) != seen.end()) continue;
    seen.push_back(key);
    if (flops != nullptr && flops->has(row)) {
      judge_flops(context, *network,
                  {.flops = flops->value(row),
                   .training = titled(*flops, " train"),
                   .text = fmt::format("{} {}", flops->name, amount_text(flops->value(row)))},
                  group.rows, findings);
    }
    if (macs != nullptr && macs->has(row) &&
        near(macs->value(row), 2.0 * network->forward_macs, kCounting)) {
      findings.push_back(
          found("flops", Severity::error, Confidence::certain,
                fmt::format("{}: {} {} is twice the multiply-accumulates of {}, {}",
                            context.label(row), macs->name, amount_text(macs->value(row)),
                            network->name, amount_text(network->forward_macs)),
                "FLOPs are given as MACs", group.rows));
    }
  }
}

void check_parameters(Context& context, Findings& findings) {
  std::vector<std::string> seen;
  for (const Group& group : context.groups()) {
    const std::size_t row = group.first();
    judge_parameter_memory(context, group, findings);
    const auto count = context.table().number(Role::parameters, row);
    const NetworkFacts* network = context.network(row);
    if (!count || network == nullptr) continue;
    if (*count >= 0.97 * network->least_parameters && *count <= 1.03 * network->most_parameters) {
      continue;
    }
    const std::string key = fmt::format("{} {}", network->name, *count);
    if (std::ranges::find(seen, key) != seen.end()) continue;
    seen.push_back(key);
    findings.push_back(
        found("parameters", Severity::error, Confidence::likely,
              fmt::format("{}: {} parameters; {} has {} ({} with 2 classes, {} with 1000)",
                          context.label(row), plain_number(*count), network->name,
                          count_text(static_cast<std::int64_t>(network->parameters)),
                          count_text(static_cast<std::int64_t>(network->least_parameters)),
                          count_text(static_cast<std::int64_t>(network->most_parameters))),
              near(*count, 4.0 * network->parameters, 0.03)
                  ? "bytes are given as the number of parameters"
                  : "another network, another width, or a unit",
              group.rows));
  }
}

void check_intensity(Context& context, Findings& findings) {
  const Column* column = context.table().find(Role::intensity);
  if (column == nullptr) return;
  for (const Group& group : context.groups()) {
    const std::size_t row = group.first();
    if (!column->has(row) || !(column->value(row) > 0.0)) continue;
    const double claimed = column->value(row);
    const HardwareFacts* hardware = context.hardware(row);
    const auto achieved = context.table().number(Role::flop_rate, row);
    if (hardware != nullptr && hardware->bytes_per_second && achieved) {
      const double roof = claimed * *hardware->bytes_per_second;
      if (*achieved > 1.05 * roof) {
        findings.push_back(found(
            "intensity", Severity::error, Confidence::certain,
            fmt::format("{}: {} stands {} times above the memory roof of {}: {} FLOP/byte x {}B/s "
                        "is {}",
                        context.label(row), flop_rate_text(*achieved),
                        plain_number(*achieved / roof), hardware->name, plain_number(claimed),
                        amount_text(*hardware->bytes_per_second), flop_rate_text(roof)),
            *achieved < 1000.0 * roof ? "GFLOP/MB is 1000 FLOP/byte" : "", group.rows));
        continue;
      }
    }
    const auto batch = static_cast<std::int64_t>(context.batch(row).value_or(64.0));
    const auto planned = context.facts().intensity(context.query(row), batch);
    if (!planned) continue;
    const std::string numbers =
        fmt::format("{}: {} FLOP/byte; the tensors of a training step at batch {} allow about {}",
                    context.label(row), plain_number(claimed), batch, plain_number(*planned));
    if (claimed > 3.0 * *planned) {
      findings.push_back(found("intensity", Severity::warning, Confidence::likely, numbers,
                               "the bytes were guessed from the parameters; activations are moved "
                               "as well",
                               group.rows));
    } else if (claimed < *planned / 100.0 && 1000.0 * claimed > *planned / 10.0) {
      findings.push_back(found("intensity", Severity::error, Confidence::likely, numbers,
                               "GFLOP/MB is 1000 FLOP/byte", group.rows));
    }
  }
}

namespace {

// Devices whose rows tell several bandwidths: those were reached, level by level or run by run, and
// none of them claims to be the data sheet's.
std::set<std::string> devices_of_several_bandwidths(Context& context) {
  std::map<std::string, double> first;
  std::set<std::string> several;
  for (const Group& group : context.groups()) {
    const HardwareFacts* hardware = context.hardware(group.first());
    if (hardware == nullptr) continue;
    for (const std::size_t row : group.rows) {
      const auto told = context.table().number(Role::bandwidth, row);
      if (!told) continue;
      const auto [known, fresh] = first.emplace(hardware->name, *told);
      if (!fresh && !near(known->second, *told, 0.01)) several.insert(hardware->name);
    }
  }
  return several;
}

}  // namespace

void check_data_sheet(Context& context, Findings& findings) {
  const std::set<std::string> reached = devices_of_several_bandwidths(context);
  std::vector<std::string> seen;
  for (const Group& group : context.groups()) {
    const std::size_t row = group.first();
    const HardwareFacts* hardware = context.hardware(row);
    if (hardware == nullptr || hardware->measured) continue;
    const bool one_kind = hardware->name.find("fastest of") == std::string::npos;
    const auto judge = [&](const char* what, double claimed, double right, const char* unit) {
      if (near(claimed, right, 0.06) || (!one_kind && claimed < right)) return;
      const std::string text =
          fmt::format("{} of {}{} for {}; the data sheet says {}{}", what, amount_text(claimed),
                      unit, hardware->name, amount_text(right), unit);
      if (std::ranges::find(seen, text) != seen.end()) return;
      seen.push_back(text);
      findings.push_back(found("data-sheet", Severity::error, Confidence::likely, text,
                               "another variant of the device, or a rate with sparsity",
                               group.rows));
    };
    if (const auto claimed = context.table().number(Role::bandwidth, row)) {
      if (hardware->bytes_per_second && !reached.contains(hardware->name)) {
        judge("memory bandwidth", *claimed, *hardware->bytes_per_second, "B/s");
      }
    }
    if (const auto claimed = context.table().number(Role::peak_rate, row)) {
      double nearest = 0.0;
      for (const auto& [precision, rate] : hardware->flops) {
        const bool closer = nearest == 0.0 || std::abs(std::log(rate / *claimed)) <
                                                  std::abs(std::log(nearest / *claimed));
        if (closer) nearest = rate;
      }
      if (nearest > 0.0) judge("peak rate", *claimed, nearest, "FLOP/s");
    }
  }
}

void check_efficiency(Context& context, Findings& findings) {
  const Table& table = context.table();
  const Column* column = table.find(Role::efficiency);
  if (column == nullptr) return;
  std::vector<std::size_t> above, unlike;
  for (std::size_t row = 0; row < table.rows(); ++row) {
    if (!column->has(row)) continue;
    if (column->value(row) > 1.0005) {
      above.push_back(row);
      continue;
    }
    const auto rate = table.number(Role::flop_rate, row), peak = table.number(Role::peak_rate, row);
    if (!rate || !peak || !(*peak > 0.0)) continue;
    const double right = *rate / *peak;
    if (!near(column->value(row), right, 0.05 + column->rounding(row))) unlike.push_back(row);
  }
  if (!above.empty()) {
    const auto most =
        *std::ranges::max_element(above, {}, [&](std::size_t row) { return column->value(row); });
    findings.push_back(found("efficiency", Severity::error,
                             column->value(most) > 1.2 ? Confidence::certain : Confidence::likely,
                             fmt::format("{} is {} ({}), above 100% in {} row{}", column->name,
                                         share_text(column->value(most)), context.label(most),
                                         above.size(), above.size() == 1 ? "" : "s"),
                             "the roof, the work or the time is wrong: nothing runs above its roof",
                             above));
  }
  if (!unlike.empty()) {
    const std::size_t row = unlike.front();
    findings.push_back(found(
        "efficiency", Severity::error, Confidence::certain,
        fmt::format(
            "{}: {} is {}, but {} of {} is {}", context.label(row), column->name,
            share_text(column->value(row)), flop_rate_text(*table.number(Role::flop_rate, row)),
            flop_rate_text(*table.number(Role::peak_rate, row)),
            share_text(*table.number(Role::flop_rate, row) / *table.number(Role::peak_rate, row))),
        "", unlike));
  }
}

}  // namespace ridgeline::audit
