#include "peers/peer.h"

#include <stdlib.h>

#include <cmath>
#include <fstream>
#include <limits>
#include <nlohmann/json.hpp>

#include "base/embedded.h"
#include "base/error.h"
#include "base/json_text.h"
#include "base/text.h"
#include "inspect/network_document.h"
#include "peers/line_process.h"
#include "peers/parity.h"

namespace ridgeline {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::ordered_json;

constexpr double kStopSeconds = 5.0;
constexpr std::size_t kShownAnswer = 120;  // characters of an answer in a message

// A script of its own for every worker: the program may be replaced while one runs.
fs::path write_worker(const TemporaryFolder& folder) {
  const fs::path path = folder.path() / "worker.py";
  std::ofstream file(path, std::ios::binary);
  file << worker_script();
  file.close();
  if (!file) fail("{} cannot be written", path.string());
  return path;
}

std::vector<std::string> interpreters(const PeerOptions& options) {
  if (!options.pythons.empty()) return options.pythons;
  const char* chosen = getenv("RIDGELINE_PYTHON");
  if (chosen != nullptr && *chosen != '\0') return {chosen};
  std::vector<std::string> found;
  if (fs::exists("/usr/bin/python3")) found.emplace_back("/usr/bin/python3");
  const char* path = getenv("PATH");
  const std::string folders = path == nullptr ? "" : path;
  for (std::size_t begin = 0; begin < folders.size();) {
    const std::size_t end = std::min(folders.find(':', begin), folders.size());
    const fs::path candidate = fs::path(folders.substr(begin, end - begin)) / "python3";
    std::error_code error;
    if (fs::exists(candidate, error)) {
      const bool known = !found.empty() && fs::equivalent(candidate, found[0], error);
      if (!known) found.push_back(candidate.string());
      break;
    }
    begin = end + 1;
  }
  return found;
}

Json optimizer_json(const OptimizerAttributes& attributes, double rate) {
  if (const auto* sgd = std::get_if<SgdAttributes>(&attributes)) {
    return {{"name", "sgd"},
            {"learning_rate", rate},
            {"momentum", sgd->momentum},
            {"weight_decay", sgd->weight_decay},
            {"nesterov", sgd->nesterov}};
  }
  const auto& adam = std::get<AdamAttributes>(attributes);
  return {{"name", adam.decoupled ? "adamw" : "adam"},
          {"learning_rate", rate},
          {"beta1", adam.beta1},
          {"beta2", adam.beta2},
          {"epsilon", adam.epsilon},
          {"weight_decay", adam.weight_decay}};
}

Json work_json(const PeerWork& work) {
  const StepSpec& step = work.step;
  const NetworkForm form{.batch = step.batch,
                         .training = !work.inference,
                         .freeze = work.inference ? std::vector<std::string>() : step.freeze};
  return {{"kind", work.inference ? "inference" : "training"},
          {"network", network_document(step.model, form)},
          {"batch", step.batch},
          {"precision", name_of(step.precision)},
          {"optimizer", optimizer_json(step.optimizer, work.learning_rate)},
          {"mean", step.mean},
          {"deviation", step.deviation},
          {"label_smoothing", step.label_smoothing}};
}

std::optional<double> number(const Json& answer, const char* name) {
  const auto found = answer.find(name);
  if (found == answer.end() || found->is_null()) return std::nullopt;
  return found->get<double>();
}

std::optional<std::int64_t> bytes(const Json& answer, const char* name) {
  const auto found = answer.find(name);
  if (found == answer.end() || found->is_null()) return std::nullopt;
  return found->get<std::int64_t>();
}

std::string_view name_of_kind(SampleKind kind) {
  if (kind == SampleKind::split) return "split";
  return kind == SampleKind::warmup ? "warmup" : "measured";
}

std::vector<Sample> samples_of(const Json& answer, std::int64_t count, SampleKind kind) {
  if (!answer.value("phases", true)) return {};
  std::vector<Sample> samples(static_cast<std::size_t>(count));
  const auto column = [&](const char* name) -> std::optional<std::vector<double>> {
    if (!answer.contains(name)) return std::nullopt;
    std::vector<double> values = answer.at(name).get<std::vector<double>>();
    if (values.size() != samples.size()) {
      fail("{} times of '{}' for {} steps", values.size(), name, count);
    }
    return values;
  };
  const auto at = column("at"), wall = column("wall"), device = column("device");
  const auto upload = column("upload"), forward = column("forward"), backward = column("backward");
  const auto optimizer = column("optimizer");
  if (!at || !wall) fail("no times for {} steps", count);
  for (std::size_t i = 0; i < samples.size(); ++i) {
    Sample& sample = samples[i];
    sample.iteration = static_cast<std::int64_t>(i);
    sample.kind = kind;
    sample.at_seconds = (*at)[i];
    sample.wall_seconds = (*wall)[i];
    if (device) sample.device_seconds = (*device)[i];
    if (upload) sample.upload_seconds = (*upload)[i];
    if (forward) sample.forward_seconds = (*forward)[i];
    if (backward) sample.backward_seconds = (*backward)[i];
    if (optimizer) sample.optimizer_seconds = (*optimizer)[i];
  }
  return samples;
}

}  // namespace

