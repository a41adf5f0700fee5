#include "capi/request.h"

#include <limits>

#include "base/error.h"
#include "base/text.h"

namespace ridgeline::capi {

using Json = nlohmann::json;

RequestReader::RequestReader(const char* text) {
  document_ = text == nullptr ? Json::object() : Json::parse(text, nullptr, false);
  if (!document_.is_object()) bad_input("the request is not a JSON object");
}

const Json* RequestReader::find(const char* key) {
  known_.insert(key);
  const auto found = document_.find(key);
  return found == document_.end() || found->is_null() ? nullptr : &*found;
}

void RequestReader::refuse(const char* key, const char* wanted) const {
  bad_input("{}: {} is not {}", key, document_[key].dump(), wanted);
}

std::string RequestReader::text_of(const char* key, const Json& value) const {
  if (value.is_string()) return value.get<std::string>();
  if (value.is_number()) return value.dump();
  refuse(key, "a text");
}

std::int64_t RequestReader::whole_of(const char* key, const Json& value) const {
  if (!value.is_number_integer() ||
      (value.is_number_unsigned() &&
       value.get<std::uint64_t>() > std::uint64_t{std::numeric_limits<std::int64_t>::max()})) {
    refuse(key, "a whole number");
  }
  return value.get<std::int64_t>();
}

void RequestReader::read(const char* key, std::string& value) {
  if (const Json* found = find(key)) value = text_of(key, *found);
}

void RequestReader::read(const char* key, std::optional<std::string>& value) {
  if (const Json* found = find(key)) value = text_of(key, *found);
}

void RequestReader::read(const char* key, bool& value) {
  const Json* found = find(key);
  if (found == nullptr) return;
  if (!found->is_boolean()) refuse(key, "true or false");
  value = found->get<bool>();
}

void RequestReader::read(const char* key, int& value) {
  std::int64_t number = value;
  read(key, number);
  if (number < std::numeric_limits<int>::min() || number > std::numeric_limits<int>::max()) {
    refuse(key, "a number of this size");
  }
  value = static_cast<int>(number);
}

void RequestReader::read(const char* key, std::int64_t& value) {
  if (const Json* found = find(key)) value = whole_of(key, *found);
}

void RequestReader::read(const char* key, double& value) {
  const Json* found = find(key);
  if (found == nullptr) return;
  if (!found->is_number()) refuse(key, "a number");
  value = found->get<double>();
}

void RequestReader::read(const char* key, std::optional<std::int64_t>& value) {
  if (const Json* found = find(key)) value = whole_of(key, *found);
}

void RequestReader::read(const char* key, std::optional<double>& value) {
  if (find(key) != nullptr) read(key, value.emplace());
}

void RequestReader::read(const char* key, std::vector<std::string>& values) {
  const Json* found = find(key);
  if (found == nullptr) return;
  values.clear();
  if (!found->is_array()) {
    values.push_back(text_of(key, *found));
    return;
  }
  for (const Json& each : *found) values.push_back(text_of(key, each));
}

void RequestReader::read(const char* key, std::vector<std::int64_t>& values) {
  const Json* found = find(key);
  if (found == nullptr) return;
  values.clear();
  if (!found->is_array()) {
    values.push_back(whole_of(key, *found));
    return;
  }
  for (const Json& each : *found) values.push_back(whole_of(key, each));
  if (values.empty()) refuse(key, "a list of at least one number");
}

void RequestReader::read_joined(const char* key, std::string& values) {
  std::vector<std::string> list;
  read(key, list);
  if (!list.empty()) values = joined(list, ",");
}

void RequestReader::finish() const {
  for (const auto& [key, value] : document_.items()) {
    if (known_.contains(key)) continue;
    const std::vector<std::string_view> names(known_.begin(), known_.end());
    bad_input("unknown key '{}'{}", key, known_names(key, names));
  }
}

namespace {

// All of a run but the model, the backend, the device, the precision and the batch, which are lists
// in some requests.
void read_plan_options(RequestReader& reader, RunOptions& run) {
  reader.read("settings", run.settings);
  reader.read("init", run.init);
  reader.read("classes", run.classes);
  reader.read("seed", run.seed);
  reader.read("threads", run.threads);
  reader.read("freeze", run.freeze);
  reader.read("recompute", run.recompute);
  reader.read("deterministic", run.deterministic);
  reader.read("no_pass", run.disabled_passes);
}

void read_work(RequestReader& reader, BenchAxes& axes, BenchWork& work) {
  reader.read_joined("model", axes.models);
  reader.read_joined("backend", axes.backends);
  reader.read_joined("device", axes.devices);
  reader.read_joined("batch", axes.batches);
  reader.read_joined("precision", axes.precisions);
  reader.read_joined("image", axes.images);
  reader.read("data", work.data.data);
  reader.read("normalize", work.data.normalize);
  reader.read("loader", work.loader);
  reader.read("workers", work.workers);
  reader.read("decoder", work.decoder);
  read_plan_options(reader, work.run);
}

}  // namespace

void read_run(RequestReader& reader, RunOptions& run) {
  reader.read("model", run.model);
  reader.read("backend", run.backend);
  reader.read("device", run.device);
  reader.read("precision", run.precision);
  read_plan_options(reader, run);
}

void read_optimizer(RequestReader& reader, OptimizerOptions& optimizer) {
  reader.read("optimizer", optimizer.name);
  reader.read("lr", optimizer.learning_rate);
  reader.read("momentum", optimizer.momentum);
  reader.read("nesterov", optimizer.nesterov);
  reader.read("weight_decay", optimizer.weight_decay);
  reader.read("label_smoothing", optimizer.label_smoothing);
}

void read_store(RequestReader& reader, StoreOptions& store) {
  // Unlike a command, a call writes nothing down unless it is told where.
  store.none = true;
  std::optional<std::string> path;
  reader.read("store", path);
  if (path) {
    store.path = *path;
    store.none = false;
  }
  reader.read("label", store.label);
  reader.read("env_label", store.environment_label);
}

DescribeRequest describe_request(const char* text) {
  RequestReader reader(text);
  DescribeRequest request;
  read_run(reader, request.run);
  read_optimizer(reader, request.optimizer);
  reader.read("batch", request.batches);
  reader.read("image", request.image);
  reader.read("memory", request.memory_limit);
  reader.finish();
  return request;
}

SessionRequest session_request(const char* text) {
  RequestReader reader(text);
  SessionRequest request;
  read_run(reader, request.run);
  read_optimizer(reader, request.optimizer);
  reader.read("batch", request.run.batch);
  reader.read("image", request.image);
  reader.read("normalize", request.normalize);
  reader.read("weights", request.weights);
  reader.read("keep_gradients", request.keep_gradients);
  std::string input = "pixels";
  reader.read("input", input);
  static constexpr std::array<std::string_view, 2> kInputs = {"pixels", "tensor"};
  request.tensor_input = choice_of("input", input, kInputs) == 1;
  if (request.run.precision == "fp64") {
    request.run.precision = "fp32";
    request.exact = true;
  }
  reader.finish();
  return request;
}

TrainRequest train_request(const char* text) {
  RequestReader reader(text);
  TrainRequest request;
  read_run(reader, request.run);
  read_optimizer(reader, request.optimizer);
  reader.read("batch", request.run.batch);
  reader.read("schedule", request.schedule.name);
  reader.read("step_size", request.schedule.step_size);
  reader.read("gamma", request.schedule.gamma);
  reader.read("warmup", request.schedule.warmup);
  reader.read("weights", request.checkpoint.weights);
  reader.read("checkpoint", request.checkpoint.folder);
  reader.read("checkpoint_every", request.checkpoint.every);
  reader.read("resume", request.checkpoint.resume);
  read_store(reader, request.record.store);
  reader.read("telemetry", request.record.telemetry_hz);
  reader.read("tensorboard", request.record.tensorboard);
  reader.read("data", request.data);
  reader.read("validation", request.validation);
  reader.read("limit", request.limit);
  reader.read("epochs", request.epochs);
  reader.read("iterations", request.iterations);
  reader.read("full_batch", request.full_batch);
  reader.read("eval_batch", request.eval_batch);
  reader.read("eval_every", request.eval_every);
  reader.read("last_batch", request.last_batch);
  reader.read("normalize", request.normalize);
  reader.read("image", request.image);
  reader.read("augment", request.augment);
  reader.read("flip", request.flip);
  reader.read("workers", request.workers);
  reader.read("decoder", request.decoder);
  reader.read("strict", request.strict);
  reader.read("confusion", request.confusion);
  reader.read("target_accuracy", request.target_accuracy);
  reader.read("loss_scale", request.loss_scale);
  reader.read("micro_batch", request.micro_batch);
  reader.read("clip_norm", request.clip_norm);
  reader.finish();
  return request;
}

study::StudyRequest study_request(const char* text, bool& dry_run) {
  RequestReader reader(text);
  study::StudyRequest request;
  reader.read("study", request.name);
  reader.read("scale", request.scale);
  reader.read("only", request.only);
  reader.read("data", request.data);
  reader.read("store", request.store.path);
  reader.read("env_label", request.store.environment_label);
  reader.read("threads", request.threads);
  reader.read("restart", request.restart);
  reader.read("program", request.program);
  reader.read("dry_run", dry_run);
  reader.finish();
  return request;
}

BenchCall bench_request(const char* text) {
  RequestReader reader(text);
  BenchCall call;
  BenchRequest& request = call.request;
  read_work(reader, request.axes, request.work);
  reader.read_joined("optimizer", request.axes.optimizers);
  reader.read_joined("samples", request.axes.samples);
  reader.read("momentum", request.work.optimizer.momentum);
  reader.read("weight_decay", request.work.optimizer.weight_decay);
  reader.read("inference", request.work.inference);
  reader.read("warmup", request.warmup);
  reader.read("iterations", request.iterations);
  reader.read("precision_percent", request.precision_percent);
  reader.read("max_seconds", request.max_seconds);
  reader.read("telemetry", request.telemetry_hz);
  reader.read("tensorboard", request.tensorboard);
  reader.read("split", request.split);
  reader.read("per_step", call.per_step);
  read_store(reader, request.store);
  reader.finish();
  return call;
}

ProfileCall profile_request(const char* text) {
  RequestReader reader(text);
  ProfileCall call;
  ProfileRequest& request = call.request;
  read_work(reader, request.axes, request.work);
  read_optimizer(reader, request.work.optimizer);
  reader.read("steps", request.steps);
  reader.read("counters", request.counters);
  reader.read("no_roof", request.no_roof);
  reader.read("telemetry", request.telemetry_hz);
  reader.read("by", call.by);
  reader.read("top", call.top);
  reader.read("trace", call.trace);
  read_store(reader, request.store);
  reader.finish();
  return call;
}

}  // namespace ridgeline::capi
