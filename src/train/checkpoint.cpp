#include "train/checkpoint.h"

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstring>
#include <functional>
#include <numeric>
#include <utility>

#include "backends/registry.h"
#include "base/durable_file.h"
#include "base/error.h"
#include "base/folder.h"
#include "base/parallel.h"
#include "base/text.h"
#include "base/text_file.h"
#include "plan/choice_cache.h"
#include "train/checkpoint_json.h"
#include "train/safetensors.h"

namespace ridgeline {
namespace {

namespace fs = std::filesystem;

constexpr const char* kLast = "LAST";
constexpr const char* kLock = "LOCK";
constexpr const char* kTensors = "state.safetensors";
constexpr const char* kState = "state.json";
constexpr std::string_view kPrefix = "checkpoint-";
constexpr std::string_view kPart = ".part";  // behind the name of one that is being written
constexpr int kReadAttempts = 5;

// FNV-1a over words: quick enough for a whole training set.
class WordHash {
 public:
  void add(std::span<const std::byte> bytes) {
    while (bytes.size() >= sizeof(std::uint64_t)) {
      std::uint64_t word = 0;
      std::memcpy(&word, bytes.data(), sizeof(word));
      mix(word);
      bytes = bytes.subspan(sizeof(word));
    }
    for (const std::byte byte : bytes) mix(static_cast<std::uint64_t>(byte));
  }
  [[nodiscard]] std::uint64_t value() const { return hash_; }