std::string worker_script() {
  std::string script;
  for (const EmbeddedFile& file : embedded_files()) {
    if (file.name.starts_with("src/peers/worker/")) script += file.text;
  }
  return script;
}

struct Peer::State {
  State(const PeerName& peer, const PeerOptions& settings)
      : name(peer), options(settings), folder("peer"), script(write_worker(folder)) {}

  // Looks for an interpreter that has the peer and keeps the worker that said so.
  void start() {
    std::vector<std::string> reasons;
    for (const std::string& python : interpreters(options)) {
      try {
        process = std::make_unique<LineProcess>(std::vector<std::string>{python, script.string()});
        const Json hello =
            ask({{"do", "hello"}, {"peers", {name.text()}}, {"threads", options.threads}},
                options.start_seconds);
        const Json& told = hello.at("peers").at(name.text());
        if (told.at("available").get<bool>()) {
          about.available = true;
          about.python = python;
          about.versions = hello.at("versions").get<std::map<std::string, std::string>>();
          return;
        }
        reasons.push_back(fmt::format("{}: {}", python, told.at("reason").get<std::string>()));
      } catch (const Error& error) {
        reasons.push_back(fmt::format("{}: {}", python, error.what()));
      } catch (const Json::exception&) {
        reasons.push_back(fmt::format("{}: its answer is incomplete", python));
      }
      process.reset();
    }
    if (reasons.empty()) reasons.emplace_back("no python3 was found");
    for (std::size_t i = 0; i < reasons.size(); ++i) {
      about.reason += (i > 0 ? "; " : "") + reasons[i];
    }
    about.reason += fmt::format(
        "; install it ({}), or name another interpreter in RIDGELINE_PYTHON", name.install());
  }

  Json ask(Json request, double seconds) {
    const std::string what = request.at("do").get<std::string>();
    if (process == nullptr || !process->running()) fail("{}: its worker has ended", name.text());
    request["id"] = ++requests;
    std::string line;
    try {
      line = process->ask(json_text(request), seconds);
    } catch (const Error& error) {
      fail("{}, asked for '{}': {}", name.text(), what, error.what());
    }
    Json answer = Json::parse(line, nullptr, false);
    if (!answer.is_object() || answer.value("id", std::int64_t{0}) != requests) {
      process->end(0.0);
      fail("{}, asked for '{}', gave an unreadable answer and was stopped: '{}'{}", name.text(),
           what, line.substr(0, kShownAnswer), process->last_words());
    }
    if (!answer.contains("error")) return answer;
    const std::string error = answer.at("error").get<std::string>();
    if (answer.value("unavailable", false)) bad_input("{}: {}", name.text(), error);
    fail("{}, asked for '{}': {}", name.text(), what, error);
  }

