#include "study/command_words.h"

#include <fmt/core.h>

#include "base/text.h"

namespace ridgeline::study {
namespace {

class Words {
 public:
  explicit Words(std::vector<std::string> words) : words_(std::move(words)) {}

  void add(const char* option, const std::string& value) {
    if (value.empty()) return;
    words_.emplace_back(option);
    words_.push_back(value);
  }
  template <typename Number>
  void add(const char* option, const std::optional<Number>& value) {
    if (value) add(option, fmt::format("{}", *value));
  }
  void flag(const char* option, bool wanted) {
    if (wanted) words_.emplace_back(option);
  }
  std::vector<std::string> take() { return std::move(words_); }

 private:
  std::vector<std::string> words_;
};

// "native,auto@cpu,auto@cuda:0": devices only where a backend has several.
std::string backends_text(const std::vector<ExecutorName>& executors) {
  std::vector<std::string> keys;
  for (const ExecutorName& executor : executors) keys.push_back(executor.key());
  return joined(keys, ",");
}

std::vector<std::string> command_of(const Part& part, const std::string& model) {
  switch (part.command) {
    case PartCommand::inference:
      return {"bench", model, "--inference"};
    case PartCommand::ceilings:
      return {"env", "--measure"};
    default:
      return {std::string(name_of(part.command)), model};
  }
}

}  // namespace

std::vector<std::string> command_words(const CommandInput& input) {
  const Part& part = input.part;
  const Configuration& configuration = input.configuration;
  const bool bench = part.command == PartCommand::bench || part.command == PartCommand::inference;
  const bool train = part.command == PartCommand::train;
  Words words(command_of(part, configuration.model));
  if (bench) {
    words.add("--backend", backends_text(input.executors));
  } else {
    words.add("--backend", input.executors.at(0).backend);
    words.add("--device", input.executors.at(0).device);
  }
  for (const auto& [name, value] : configuration.settings) words.add("--set", name + "=" + value);
  words.add("--image", configuration.image);
  words.add("--batch", configuration.batch_text());
  words.add(train ? "--limit" : "--samples", configuration.samples);
  if (configuration.precision) {
    words.add("--precision", std::string(name_of(*configuration.precision)));
  }
  words.add("--optimizer", configuration.optimizer);
  words.add("--lr", configuration.learning_rate);
  // Momentum is SGD's alone.
  if (configuration.optimizer.empty() || configuration.optimizer == "sgd") {
    words.add("--momentum", part.momentum);
  }
  words.add("--weight-decay", part.weight_decay);
  words.add("--data", input.data);
  words.add("--normalize", part.normalize);
  words.add("--validation", part.validation);
  words.add("--classes", part.classes);
  words.add("--init", part.init);
  words.add("--augment", part.augment);
  words.add("--schedule", part.schedule);
  words.add("--target-accuracy", part.target_accuracy);
  words.add("--weights", input.weights);
  for (const std::string& pattern : part.freeze) words.add("--freeze", pattern);
  for (const std::string& pass : part.no_pass) words.add("--no-pass", pass);
  words.flag("--loader", part.loader);
  words.flag("--full-batch", part.full_batch);
  words.add("--workers", part.workers);
  words.add("--warmup", part.warmup);
  words.add(part.command == PartCommand::profile ? "--steps" : "--iterations", part.iterations);
  words.add("--max-seconds", part.max_seconds);
  if (!part.ranks.empty()) {
    std::vector<std::string> counts;
    for (const std::int64_t ranks : part.ranks) counts.push_back(std::to_string(ranks));
    words.add("--ranks", joined(counts, ","));
    words.add("--scaling", part.scaling);
    words.add("--reduce", part.reduce);
    words.flag("--unconnected", part.unconnected);
  }
  words.add("--epochs", part.epochs);
  words.add("--eval-every", part.eval_every);
  if (configuration.threads) {
    words.add("--threads", configuration.threads);
  } else if (input.threads > 0) {
    words.add("--threads", std::optional(input.threads));
  }
  return words.take();
}

}  // namespace ridgeline::study
