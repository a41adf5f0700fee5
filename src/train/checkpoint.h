#pragma once

// A folder of checkpoints, from which a training goes on bit for bit.
//
//   DIR/LAST                 the name of the newest whole checkpoint
//   DIR/checkpoint-000012/   state.safetensors: parameters, running statistics, optimizer state
//                            state.json: what was trained, how far, the best result and where it is
//
// A checkpoint is written under another name, flushed, renamed, and only then named in LAST; those
// that are neither last nor best go away after that. Killed at any moment, the folder has a whole
// checkpoint. The one that ends an epoch is written before the test; after it state.json is
// replaced.

#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "train/trainer.h"
#include "train/weight_file.h"

namespace ridgeline {

// What a training depends on, by name, as text: equal texts give equal trainings.
using Settings = std::map<std::string, std::string>;

// What must be the same in a training that goes on.
[[nodiscard]] Settings settings_of(const TrainConfig& config, const Split& data);
// What must be the same for equal bits: backend, device, threads, versions of the providers.
inline constexpr std::string_view kBucketSurrounding = "bytes that travel together";
// Whose pixels JPEG images have: those of libjpeg-turbo, which our own kernels equal, or those of
// another decoder, by its name of --decoder and its version.
inline constexpr std::string_view kDecoderSurrounding = "pixels of JPEG images";
inline constexpr std::string_view kOwnPixels = "libjpeg-turbo";
[[nodiscard]] Settings surroundings_of(const TrainConfig& config, const Device& device);

// "batch: 64 in the checkpoint, 32 now", one for each that differs.
[[nodiscard]] std::vector<std::string> differences(const Settings& saved, const Settings& now);

// The setting that checkpoints of former versions may lack.
inline constexpr const char* kPrecision = "precision";

struct Checkpoint {
  std::filesystem::path folder;
  ModelConfig model;  // when read, without the source of a network that came from a file
  std::string model_file, model_hash;    // of such a network
  std::vector<std::string> class_names;  // of the data; empty where it has none
  std::string weights;                   // the file that the training began with, in words
  Settings settings, surroundings;
  TrainProgress progress;
  std::string best;                  // the folder's name; empty: none yet
  PlanChoices choices;               // of `auto`
  PlanChoices library_choices;       // of backends among their libraries' kernels
  std::vector<std::string> kernels;  // of Trainer::kernels(); empty: not known
  WeightFile tensors;
};

// Throw bad_input when there is none or it is broken.
[[nodiscard]] Checkpoint read_last_checkpoint(const std::filesystem::path& folder);
[[nodiscard]] Checkpoint read_best_checkpoint(const std::filesystem::path& folder);
[[nodiscard]] bool has_checkpoint(const std::filesystem::path& folder);

// Throws bad_input when a training with this configuration cannot go on from the checkpoint.
void check_settings(const Checkpoint& checkpoint, const TrainConfig& config, const Split& data);
// What may change the bits of the results and is not as it was, in words: backend, device, threads.
[[nodiscard]] std::vector<std::string> changes_since(const Checkpoint& checkpoint,
                                                     Trainer& trainer);

// Puts a trainer where the checkpoint was written: its next train() goes on from there. Bad_input
// when a tensor is missing or of another size; then nothing was written.
void restore(const Checkpoint& checkpoint, Trainer& trainer);

// A training's hold on its folder. Goes away with everything it made, unless the folder holds a
// checkpoint by then.
class FolderLock {
 public:
  explicit FolderLock(const std::filesystem::path& folder);
  ~FolderLock();
  FolderLock(const FolderLock&) = delete;
  FolderLock& operator=(const FolderLock&) = delete;

 private:
  std::filesystem::path folder_, path_, last_;
  bool made_ = false;  // the folder, by us
  int file_ = -1;
};

class CheckpointWriter {
 public:
  // Makes the folder where it is not there. Bad_input when that cannot be, or when another training
  // writes there.
  explicit CheckpointWriter(std::filesystem::path folder);

  // What the training began with: kept in every checkpoint.
  void set_weights(const std::string& weights) { weights_ = weights; }

  // A failure leaves the former checkpoint as it was.
  void write(Trainer& trainer, const Split& data, const TrainProgress& progress);

 private:
  void write_new(const std::string& name, Trainer& trainer, const std::string& state);

  std::filesystem::path folder_;
  FolderLock lock_;
  std::string best_, weights_;
  std::string last_;                      // written by us
  std::optional<std::int64_t> untested_;  // the epoch that it was waiting to be tested for
  std::optional<Settings> settings_;      // of the data and the configuration, which do not change
};

}  // namespace ridgeline
