#include "lab/measure/events.h"

#include <nlohmann/json.hpp>

#include "base/error.h"

namespace ridgeline {
namespace {

using Json = nlohmann::json;

template <typename Value>
Json optional_json(const std::optional<Value>& value) {
  return value ? Json(*value) : Json(nullptr);
}

std::optional<double> optional_number(const Json& json) {
  if (json.is_null()) return std::nullopt;
  return json.get<double>();
}

Json to_json(const Sample& sample) {
  return {sample.process,
          sample.block,
          sample.iteration,
          static_cast<int>(sample.kind),
          sample.at_seconds,
          sample.wall_seconds,
          optional_json(sample.device_seconds),
          optional_json(sample.data_wait_seconds),
          optional_json(sample.upload_seconds),
          optional_json(sample.forward_seconds),
          optional_json(sample.backward_seconds),
          optional_json(sample.optimizer_seconds)};
}

Sample sample_of(const Json& json, double shift) {
  return {.process = json.at(0).get<std::int64_t>(),
          .block = json.at(1).get<std::int64_t>(),
          .iteration = json.at(2).get<std::int64_t>(),
          .kind = static_cast<SampleKind>(json.at(3).get<int>()),
          .at_seconds = json.at(4).get<double>() + shift,
          .wall_seconds = json.at(5).get<double>(),
          .device_seconds = optional_number(json.at(6)),
          .data_wait_seconds = optional_number(json.at(7)),
          .upload_seconds = optional_number(json.at(8)),
          .forward_seconds = optional_number(json.at(9)),
          .backward_seconds = optional_number(json.at(10)),
          .optimizer_seconds = optional_number(json.at(11))};
}

Json to_json(const StepTime& step) {
  return {step.index,      step.layer,         step.ops,
          step.phase,      step.provider,      step.kernel,
          step.seconds,    step.flops,         step.work_flops,
          step.bytes_read, step.bytes_written, step.working_set_bytes,
          step.unit,       step.flop_factor,   optional_json(step.counted_bytes),
          step.covers};
}

StepTime step_of(const Json& json) {
  return {.index = json.at(0).get<std::int64_t>(),
          .layer = json.at(1).get<std::string>(),
          .ops = json.at(2).get<std::string>(),
          .phase = json.at(3).get<std::string>(),
          .provider = json.at(4).get<std::string>(),
          .kernel = json.at(5).get<std::string>(),
          .seconds = json.at(6).get<double>(),
          .flops = json.at(7).get<std::int64_t>(),
          .work_flops = json.at(8).get<std::int64_t>(),
          .bytes_read = json.at(9).get<std::int64_t>(),
          .bytes_written = json.at(10).get<std::int64_t>(),
          .working_set_bytes = json.at(11).get<std::int64_t>(),
          .unit = json.at(12).get<std::string>(),
          .flop_factor = json.at(13).get<double>(),
          .counted_bytes = optional_number(json.at(14)),
          .covers = json.at(15).get<std::string>()};
}

Json to_json(const StepDetails& details) {
  Json steps = Json::array(), memory = Json::array(), findings = Json::array();
  for (const StepTime& step : details.steps) steps.push_back(to_json(step));
  for (const MemoryEntry& entry : details.memory) {
    memory.push_back({entry.device, entry.category, entry.source, entry.bytes});
  }
  for (const Finding& finding : details.findings) {
    findings.push_back({finding.name, finding.severity, finding.evidence});
  }
  return {{"steps", std::move(steps)},       {"memory", std::move(memory)},
          {"findings", std::move(findings)}, {"kernels", details.kernels},
          {"numbers", details.numbers},      {"notes", details.notes}};
}

StepDetails details_of(const Json& json) {
  StepDetails details;
  for (const Json& step : json.at("steps")) details.steps.push_back(step_of(step));
  for (const Json& entry : json.at("memory")) {
    details.memory.push_back({entry.at(0).get<std::string>(), entry.at(1).get<std::string>(),
                              entry.at(2).get<std::string>(), entry.at(3).get<std::int64_t>()});
  }
  for (const Json& finding : json.at("findings")) {
    details.findings.push_back({finding.at(0).get<std::string>(), finding.at(1).get<std::string>(),
                                finding.at(2).get<std::string>()});
  }
  details.kernels = json.at("kernels").get<std::vector<std::string>>();
  details.numbers = json.at("numbers").get<std::map<std::string, double>>();
  details.notes = json.at("notes").get<std::map<std::string, std::string>>();
  return details;
}

// Names and messages may hold anything; what is no UTF-8 must not end the program.
std::string line_of(const Json& event) {
  return event.dump(-1, ' ', false, Json::error_handler_t::replace);
}

void replay(const Json& event, std::size_t candidates, double shift, MeasureSink& sink) {
  const auto candidate = event.at("candidate").get<std::size_t>();
  if (candidate >= candidates) fail("there is no candidate {}", candidate);
  const auto kind = event.at("event").get<std::string>();
  if (kind == "begun") {
    sink.begun(candidate);
  } else if (kind == "prepared") {
    sink.prepared(candidate, {event.at("setup_seconds").get<double>(),
                              optional_number(event.at("autotune_seconds"))});
  } else if (kind == "samples") {
    std::vector<Sample> samples;
    for (const Json& sample : event.at("samples")) samples.push_back(sample_of(sample, shift));
    sink.measured(candidate, samples);
  } else if (kind == "readings") {
    std::vector<Reading> readings;
    for (const Json& reading : event.at("readings")) {
      readings.push_back({reading.at(0).get<double>() + shift, reading.at(1).get<std::string>(),
                          reading.at(2).get<std::string>(), reading.at(3).get<double>()});
    }
    sink.readings(candidate, readings);
  } else if (kind == "ended") {
    sink.ended(candidate, {.status = static_cast<RunStatus>(event.at("status").get<int>()),
                           .error = event.at("error").get<std::string>(),
                           .reason = static_cast<StopReason>(event.at("reason").get<int>()),
                           .warmup = event.at("warmup").get<std::string>(),
                           .details = details_of(event.at("details"))});
  } else {
    fail("there is no event '{}'", kind);
  }
}

}  // namespace

void EventWriter::begun(std::size_t candidate) {
  write_(line_of({{"event", "begun"}, {"candidate", candidate}}));
}

void EventWriter::prepared(std::size_t candidate, const Preparation& preparation) {
  write_(line_of({{"event", "prepared"},
                  {"candidate", candidate},
                  {"setup_seconds", preparation.setup_seconds},
                  {"autotune_seconds", optional_json(preparation.autotune_seconds)}}));
}

void EventWriter::measured(std::size_t candidate, std::span<const Sample> samples) {
  Json list = Json::array();
  for (const Sample& sample : samples) list.push_back(to_json(sample));
  write_(line_of({{"event", "samples"}, {"candidate", candidate}, {"samples", std::move(list)}}));
}

void EventWriter::readings(std::size_t candidate, std::span<const Reading> readings) {
  Json list = Json::array();
  for (const Reading& reading : readings) {
    list.push_back({reading.at_seconds, reading.device, reading.sensor, reading.value});
  }
  write_(line_of({{"event", "readings"}, {"candidate", candidate}, {"readings", std::move(list)}}));
}

void EventWriter::ended(std::size_t candidate, const Ending& ending) {
  write_(line_of({{"event", "ended"},
                  {"candidate", candidate},
                  {"status", static_cast<int>(ending.status)},
                  {"error", ending.error},
                  {"reason", static_cast<int>(ending.reason)},
                  {"warmup", ending.warmup},
                  {"details", to_json(ending.details)}}));
}

void replay_event(std::string_view line, std::size_t candidates, double shift_seconds,
                  MeasureSink& sink) {
  try {
    replay(Json::parse(line), candidates, shift_seconds, sink);
  } catch (const Json::exception& error) {
    fail("an event of a measuring process cannot be read: {}", error.what());
  }
}

}  // namespace ridgeline
