#include "store/identity_v4.h"

#include <algorithm>
#include <cmath>
#include <filesystem>

#include "base/parse.h"
#include "base/text.h"
#include "models/model.h"

namespace ridgeline {
namespace {

using Words = std::vector<std::string>;

// Without empty parts at the end.
Words split(std::string_view text, std::string_view separator) {
  if (text.empty()) return {};
  if (text.ends_with(separator)) text.remove_suffix(separator.size());
  const std::vector<std::string_view> pieces = pieces_of(text, separator);
  return {pieces.begin(), pieces.end()};
}

// The same of a count.
template <typename Whole>
Whole whole_of(const std::optional<double>& number, Whole otherwise) {
  return number && *number >= 0.0 && *number < 1e9 ? static_cast<Whole>(*number) : otherwise;
}

void sort_names(NameList& names) {
  std::sort(names.begin(), names.end());
  names.erase(std::unique(names.begin(), names.end()), names.end());
}

// The words of a command line; those with spaces and the like stand in single quotes.
class CommandLine {
 public:
  explicit CommandLine(std::string_view text) {
    while (!text.empty()) {
      const bool quoted = text.front() == '\'';
      if (quoted) text.remove_prefix(1);
      const std::size_t end = std::min(text.find(quoted ? "' " : " "), text.size());
      std::string_view word = text.substr(0, end);
      text.remove_prefix(std::min(end + (quoted ? 2 : 1), text.size()));
      if (quoted && text.empty() && word.ends_with('\'')) word.remove_suffix(1);
      words_.emplace_back(word);
    }
  }

  [[nodiscard]] bool has(std::string_view word) const {
    return std::find(words_.begin(), words_.end(), word) != words_.end();
  }
  // Every value of an option.
  [[nodiscard]] Words values(const std::string& name) const {
    Words found;
    for (std::size_t i = 0; i < words_.size(); ++i) {
      if (words_[i] == name && i + 1 < words_.size()) found.push_back(words_[i + 1]);
      if (words_[i].starts_with(name + "=")) found.push_back(words_[i].substr(name.size() + 1));
    }
    return found;
  }
  [[nodiscard]] std::string value(const std::string& name, const std::string& otherwise) const {
    const Words found = values(name);
    return found.empty() ? otherwise : found.back();
  }
  [[nodiscard]] std::optional<double> number(const std::string& name) const {
    return number_in<double>(value(name, ""));
  }
  [[nodiscard]] std::int64_t whole(const std::string& name, std::int64_t otherwise) const {
    return whole_of(number(name), otherwise);
  }

