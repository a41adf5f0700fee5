#include "audit/read/trace.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <optional>

#include "base/error.h"

namespace ridgeline::audit {
namespace {

using Json = nlohmann::json;

// In microseconds, as the format has them.
struct Span {
  double begin = 0.0, end = 0.0;
};

struct Trace {
  std::vector<Span> steps, kernels, copies;
  std::string device;
};

std::string text_at(const Json& object, const char* key) {
  const auto found = object.find(key);
  return found != object.end() && found->is_string() ? found->get<std::string>() : std::string();
}

std::optional<double> number_at(const Json& object, const char* key) {
  const auto found = object.find(key);
  if (found == object.end()) return std::nullopt;
  if (found->is_number()) return found->get<double>();
  return std::nullopt;
}

const Json& events_of(const Json& trace) {
  return trace.is_array() ? trace : trace.at("traceEvents");
}

std::string device_of(const Json& trace) {
  if (!trace.is_object()) return {};
  const auto found = trace.find("deviceProperties");
  if (found == trace.end() || !found->is_array() || found->empty()) return {};
  return found->front().is_object() ? text_at(found->front(), "name") : std::string();
}

Trace spans_of(const Json& trace) {
  Trace result;
  result.device = device_of(trace);
  for (const Json& event : events_of(trace)) {
    if (!event.is_object() || text_at(event, "ph") != "X") continue;
    const auto begin = number_at(event, "ts"), length = number_at(event, "dur");
    if (!begin || !length || !(*length >= 0.0)) continue;
    const Span span{*begin, *begin + *length};
    const std::string category = text_at(event, "cat");
    if (category == "kernel") result.kernels.push_back(span);
    if (category == "gpu_memcpy" || category == "gpu_memset") result.copies.push_back(span);
    const bool host = category == "user_annotation" || category == "cpu_op";
    if (host && text_at(event, "name").starts_with("ProfilerStep#")) result.steps.push_back(span);
  }
  const auto by_begin = [](const Span& a, const Span& b) { return a.begin < b.begin; };
  for (auto* spans : {&result.steps, &result.kernels, &result.copies}) {
    std::ranges::sort(*spans, by_begin);
  }
  return result;
}

// Time within [begin, end) that at least one of the spans covers.
double covered(const std::vector<Span>& spans, double begin, double end) {
  double sum = 0.0, reached = begin;
  for (const Span& span : spans) {
    if (span.begin >= end) break;
    const double from = std::max(span.begin, reached), to = std::min(span.end, end);
    if (to > from) sum += to - from;
    reached = std::max(reached, std::min(span.end, end));
  }
  return sum;
}

// How far the kernels that began within the step reach beyond its end; those behind the last step
// are its own, wherever they began.
double late(const std::vector<Span>& kernels, const Span& step, bool last_step) {
  double last = step.end;
  for (const Span& kernel : kernels) {
    if (kernel.begin >= step.end && !last_step) break;
    if (kernel.begin >= step.begin) last = std::max(last, kernel.end);
  }
  return last - step.end;
}

}  // namespace

bool is_trace(const Json& value) {
  if (value.is_object()) {
    const auto found = value.find("traceEvents");
    return found != value.end() && found->is_array();
  }
  return value.is_array() && !value.empty() && value.front().is_object() &&
         value.front().contains("ph");
}

RawTable trace_table(const Json& json, const std::string& file) {
  Trace trace = spans_of(json);
  if (trace.steps.empty() && trace.kernels.empty()) {
    bad_input("{}: is a trace without steps (ProfilerStep#N) and without kernels", file);
  }
  if (trace.steps.empty()) {
    double end = 0.0;
    for (const Span& kernel : trace.kernels) end = std::max(end, kernel.end);
    trace.steps.push_back({trace.kernels.front().begin, end});
  }
  RawTable table{
      .file = file, .format = "PyTorch trace", .columns = {}, .lines = {}, .origins = {}};
  for (const char* name : {"iteration", "step time (ms)", "kernel time (ms)", "copy time (ms)",
                           "kernels beyond the step (ms)", "device"}) {
    table.columns.emplace_back();
    table.columns.back().name = name;
  }
  for (std::size_t i = 0; i < trace.steps.size(); ++i) {
    const Span& step = trace.steps[i];
    const double numbers[] = {static_cast<double>(i), (step.end - step.begin) / 1e3,
                              covered(trace.kernels, step.begin, step.end) / 1e3,
                              covered(trace.copies, step.begin, step.end) / 1e3,
                              late(trace.kernels, step, i + 1 == trace.steps.size()) / 1e3};
    for (std::size_t column = 0; column < 5; ++column) {
      table.columns[column].add_number(numbers[column]);
    }
    if (trace.device.empty()) {
      table.columns[5].add_empty();
    } else {
      table.columns[5].add_words(trace.device);
    }
    table.lines.push_back(static_cast<std::int64_t>(i) + 1);
  }
  return table;
}

}  // namespace ridgeline::audit
