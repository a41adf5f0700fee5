// Utilisation and memory: what was read, when, and of what.

#include <algorithm>
#include <cmath>
#include <map>
#include <set>

#include "audit/checks/checks.h"
#include "audit/context.h"
#include "base/text.h"

namespace ridgeline::audit {
namespace {

bool is_of_gpu(const Context& context, const Column& column, std::size_t row) {
  const std::string kind = device_kind(column.name);
  if (kind == "cpu") return false;
  return context.kind(row) == "gpu" || (kind == "gpu" && context.kind(row) != "cpu");
}

// Memory of the host's process, by the column's name.
bool is_of_process(const Column& column) {
  const std::string words = ' ' + read_title(column.name).words + ' ';
  for (const std::string_view word : {" ram ", " rss ", " process ", " host ", " cpu "}) {
    if (words.find(word) != std::string::npos) return true;
  }
  return false;
}

void judge_utilisation(Context& context, const Column& column, const Group& group,
                       Findings& findings) {
  const std::size_t row = group.first();
  if (!column.has(row) || !is_of_gpu(context, column, row)) return;
  const double told = column.value(row);
  const auto rate = context.rate(group);
  const NetworkFacts* network = context.network(row);
  const HardwareFacts* hardware = context.hardware(row);
  if (rate && network != nullptr && hardware != nullptr && told <= 1.0) {
    const double flops =
        context.is_inference(row) ? network->forward_flops : network->training_flops;
    const double needed = *rate * flops / hardware->fastest();
    if (needed > 1.1 * told + 0.005) {
      findings.push_back(found("utilisation", Severity::error, Confidence::certain,
                               fmt::format("{}: {} of {}, but {} img/s need at least {} of {}",
                                           context.label(row), column.name, share_text(told),
                                           plain_number(*rate), share_text(needed), hardware->name),
                               "the sensor was read outside the run", group.rows));
      return;
    }
  }
  if (told <= 0.05) {
    findings.push_back(found("utilisation", Severity::warning, Confidence::likely,
                             fmt::format("{}: {} of {} while the GPU was at work",
                                         context.label(row), column.name, share_text(told)),
                             "the sensor was read once, before or after the run", group.rows));
  }
}

// A training needs more memory for a larger batch: a constant was measured elsewhere.
void judge_growth(Context& context, const Column& column, Findings& findings) {
  struct Use {
    double batch, bytes;
    std::size_t row;
  };
  std::map<std::string, std::vector<Use>> by_work;
  for (const Group& group : context.groups()) {
    const std::size_t row = group.first();
    const auto batch = context.batch(row);
    if (!batch || !column.has(row) || !(column.value(row) > 0.0)) continue;
    by_work[fmt::format("{}\n{}\n{}", context.model(row), context.executor(row),
                        context.precision(row))]
        .push_back({*batch, column.value(row), row});
  }
  for (const auto& [work, uses] : by_work) {
    const auto [small, large] = std::ranges::minmax(uses, {}, &Use::batch);
    const auto [least, most] = std::ranges::minmax(uses, {}, &Use::bytes);
    if (uses.size() < 3 || large.batch < 4.0 * small.batch || most.bytes > 1.02 * least.bytes) {
      continue;
    }
    const HardwareFacts* hardware = context.hardware(small.row);
    const bool full = hardware != nullptr && hardware->memory_bytes &&
                      near(most.bytes, *hardware->memory_bytes, 0.08);
    std::vector<std::size_t> rows;
    for (const Use& use : uses) rows.push_back(use.row);
    findings.push_back(found(
        "memory", Severity::warning, Confidence::likely,
        fmt::format("{}: {} is {} at batch {} and {} at batch {}", context.label(small.row),
                    column.name, bytes_text(static_cast<std::int64_t>(small.bytes)), small.batch,
                    bytes_text(static_cast<std::int64_t>(large.bytes)), large.batch),
        full ? "this is the memory of the device, not of the work"
             : "activations grow with the batch: this is the memory of another process, of "
               "the host, or of an allocator that took all at the start",
        rows));
  }
}

void judge_memory(Context& context, const Column& column, const Group& group,
                  std::vector<std::size_t>& zeros, Findings& findings) {
  const std::size_t row = group.first();
  if (!column.has(row)) return;
  const double bytes = column.value(row);
  if (bytes == 0.0) {
    zeros.push_back(row);
    return;
  }
  const HardwareFacts* hardware = is_of_process(column) ? nullptr : context.hardware(row);
  const NetworkFacts* network = context.network(row);
  if (hardware != nullptr && hardware->memory_bytes && bytes > 1.08 * *hardware->memory_bytes) {
    findings.push_back(
        found("memory", Severity::error, Confidence::certain,
              fmt::format("{}: {} of {}, {} has {}", context.label(row), column.name,
                          bytes_text(static_cast<std::int64_t>(bytes)), hardware->name,
                          bytes_text(static_cast<std::int64_t>(*hardware->memory_bytes))),
              "memory of the host was counted, or another unit is meant", group.rows));
  }
  // Weights and their gradients in half precision are the least.
  if (network != nullptr && !context.is_inference(row) && bytes > 0.0 &&
      bytes < 4.0 * network->parameters) {
    findings.push_back(
        found("memory", Severity::warning, Confidence::likely,
              fmt::format("{}: {} of {}, but weights and gradients of {} alone take {}",
                          context.label(row), column.name,
                          bytes_text(static_cast<std::int64_t>(bytes)), network->name,
                          bytes_text(static_cast<std::int64_t>(8.0 * network->parameters))),
              "the memory of another process or device, or another unit", group.rows));
  }
}

// One unspecific column for processes and devices.
void judge_owner(Context& context, const std::vector<const Column*>& columns, Findings& findings) {
  if (columns.size() != 1 || is_of_process(*columns.front()) ||
      device_kind(columns.front()->name) == "gpu") {
    return;
  }
  std::set<std::string> kinds;
  std::vector<std::size_t> rows;
  for (const Group& group : context.groups()) {
    if (!columns.front()->has(group.first())) continue;
    kinds.insert(context.kind(group.first()));
    rows.push_back(group.first());
  }
  if (!kinds.contains("cpu") || !kinds.contains("gpu")) return;
  findings.push_back(
      found("memory", Severity::note, Confidence::possible,
            fmt::format("{} stands for CPU and GPU rows alike", columns.front()->name),
            "memory of a process and memory of a device are different things", rows));
}

}  // namespace

void check_utilisation(Context& context, Findings& findings) {
  const Table& table = context.table();
  std::vector<std::size_t> once;
  for (std::size_t row = 0; row < table.rows(); ++row) {
    const auto readings = table.number(Role::readings, row);
    if (readings && *readings <= 1.0) once.push_back(row);
  }
  if (!once.empty()) {
    // Of some rows it says that they were short, of all that the sensor was read once by design.
    const bool all = once.size() == table.rows();
    findings.push_back(
        found("utilisation", all ? Severity::error : Severity::warning, Confidence::certain,
              fmt::format("utilisation rests on a single reading in {} row{}", once.size(),
                          once.size() == 1 ? "" : "s"),
              "a snapshot says nothing about the run: read the sensor all the time", once));
  }
  for (const Column* column : table.all(Role::utilisation)) {
    for (const Group& group : context.groups()) {
      judge_utilisation(context, *column, group, findings);
    }
  }
}

void check_memory(Context& context, Findings& findings) {
  const std::vector<const Column*> columns = context.table().all(Role::memory);
  for (const Column* column : columns) {
    std::vector<std::size_t> zeros;
    for (const Group& group : context.groups()) {
      judge_memory(context, *column, group, zeros, findings);
    }
    if (!zeros.empty()) {
      findings.push_back(
          found("memory", Severity::error, Confidence::certain,
                fmt::format("{} is 0 in {} row{}: {}", column->name, zeros.size(),
                            zeros.size() == 1 ? "" : "s", context.label(zeros.front())),
                "0 stands for 'not measured'; leave the cell empty", zeros));
    }
    judge_growth(context, *column, findings);
  }
  judge_owner(context, columns, findings);
}

}  // namespace ridgeline::audit