 private:
  Words words_;
};

// Words that mean nothing to us.
void keep(Work& work, const std::string& name, const std::string& text) {
  if (!text.empty()) work.settings[name] = text;
}

void read_settings(const std::string& text, Work& work) {
  std::string* value = nullptr;
  for (const std::string& part : split(text, ",")) {
    const std::size_t equals = part.find('=');
    if (equals != std::string::npos) {
      value = &work.settings[part.substr(0, equals)];
      *value = part.substr(equals + 1);
    } else if (value != nullptr) {
      *value += "," + part;  // "filters=8,16"
    } else {
      value = &work.settings["settings"];
      *value = part;
    }
  }
}

void read_optimizer(const std::string& text, Work& work) {
  const Words words = split(text, " ");
  Work read = work;
  if (!words.empty()) read.optimizer = words[0];
  for (std::size_t i = 1; i < words.size(); ++i) {
    if (words[i] == "nesterov") {
      read.nesterov = true;
      continue;
    }
    const bool decay = words[i] == "weight" && i + 1 < words.size() && words[i + 1] == "decay";
    const std::string& name = words[i];
    i += decay ? 2 : 1;
    const std::optional<double> number =
        i < words.size() ? number_in<double>(words[i]) : std::nullopt;
    if (number && decay) {
      read.weight_decay = *number;
    } else if (number && name == "momentum") {
      read.momentum = *number;
    } else if (number && name == "lr") {
      read.learning_rate = *number;
    } else {
      work.optimizer = text;
      return;
    }
  }
  work = std::move(read);
}

void read_normalisation(const std::string& text, Work& work) {
  if (text.empty() || text == "unit" || text == "pixels / 255, in [0, 1]") return;
  static constexpr std::string_view kBegin = "(pixels / 255 - ", kMiddle = ") / ";
  const std::size_t middle = text.find(kMiddle);
  if (!text.starts_with(kBegin) || middle == std::string::npos) {
    return keep(work, "normalisation", text);
  }
  const Words means = split(text.substr(kBegin.size(), middle - kBegin.size()), ","),
              deviations = split(text.substr(middle + kMiddle.size()), ",");
  NumberList numbers;
  for (const Words* list : {&means, &deviations}) {
    for (const std::string& word : *list) {
      const std::optional<double> number = number_in<double>(word);
      if (!number) return keep(work, "normalisation", text);
      numbers.push_back(*number);
    }
  }
  work.normalisation = std::move(numbers);
}

void read_variant(const std::string& text, Work& work) {
  static constexpr std::string_view kFreeze = "freeze=", kSmoothing = "label-smoothing=";
  Words unread;
  for (const std::string& part : split(text, ",")) {
    const std::optional<double> smoothing = part.starts_with(kSmoothing)
                                                ? number_in<double>(part.substr(kSmoothing.size()))
                                                : std::nullopt;
    if (part == "loader") {
      work.loader = true;
    } else if (part == "crop") {
      work.augment = "crop";
    } else if (part == "full batch") {
      work.full_batch = true;
    } else if (smoothing) {
      work.label_smoothing = *smoothing;
    } else if (part.starts_with(kFreeze)) {
      work.freeze.push_back(part.substr(kFreeze.size()));
    } else {
      unread.push_back(part);
    }
  }
  sort_names(work.freeze);
  keep(work, "variant", joined(unread, ","));
}

void read_options(const std::string& text, Executor& executor) {
  static constexpr std::string_view kPass = "no-pass ", kWorkers = "workers ";
  for (const std::string& part : split(text, ",")) {
    if (part == "deterministic") {
      executor.deterministic = true;
    } else if (part == "recompute") {
      executor.recompute = true;
    } else if (part.starts_with(kPass)) {
      executor.disabled_passes.push_back(part.substr(kPass.size()));
    } else if (part.starts_with(kWorkers)) {
      executor.workers = whole_of(number_in<double>(part.substr(kWorkers.size())), 0);
    } else {
      executor.modes.push_back(part);
    }
  }
}

// "0.98", "98" or "98%".
std::optional<double> share_of(std::string text) {
  const bool percent = text.ends_with('%');
  if (percent) text.pop_back();
  const std::optional<double> number = number_in<double>(text);
  return number && (percent || *number > 1.0) ? std::optional(*number / 100.0) : number;
}

void read_training(const RunV4& run, const CommandLine& line, Identity& identity) {
  Work& work = identity.work;
  Executor& executor = identity.executor;
  work.loader = !work.full_batch;
  if (work.augment == "none" && (line.has("--flip") || line.value("--augment", "") == "flip")) {
    work.augment = "flip";
  }
  work.weights = std::filesystem::path(line.value("--weights", "")).filename().string();
  work.last_batch = line.value("--last-batch", work.last_batch);
  work.loss_scale = line.number("--loss-scale");
  work.epochs = work.full_batch ? line.whole("--iterations", 500) : line.whole("--epochs", 10);
  if (!work.target_accuracy) work.target_accuracy = share_of(line.value("--target-accuracy", ""));
  work.schedule = line.value("--schedule", work.schedule);
  if (work.schedule == "step") {
    work.schedule_step = line.whole("--step-size", 30);
    work.schedule_gamma = line.number("--gamma").value_or(0.1);
  }
  work.warmup_epochs = line.whole("--warmup", 0);
  // A row of full batches tells of the iterations up to its number.
  const std::int64_t told = work.full_batch && work.batch > 0
                                ? std::max(run.first_epoch_samples / work.batch, std::int64_t{1})
                                : 1;
  if (line.has("--resume") && run.first_epoch > 0) work.first_epoch = run.first_epoch - told;
  executor.recompute = line.has("--recompute");
  executor.disabled_passes = line.values("--no-pass");
  if (work.loader) {
    const int workers = whole_of(line.number("--workers"), 0);
    executor.workers = workers > 0 ? workers : run.processors;
  }
}

// One entry of a list of batches may have been "full".
bool is_full_batch(const Work& work, const CommandLine& line) {
  const Words batches = split(line.value("--batch", ""), ",");
  const auto listed = [&](std::string_view batch) {
    return std::find(batches.begin(), batches.end(), batch) != batches.end();
  };
  // Inference measures batches of one image unasked.
  if (work.kind == "inference" && work.batch == 1) return false;
  return listed("full") && !listed(std::to_string(work.batch));
}

// The worker of the peers, measuring alone.
bool is_worker(const CommandLine& line) { return line.has("--alone") && line.has("--peers"); }

}  // namespace

bool has_command_line(const RunV4& run) {
  return !run.command.empty() && CommandLine(run.arguments).has(run.command);
}

Identity typed_identity(const RunV4& run) {
  Identity identity;
  Work& work = identity.work;
  Executor& executor = identity.executor;
  const CommandLine line(run.arguments);
  const bool training = run.command == "train";
  const WorkV4& old = run.work;
  work.kind = old.kind;
  work.model = old.model;
  work.batch = old.batch;
  work.classes = old.classes;
  work.precision = old.precision;
  work.data = old.data;
  work.data_samples = old.data_samples;
  read_settings(old.settings, work);
  read_optimizer(old.optimizer, work);
  read_normalisation(old.normalisation, work);
  read_variant(old.variant, work);
  if (const auto image = ImageShape::parse(old.image)) {
    work.image = *image;
  } else {
    keep(work, "image", old.image);
  }
  executor.backend = run.executor.backend;
  executor.device = run.executor.device;
  executor.threads = run.executor.threads;
  read_options(run.executor.options, executor);

  if (run.learning_rate) work.learning_rate = run.learning_rate;
  work.target_accuracy = run.target_accuracy;
  work.test_samples = whole_of(run.test_samples, std::int64_t{0});
  const bool told = has_command_line(run);
  if (told) work.init = line.value("--init", work.init);
  if (told && training) read_training(run, line, identity);
  if (told && !training) work.full_batch = work.full_batch || is_full_batch(work, line);
  if (!work.optimizer.empty() && !work.learning_rate && (told || is_worker(line))) {
    const bool plain = work.optimizer == "sgd" || is_worker(line);
    work.learning_rate = line.number("--lr").value_or(plain ? 0.01 : 0.001);
  }
  // One batch on the device was counted as the data.
  const bool drawn = training || work.loader || work.full_batch;
  if (!drawn && work.data_samples == work.batch) work.data_samples = 0;
  sort_names(executor.disabled_passes);
  sort_names(executor.modes);
  complete_settings(work);
  return identity;
}

}  // namespace ridgeline
