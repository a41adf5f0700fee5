#include "measure/iterations/events.h"

#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/json_text.h"
#include "measure/iterations/details_json.h"

namespace ridgeline {
namespace {

using Json = nlohmann::ordered_json;

// Names and messages may hold anything; what is no UTF-8 must not end the program.
std::string line_of(const Json& event) { return json_text(event); }

void replay(const Json& event, std::size_t candidates, double shift, MeasureSink& sink) {
  const auto candidate = event.at("candidate").get<std::size_t>();
  if (candidate >= candidates) fail("there is no candidate {}", candidate);
  const auto kind = event.at("event").get<std::string>();
  if (kind == "begun") {
    sink.begun(candidate);
  } else if (kind == "prepared") {
    Preparation preparation;
    read_value(event.at("setup_seconds"), preparation.setup_seconds);
    read_value(event.at("autotune_seconds"), preparation.autotune_seconds);
    sink.prepared(candidate, preparation);
  } else if (kind == "samples") {
    auto samples = read_list<Sample>(event.at("samples"));
    for (Sample& sample : samples) sample.at_seconds += shift;
    sink.measured(candidate, samples);
  } else if (kind == "readings") {
    auto readings = read_list<Reading>(event.at("readings"));
    for (Reading& reading : readings) reading.at_seconds += shift;
    sink.readings(candidate, readings);
  } else if (kind == "ended") {
    sink.ended(candidate, {.status = static_cast<RunStatus>(event.at("status").get<int>()),
                           .error = event.at("error").get<std::string>(),
                           .reason = static_cast<StopReason>(event.at("reason").get<int>()),
                           .warmup = event.at("warmup").get<std::string>(),
                           .details = read_details(event.at("details"))});
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
                  {"autotune_seconds", or_null(preparation.autotune_seconds)}}));
}

void EventWriter::measured(std::size_t candidate, std::span<const Sample> samples) {
  write_(
      line_of({{"event", "samples"}, {"candidate", candidate}, {"samples", list_json(samples)}}));
}

void EventWriter::readings(std::size_t candidate, std::span<const Reading> readings) {
  write_(line_of(
      {{"event", "readings"}, {"candidate", candidate}, {"readings", list_json(readings)}}));
}

void EventWriter::ended(std::size_t candidate, const Ending& ending) {
  write_(line_of({{"event", "ended"},
                  {"candidate", candidate},
                  {"status", static_cast<int>(ending.status)},
                  {"error", ending.error},
                  {"reason", static_cast<int>(ending.reason)},
                  {"warmup", ending.warmup},
                  {"details", details_json(ending.details)}}));
}

void replay_event(std::string_view line, std::size_t candidates, double shift_seconds,
                  MeasureSink& sink) {
  try {
    replay(Json::parse(line), candidates, shift_seconds, sink);
  } catch (const Error&) {
    throw;
  } catch (const std::exception& error) {
    fail("an event of a measuring process cannot be read: {}", error.what());
  }
}

}  // namespace ridgeline