  // The same, with what `read` makes of the answer.
  template <typename Read>
  auto ask(Json request, double seconds, const Read& read) {
    const Json answer = ask(std::move(request), seconds);
    try {
      return read(answer);
    } catch (const Json::exception&) {
      fail("{}: an answer is incomplete: {}", name.text(),
           json_text(answer).substr(0, kShownAnswer));
    }
  }

  // Once the duration of steps is known, many of them may take longer than one answer.
  double patience(std::int64_t count) const {
    return options.reply_seconds + 10.0 * static_cast<double>(count) * slowest_step.value_or(0.0);
  }

  std::vector<Sample> step(std::int64_t count, SampleKind kind, bool upload) {
    std::vector<Sample> samples =
        ask({{"do", "step"}, {"count", count}, {"kind", name_of_kind(kind)}, {"upload", upload}},
            patience(count), [&](const Json& answer) { return samples_of(answer, count, kind); });
    for (const Sample& sample : samples) {
      const double seconds = sample.wall_seconds + sample.upload_seconds.value_or(0.0);
      slowest_step = std::max(slowest_step.value_or(0.0), seconds);
    }
    return samples;
  }

  PeerName name;
  PeerOptions options;
  PeerAvailability about;
  TemporaryFolder folder;
  fs::path script;
  std::unique_ptr<LineProcess> process;
  std::int64_t requests = 0;
  std::optional<double> slowest_step;
  std::string device;
};

PeerAvailability peer_availability(const PeerName& name, const PeerOptions& options) {
  return PeerStarts().availability(name, options);
}

std::map<std::string, PeerAvailability> installed_peers(const PeerOptions& options) {
  const TemporaryFolder folder("peers");
  const fs::path script = write_worker(folder);
  std::vector<std::string> names;
  for (const PeerInfo& peer : known_peers()) names.emplace_back(peer.name);
  const std::string request = json_text(Json{{"id", 1}, {"do", "installed"}, {"peers", names}});
  std::map<std::string, PeerAvailability> found;
  // By the reason, where it is the same everywhere it need not be told twice.
  std::map<std::string, std::map<std::string, std::vector<std::string>>> missing;
  for (const std::string& python : interpreters(options)) {
    Json answer;
    std::string trouble = "its answer is incomplete";
    try {
      LineProcess process({python, script.string()});
      answer = Json::parse(process.ask(request, options.start_seconds), nullptr, false);
    } catch (const Error& error) {
      trouble = error.what();
    }
    for (const std::string& name : names) {
      PeerAvailability& peer = found[name];
      if (peer.available) continue;
      try {
        const Json& told = answer.at("peers").at(name);
        if (told.at("reason").is_null()) {
          peer.available = true;
          peer.python = python;
          if (told.at("version").is_string()) peer.versions[name] = told.at("version");
        } else {
          missing[name][told.at("reason").get<std::string>()].push_back(python);
        }
      } catch (const Json::exception&) {
        missing[name][trouble].push_back(python);
      }
    }
  }
  for (const std::string& name : names) {
    PeerAvailability& peer = found[name];
    if (peer.available) continue;
    std::vector<std::string> reasons;
    for (const auto& [reason, pythons] : missing[name]) {
      reasons.push_back(fmt::format("{} ({})", reason, joined(pythons, ", ")));
    }
    peer.reason = reasons.empty() ? "no python3 was found" : joined(reasons, "; ");
  }
  return found;
}

Peer::Peer(const PeerName& name, const PeerOptions& options)
    : state_(std::make_unique<State>(name, options)) {
  state_->start();
  if (!state_->about.available) {
    bad_input("{} is not available: {}", name.text(), state_->about.reason);
  }
}

Peer::~Peer() = default;
Peer::Peer(Peer&&) noexcept = default;
Peer& Peer::operator=(Peer&&) noexcept = default;

const PeerName& Peer::name() const { return state_->name; }
const PeerAvailability& Peer::about() const { return state_->about; }
std::string Peer::device_name() const { return state_->device; }