 private:
  void mix(std::uint64_t word) {
    hash_ = (hash_ ^ word) * 0x100000001B3ULL;
    hash_ ^= hash_ >> 29;  // words, unlike bytes, would leave the low bits unmixed
  }
  std::uint64_t hash_ = 0xCBF29CE484222325ULL;
};

std::string fingerprint(const Split& data) {
  WordHash hash;
  for (const Dataset* part : {&data.train, &data.test}) {
    hash.add(std::as_bytes(std::span(part->labels)));
    hash.add(std::as_bytes(std::span(part->pixels)));
    // Images that are read when needed count by their file names: reading all would take long, and
    // a data folder may move.
    for (const std::int32_t number : part->image_numbers) {
      const std::string file = fs::path(part->images->name(number)).filename().string();
      hash.add(std::as_bytes(std::span(file)));
    }
  }
  return fmt::format("{:016x}", hash.value());
}

std::string numbers_text(const std::vector<double>& numbers) {
  std::string text;
  for (const double number : numbers) text += fmt::format("{}{}", text.empty() ? "" : ",", number);
  return text;
}

std::string optimizer_settings(const OptimizerAttributes& optimizer) {
  if (const auto* sgd = std::get_if<SgdAttributes>(&optimizer)) {
    return fmt::format("sgd, momentum {}, weight decay {}{}", sgd->momentum, sgd->weight_decay,
                       sgd->nesterov ? ", nesterov" : "");
  }
  const auto& adam = std::get<AdamAttributes>(optimizer);
  return fmt::format("{}, betas {} and {}, epsilon {}, weight decay {}",
                     adam.decoupled ? "adamw" : "adam", adam.beta1, adam.beta2, adam.epsilon,
                     adam.weight_decay);
}

std::string last_batch_text(LastBatch policy) {
  return policy == LastBatch::smaller ? "smaller" : policy == LastBatch::drop ? "drop" : "repeat";
}

std::string name_of_checkpoint(std::int64_t number) {
  return fmt::format("{}{:06}", kPrefix, number);
}

// "checkpoint-000012" -> 12; nothing for any name that no checkpoint is given.
std::optional<std::int64_t> number_of(std::string_view name) {
  if (!name.starts_with(kPrefix)) return std::nullopt;
  const std::string_view digits = name.substr(kPrefix.size());
  std::int64_t number = 0;
  const auto read = std::from_chars(digits.data(), digits.data() + digits.size(), number);
  if (read.ec != std::errc() || name != name_of_checkpoint(number)) return std::nullopt;
  return number;
}

std::string last_name(const fs::path& folder) {
  std::string name = read_text(folder / kLast);
  while (name.ends_with('\n')) name.pop_back();
  if (!number_of(name)) {
    bad_input("{}: broken: it should name a checkpoint", (folder / kLast).string());
  }
  return name;
}

Checkpoint read_checkpoint(const fs::path& folder) {
  Checkpoint checkpoint = parse_checkpoint(read_text(folder / kState), (folder / kState).string());
  checkpoint.folder = folder;
  checkpoint.tensors = open_weights(folder / kTensors);
  return checkpoint;
}

// A training that goes on meanwhile removes old checkpoints: then there is a newer one.
template <typename Read>
Checkpoint read_while_written(const fs::path& folder, Read read) {
  if (!has_checkpoint(folder)) {
    bad_input("{}: has no checkpoint", folder.string());
  }
  for (int attempt = 1;; ++attempt) {
    const std::string name = last_name(folder);
    try {
      return read(name);
    } catch (const Error&) {
      if (attempt == kReadAttempts || last_name(folder) == name) throw;
    }
  }
}

WeightType weight_type(DType dtype) {
  ensure(dtype == DType::f32 || dtype == DType::f64, "state is kept in f32 or f64, not {}",
         name_of(dtype));
  return dtype == DType::f32 ? WeightType::f32 : WeightType::f64;
}

void write_tensors(const fs::path& path, const std::vector<StepRunner::NamedTensor>& state) {
  std::vector<WeightTensor> tensors;
  for (const StepRunner::NamedTensor& value : state) {
    WeightTensor tensor{value.name, weight_type(value.dtype), {}, value.bytes};
    for (int axis = 0; axis < value.shape.rank(); ++axis) tensor.dims.push_back(value.shape[axis]);
    tensors.push_back(std::move(tensor));
  }
  write_safetensors(path, tensors);
}

// Checkpoints that are neither last nor best, and what a killed training left half-written. Other
// names are not ours. What cannot be removed now is, after the next checkpoint.
void remove_others(const fs::path& folder, const std::string& last, const std::string& best) {
  std::error_code error;
  std::vector<std::string> names = names_in(folder, error);
  if (error) names = names_in(folder, error);
  for (const std::string& name : names) {
    const bool half = name.ends_with(kPart);
    const bool ours =
        number_of(half ? name.substr(0, name.size() - kPart.size()) : name).has_value();
    if (ours && name != last && name != best) remove_tree(folder / name);
  }
}

// What libraries choose by measuring may be another kernel elsewhere.
std::optional<std::string> other_kernels(const std::vector<std::string>& saved,
                                         const std::vector<std::string>& now) {
  if (saved.empty() || saved == now) return std::nullopt;
  if (saved.size() != now.size()) {
    return fmt::format("kernels: {} in the checkpoint, {} now", saved.size(), now.size());
  }
  const auto first = std::mismatch(saved.begin(), saved.end(), now.begin());
  const auto same = std::inner_product(saved.begin(), saved.end(), now.begin(), std::size_t{0},
                                       std::plus<>(), std::equal_to<>());
  return fmt::format("{} of {} kernels: {} in the checkpoint, {} now", saved.size() - same,
                     saved.size(), *first.first, *first.second);
}

std::int64_t next_number(const fs::path& folder) {
  std::int64_t number = 0;
  std::error_code error;
  for (const std::string& name : names_in(folder, error)) {
    number = std::max(number, number_of(name).value_or(0));
  }
  if (error) fail("{}: cannot be read: {}", folder.string(), error.message());
  return number + 1;
}

}  // namespace

Settings settings_of(const TrainConfig& config, const Split& data) {
  const StepSpec& step = config.step;
  Settings settings = {
      {"model", step.model.name},
      {"image", fmt::format("{}x{}x{}", step.model.channels, step.model.height, step.model.width)},
      {"classes", fmt::format("{}", step.model.classes)},
      {"init", step.model.init == InitScheme::he ? "he" : "pytorch"},
      {"batch", fmt::format("{}", step.batch)},
      {"full batch", config.full_batch ? "yes" : "no"},
      {"last batch", last_batch_text(config.last_batch)},
      {"normalisation", numbers_text(step.mean) + '/' + numbers_text(step.deviation)},
      {"flip", step.flip ? "yes" : "no"},
      {"random crops", config.crop ? "yes" : "no"},
      {"frozen", joined(step.freeze, " ")},
      {"label smoothing", fmt::format("{}", step.label_smoothing)},
      {"optimizer", optimizer_settings(step.optimizer)},
      {"learning rate", fmt::format("{}", config.learning_rate)},
      {"schedule", config.schedule.text()},
      {kPrecision, std::string(step.dtype == DType::f64 ? "fp64" : name_of(step.precision))},
      {"seed", fmt::format("{}", config.seed)},
      {"data", data.train.name},
      {"training samples", fmt::format("{}", data.train.count())},
      {"test samples", fmt::format("{}", data.test.count())},
      {"contents of the data", fingerprint(data)}};
  for (const auto& [name, value] : step.model.options) settings["option " + name] = value;
  if (step.model.source) settings["model file"] = "sha256 " + step.model.source->hash();
  if (step.clip_norm > 0.0) settings["clip norm"] = fmt::format("{}", step.clip_norm);
  if (config.micro_batch > 0) settings["micro-batch"] = fmt::format("{}", config.micro_batch);
  if (config.synchronise_norms) settings["batch norms"] = "synchronised";
  // More epochs than before are welcome, unless the rates so far would have been others.
  if (config.schedule.kind == Schedule::Kind::cosine) {
    settings["epochs (of the cosine schedule)"] = fmt::format("{}", config.epochs);
  }
  return settings;
}

namespace {

std::string pixels_of(Decoder decoder) {
  const std::string version = decoder_version(decoder);
  return version.empty() ? std::string(kOwnPixels)
                         : fmt::format("{} {}", name_of(decoder), version);
}

}  // namespace

Settings surroundings_of(const TrainConfig& config, const Device& device) {
  Settings settings = {{"backend", config.plan.backend},
                       {"device", fmt::format("{} ({})", device.name(), device.description())},
                       {"deterministic", config.plan.deterministic ? "yes" : "no"},
                       {"passes switched off", joined(config.plan.disabled_passes, ", ")},
                       {"threads", fmt::format("{}", thread_count())},
                       {"ranks", fmt::format("{}", config.rank_count())},
                       {std::string(kDecoderSurrounding), pixels_of(config.decoder)}};
  if (config.ranks != nullptr) {
    settings[std::string(kBucketSurrounding)] = fmt::format("{}", config.bucket_bytes);
    settings["gradients travel as"] = name_of(config.wire);
  }
  for (const Backend* backend : all_backends()) {
    if (backend->device == device.kind() && backend->unavailable().empty()) {
      settings[fmt::format("version of {}", backend->name)] = backend->version();
    }
  }
  return settings;
}

std::vector<std::string> differences(const Settings& saved, const Settings& now) {
  std::vector<std::string> list;
  const auto text = [](const Settings& settings, const std::string& name) {
    const auto found = settings.find(name);
    return found == settings.end() ? std::string("not set")
           : found->second.empty() ? std::string("none")
                                   : found->second;
  };
  Settings all = saved;
  all.insert(now.begin(), now.end());
  for (const auto& [name, value] : all) {
    const std::string before = text(saved, name), after = text(now, name);
    if (before != after) {
      list.push_back(fmt::format("{}: {} in the checkpoint, {} now", name, before, after));
    }
  }
  return list;
}

void check_settings(const Checkpoint& checkpoint, const TrainConfig& config, const Split& data) {
  TrainConfig compared = config;
  if (config.full_batch) compared.step.batch = data.train.count();
  Settings now = settings_of(compared, data);
  if (!checkpoint.settings.contains(kPrecision)) now.erase(kPrecision);
  const std::vector<std::string> changed = differences(checkpoint.settings, now);
  const std::string folder = checkpoint.folder.parent_path().string();
  if (!changed.empty()) {
    bad_input("{}: cannot be resumed with other settings:\n  {}", folder, joined(changed, "\n  "));
  }
  if (config.epochs < checkpoint.progress.epoch) {
    bad_input("{}: {} epochs are done already, more than --epochs {}", folder,
              checkpoint.progress.epoch, config.epochs);
  }
}

std::vector<std::string> changes_since(const Checkpoint& checkpoint, Trainer& trainer) {
  Settings now = surroundings_of(trainer.config(), trainer.runner().session().device());
  // What an older checkpoint does not tell, or only one of two machines has, is no change.
  Settings saved = checkpoint.surroundings;
  std::erase_if(now, [&](const auto& entry) { return !saved.contains(entry.first); });
  std::erase_if(saved, [&](const auto& entry) { return !now.contains(entry.first); });
  std::vector<std::string> changes = differences(saved, now);
  if (!checkpoint.settings.contains(kPrecision)) {
    changes.push_back(fmt::format("precision: unknown in the checkpoint, {} now",
                                  name_of(trainer.config().step.precision)));
  }
  if (const auto kernels = other_kernels(checkpoint.kernels, trainer.kernels())) {
    changes.push_back(*kernels);
  }
  return changes;
}

bool has_checkpoint(const fs::path& folder) {
  std::error_code ignored;
  return fs::exists(folder / kLast, ignored);
}

Checkpoint read_last_checkpoint(const fs::path& folder) {
  return read_while_written(
      folder, [&](const std::string& last) { return read_checkpoint(folder / last); });
}

Checkpoint read_best_checkpoint(const fs::path& folder) {
  return read_while_written(folder, [&](const std::string& last) {
    const Checkpoint newest = read_checkpoint(folder / last);
    if (!number_of(newest.best)) {
      bad_input("{}: has no best checkpoint, because no epoch was tested yet", folder.string());
    }
    return read_checkpoint(folder / newest.best);
  });
}

void restore(const Checkpoint& checkpoint, Trainer& trainer) {
  StepRunner& runner = trainer.runner();
  const std::vector<StepRunner::NamedTensor> state = runner.read_state();
  const std::string where = checkpoint.tensors.path.string();
  for (const StepRunner::NamedTensor& value : state) {
    const WeightTensor* tensor = checkpoint.tensors.find(value.name);
    if (tensor == nullptr) bad_input("{}: '{}' is missing", where, value.name);
    if (tensor->type != weight_type(value.dtype) || tensor->bytes.size() != value.bytes.size()) {
      bad_input("{}: '{}' is {}, expected {} {}", where, value.name, tensor->text(),
                value.shape.text(), name_of(value.dtype));
    }
  }
  for (const StepRunner::NamedTensor& value : state) {
    runner.write_state(value.name, checkpoint.tensors.find(value.name)->bytes);
  }
  TrainProgress progress = checkpoint.progress;
  if (const auto changes = changes_since(checkpoint, trainer); !changes.empty()) {
    progress.changes.push_back(
        fmt::format("after {} steps {}", progress.result.steps, joined(changes, ", ")));
  }
  trainer.go_on_from(progress);
}

FolderLock::FolderLock(const fs::path& folder)
    : folder_(folder), path_(folder / kLock), last_(folder / kLast) {
  std::error_code error;
  made_ = fs::create_directories(folder_, error);
  if (error) bad_input("{}: cannot be made: {}", folder_.string(), error.message());
  file_ = open(path_.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0666);
  const int reason = errno;
  // The system takes the lock back when the program ends, however it ends.
  if (file_ >= 0 && flock(file_, LOCK_EX | LOCK_NB) == 0) return;
  if (file_ >= 0) {
    close(file_);
    bad_input("{}: another training is writing its checkpoints there", folder_.string());
  }
  if (made_) fs::remove(folder_, error);
  bad_input("{}: cannot be written: {}", folder_.string(), std::strerror(reason));
}

FolderLock::~FolderLock() {
  // A training that never began leaves nothing behind.
  std::error_code ignored;
  if (!fs::exists(last_, ignored)) {
    fs::remove(path_, ignored);
    if (made_) fs::remove(folder_, ignored);
  }
  close(file_);
}

CheckpointWriter::CheckpointWriter(fs::path folder) : folder_(std::move(folder)), lock_(folder_) {
  if (has_checkpoint(folder_)) best_ = read_last_checkpoint(folder_).best;
}

void CheckpointWriter::write(Trainer& trainer, const Split& data, const TrainProgress& progress) {
  // A test changes no tensor.
  const bool only_tested =
      std::exchange(untested_, std::nullopt) == progress.epoch && !progress.untested;
  const std::string name = only_tested ? last_ : name_of_checkpoint(next_number(folder_));
  const bool is_best = progress.best && progress.step_in_epoch == 0 && !progress.untested &&
                       progress.best->epoch == progress.epoch;
  if (!settings_) settings_ = settings_of(trainer.config(), data);
  Checkpoint checkpoint;
  checkpoint.model = trainer.config().step.model;
  checkpoint.class_names = data.train.class_names;
  checkpoint.weights = weights_;
  checkpoint.settings = *settings_;
  checkpoint.surroundings = surroundings_of(trainer.config(), trainer.runner().session().device());
  checkpoint.progress = progress;
  checkpoint.best = is_best ? name : best_;
  if (trainer.config().plan.choices) checkpoint.choices = *trainer.config().plan.choices;
  checkpoint.library_choices = choices_in_use();
  checkpoint.kernels = trainer.kernels();
  if (only_tested) {
    write_durably(folder_ / name / kState, checkpoint_text(checkpoint));
  } else {
    write_new(name, trainer, checkpoint_text(checkpoint));
  }
  last_ = name;
  untested_ = progress.untested ? std::optional(progress.epoch) : std::nullopt;
  best_ = checkpoint.best;
  remove_others(folder_, name, best_);
}

void CheckpointWriter::write_new(const std::string& name, Trainer& trainer,
                                 const std::string& state) {
  const fs::path part = folder_ / fmt::format("{}{}", name, kPart);
  remove_tree(part);
  NewFolder fresh(part);
  write_tensors(part / kTensors, trainer.runner().read_state());
  write_durably(part / kState, state);
  fresh.rename_to(folder_ / name);
  sync_folder(folder_);
  DurableFile last(folder_ / kLast);
  last.write(name + '\n');
  try {
    last.commit();
  } catch (...) {
    if (last.in_place()) fresh.keep();
    throw;
  }
  fresh.keep();
}

}  // namespace ridgeline
