#pragma once

// The fields of each record under the names of their columns (columns.h): the one list from which
// rows are written, read and printed, and records are taken from JSON.

#include <array>
#include <concepts>
#include <optional>
#include <string_view>
#include <type_traits>

#include "lab/store/records.h"

namespace ridgeline {

inline constexpr std::array<std::string_view, 4> kRunStatusNames = {"running", "complete",
                                                                    "interrupted", "failed"};
inline constexpr std::array<std::string_view, 5> kSampleKindNames = {"warmup", "measured", "split",
                                                                     "queued", "watched"};

inline constexpr std::array<std::string_view, 4> kItemStatusNames = {"waiting", "done", "left out",
                                                                     "failed"};

[[nodiscard]] constexpr std::string_view name_of(RunStatus status) {
  return kRunStatusNames[static_cast<std::size_t>(status)];
}
[[nodiscard]] constexpr std::string_view name_of(SampleKind kind) {
  return kSampleKindNames[static_cast<std::size_t>(kind)];
}

[[nodiscard]] constexpr std::string_view name_of(ItemStatus status) {
  return kItemStatusNames[static_cast<std::size_t>(status)];
}

template <typename Enum>
[[nodiscard]] constexpr auto names_of() {
  if constexpr (std::same_as<Enum, RunStatus>) return kRunStatusNames;
  if constexpr (std::same_as<Enum, SampleKind>) return kSampleKindNames;
  if constexpr (std::same_as<Enum, ItemStatus>) return kItemStatusNames;
}

template <typename Enum>
[[nodiscard]] constexpr std::optional<Enum> parse_name(std::string_view name) {
  const auto names = names_of<Enum>();
  for (std::size_t i = 0; i < names.size(); ++i) {
    if (names[i] == name) return static_cast<Enum>(i);
  }
  return std::nullopt;
}

// Where rows of a record lie.
template <typename Row>
inline constexpr std::string_view table_of = {};
template <>
inline constexpr std::string_view table_of<Sample> = "samples";
template <>
inline constexpr std::string_view table_of<StepTime> = "steps";
template <>
inline constexpr std::string_view table_of<Reading> = "readings";
template <>
inline constexpr std::string_view table_of<MemoryEntry> = "memory";
template <>
inline constexpr std::string_view table_of<Finding> = "findings";
template <>
inline constexpr std::string_view table_of<EpochRecord> = "epochs";

template <>
inline constexpr std::string_view table_of<LiveEntry> = "live_bytes";
template <>
inline constexpr std::string_view table_of<TimelineEntry> = "timeline";

template <typename Row, typename Record>
concept FieldsOf = std::same_as<std::remove_const_t<Row>, Record>;

// visit(name, field) for every field; the record may be const.
template <FieldsOf<EnvironmentRecord> Row, typename Visit>
void visit_fields(Row& row, Visit&& visit) {
  visit("key", row.key);
  visit("label", row.label);
  visit("host", row.host);
  visit("cpu", row.cpu);
  visit("gpus", row.gpus);
  visit("fingerprint", row.fingerprint);
}

template <FieldsOf<Work> Row, typename Visit>
void visit_fields(Row& row, Visit&& visit) {
  visit("kind", row.kind);
  visit("model", row.model);
  visit("settings", row.settings);
  visit("batch", row.batch);
  visit("image", row.image);
  visit("classes", row.classes);
  visit("precision", row.precision);
  visit("optimizer", row.optimizer);
  visit("data", row.data);
  visit("data_samples", row.data_samples);
  visit("normalisation", row.normalisation);
  visit("variant", row.variant);
}

template <FieldsOf<Executor> Row, typename Visit>
void visit_fields(Row& row, Visit&& visit) {
  visit("backend", row.backend);
  visit("device", row.device);
  visit("threads", row.threads);
  visit("options", row.options);
}

// Without id, work, executor, numbers and notes.
template <FieldsOf<RunRecord> Row, typename Visit>
void visit_own_fields(Row& row, Visit&& visit) {
  visit("uuid", row.uuid);
  visit("environment", row.environment);
  visit("command", row.command);
  visit("arguments", row.arguments);
  visit("group", row.group);
  visit("label", row.label);
  visit("study", row.study);
  visit("item", row.item);
  visit("started", row.started);
  visit("finished", row.finished);
  visit("status", row.status);
  visit("error", row.error);
  visit("seed", row.seed);
}

// A row of the table runs, without its id.
template <FieldsOf<RunRecord> Row, typename Visit>
void visit_fields(Row& row, Visit&& visit) {
  visit_own_fields(row, visit);
  visit_fields(row.work, visit);
  visit_fields(row.executor, visit);
}

template <FieldsOf<Sample> Row, typename Visit>
void visit_fields(Row& row, Visit&& visit) {
  visit("process", row.process);
  visit("block", row.block);
  visit("iteration", row.iteration);
  visit("kind", row.kind);
  visit("at_seconds", row.at_seconds);
  visit("wall_seconds", row.wall_seconds);
  visit("device_seconds", row.device_seconds);
  visit("data_wait_seconds", row.data_wait_seconds);
  visit("upload_seconds", row.upload_seconds);
  visit("forward_seconds", row.forward_seconds);
  visit("backward_seconds", row.backward_seconds);
  visit("optimizer_seconds", row.optimizer_seconds);
}

template <FieldsOf<StepTime> Row, typename Visit>
void visit_fields(Row& row, Visit&& visit) {
  visit("index", row.index);
  visit("layer", row.layer);
  visit("ops", row.ops);
  visit("phase", row.phase);
  visit("provider", row.provider);
  visit("kernel", row.kernel);
  visit("seconds", row.seconds);
  visit("flops", row.flops);
  visit("work_flops", row.work_flops);
  visit("bytes_read", row.bytes_read);
  visit("bytes_written", row.bytes_written);
  visit("working_set_bytes", row.working_set_bytes);
  visit("unit", row.unit);
  visit("flop_factor", row.flop_factor);
  visit("counted_bytes", row.counted_bytes);
  visit("covers", row.covers);
}

template <FieldsOf<Reading> Row, typename Visit>
void visit_fields(Row& row, Visit&& visit) {
  visit("at_seconds", row.at_seconds);
  visit("device", row.device);
  visit("sensor", row.sensor);
  visit("value", row.value);
}

template <FieldsOf<MemoryEntry> Row, typename Visit>
void visit_fields(Row& row, Visit&& visit) {
  visit("device", row.device);
  visit("category", row.category);
  visit("source", row.source);
  visit("bytes", row.bytes);
}

template <FieldsOf<Finding> Row, typename Visit>
void visit_fields(Row& row, Visit&& visit) {
  visit("name", row.name);
  visit("severity", row.severity);
  visit("evidence", row.evidence);
}

template <FieldsOf<EpochRecord> Row, typename Visit>
void visit_fields(Row& row, Visit&& visit) {
  visit("epoch", row.epoch);
  visit("train_loss", row.train_loss);
  visit("train_accuracy", row.train_accuracy);
  visit("test_loss", row.test_loss);
  visit("test_accuracy", row.test_accuracy);
  visit("samples", row.samples);
  visit("seconds", row.seconds);
  visit("data_wait_seconds", row.data_wait_seconds);
  visit("evaluation_seconds", row.evaluation_seconds);
  visit("energy_joules", row.energy_joules);
}

template <FieldsOf<LiveEntry> Row, typename Visit>
void visit_fields(Row& row, Visit&& visit) {
  visit("step", row.step);
  visit("category", row.category);
  visit("bytes", row.bytes);
}

template <FieldsOf<TimelineEntry> Row, typename Visit>
void visit_fields(Row& row, Visit&& visit) {
  visit("activity", row.activity);
  visit("name", row.name);
  visit("track", row.track);
  visit("begin_seconds", row.begin_seconds);
  visit("end_seconds", row.end_seconds);
  visit("step", row.step);
}

template <FieldsOf<StudyRecord> Row, typename Visit>
void visit_fields(Row& row, Visit&& visit) {
  visit("uuid", row.uuid);
  visit("name", row.name);
  visit("scale", row.scale);
  visit("environment", row.environment);
  visit("options", row.options);
  visit("definition", row.definition);
  visit("started", row.started);
  visit("finished", row.finished);
}

template <FieldsOf<StudyItemRecord> Row, typename Visit>
void visit_fields(Row& row, Visit&& visit) {
  visit("study", row.study);
  visit("number", row.number);
  visit("key", row.key);
  visit("title", row.title);
  visit("command", row.command);
  visit("status", row.status);
  visit("reason", row.reason);
  visit("substitute", row.substitute);
  visit("estimated_seconds", row.estimated_seconds);
  visit("seconds", row.seconds);
}

template <FieldsOf<Ceiling> Row, typename Visit>
void visit_fields(Row& row, Visit&& visit) {
  visit("device", row.device);
  visit("kind", row.kind);
  visit("subject", row.subject);
  visit("path", row.path);
  visit("scope", row.scope);
  visit("unit", row.unit);
  visit("value", row.value);
  visit("low", row.low);
  visit("high", row.high);
  visit("clock_mhz", row.clock_mhz);
  visit("datasheet", row.datasheet);
  visit("capacity_bytes", row.capacity_bytes);
  visit("measured", row.measured);
}

}  // namespace ridgeline