PeerSetup Peer::prepare(const PeerWork& work, const PeerFiles& files) {
  if (work.step.flip) {
    bad_input("{}: peers do not mirror images at random; leave out augmentation", name().text());
  }
  state_->slowest_step.reset();
  const Json request = {{"do", "prepare"},
                        {"peer", name().backend()},
                        {"options", name().options},
                        {"work", work_json(work)},
                        {"threads", state_->options.threads},
                        {"device", text_or_null(work.device)},
                        {"weights", files.weights().string()},
                        {"samples", files.samples().string()}};
  return state_->ask(request, state_->options.reply_seconds, [&](const Json& answer) {
    state_->device = answer.at("device").get<std::string>();
    return PeerSetup{.seconds = answer.at("setup_seconds").get<double>(),
                     .compile_seconds = number(answer, "compile_seconds")};
  });
}

std::vector<Sample> Peer::step(std::int64_t count, SampleKind kind, bool upload) {
  ensure(count >= 1, "a peer was asked for {} steps", count);
  if (state_->slowest_step || count == 1) return state_->step(count, kind, upload);
  // How long to wait for many is known after one.
  std::vector<Sample> samples = state_->step(1, kind, upload);
  if (samples.empty()) return {};
  const double offset = samples[0].at_seconds + samples[0].wall_seconds;
  for (Sample sample : state_->step(count - 1, kind, upload)) {
    ++sample.iteration;
    sample.at_seconds += offset;
    samples.push_back(sample);
  }
  return samples;
}

std::optional<Sample> Peer::queued(std::int64_t count) {
  const auto read = [&](const Json& answer) -> std::optional<Sample> {
    if (answer.at("wall").is_null()) return std::nullopt;
    Sample sample;
    sample.kind = SampleKind::queued;
    sample.wall_seconds = answer.at("wall").get<double>();
    sample.device_seconds = answer.at("device").get<double>();
    return sample;
  };
  return state_->ask({{"do", "queued"}, {"count", count}}, state_->patience(count), read);
}

std::vector<double> Peer::losses(std::int64_t steps) {
  const auto read = [&](const Json& answer) {
    std::vector<double> losses;
    for (const Json& loss : answer.at("losses")) {
      losses.push_back(loss.is_null() ? std::numeric_limits<double>::quiet_NaN()
                                      : loss.get<double>());
    }
    return losses;
  };
  const std::vector<double> losses =
      state_->ask({{"do", "losses"}, {"steps", steps}, {"loss_scale", kParityLossScale}},
                  state_->patience(steps), read);
  if (losses.size() != static_cast<std::size_t>(steps)) {
    fail("{}: {} losses of {} steps", name().text(), losses.size(), steps);
  }
  return losses;
}

PeerMemory Peer::memory() {
  return state_->ask({{"do", "memory"}}, state_->options.reply_seconds, [](const Json& answer) {
    return PeerMemory{.rss_bytes = answer.at("rss_bytes").get<std::int64_t>(),
                      .peak_rss_bytes = answer.at("peak_rss_bytes").get<std::int64_t>(),
                      .peak_bytes = bytes(answer, "peak_bytes"),
                      .reserved_bytes = bytes(answer, "reserved_bytes")};
  });
}

std::optional<double> Peer::processor_seconds() const {
  return state_->process ? state_->process->processor_seconds() : std::nullopt;
}

void Peer::stop() {
  if (state_->process == nullptr || !state_->process->running()) return;
  (void)state_->ask({{"do", "stop"}}, kStopSeconds);
  state_->process->end(kStopSeconds);
}

const PeerAvailability& PeerStarts::availability(const PeerName& name, const PeerOptions& options) {
  const auto [place, fresh] = known_.try_emplace(name.text());
  Known& known = place->second;
  if (!fresh) return known.about;
  try {
    known.waiting.emplace(name, options);
    known.about = known.waiting->about();
  } catch (const Error& error) {
    known.about.reason = error.what();
  }
  return known.about;
}

Peer PeerStarts::take(const PeerName& name, const PeerOptions& options) {
  const auto known = known_.find(name.text());
  if (known == known_.end() || !known->second.waiting) return Peer(name, options);
  Peer peer = std::move(*known->second.waiting);
  known->second.waiting.reset();
  return peer;
}

}  // namespace ridgeline
