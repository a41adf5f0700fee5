#pragma once

// What `train` begins with and what it leaves behind: weights from a file, checkpoints, resuming.

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "store/identity.h"
#include "train/checkpoint.h"

namespace ridgeline {

struct CheckpointOptions {
  std::string weights;  // a file
  std::string folder;
  std::optional<std::int64_t> every;
  bool resume = false;
  bool write = true;  // of several ranks one writes
};

class TrainCheckpoints {
 public:
  // Checks the options, takes hold of the folder, and reads what is to be resumed.
  explicit TrainCheckpoints(const CheckpointOptions& options);

  // Before the trainer is made: sets what concerns checkpoints, and refuses to resume with other
  // settings.
  void configure(TrainConfig& config, const Split& data);
  // After it: loads the weights, or the checkpoint.
  void load(Trainer& trainer);

  // Saves, where checkpoints are asked for. Gives a message when that fails: the former checkpoint
  // stays, and the training may go on.
  [[nodiscard]] std::string save(Trainer& trainer, const Split& data,
                                 const TrainProgress& progress);
  [[nodiscard]] bool failed() const { return failed_; }  // the last time

  // What was loaded, for people, a line each; empty: nothing.
  [[nodiscard]] const std::string& story() const { return story_; }
  // The epochs that the checkpoint had already seen.
  [[nodiscard]] std::vector<EpochResult> former_epochs() const;
  // How many epochs were done before; with full batches iterations.
  [[nodiscard]] std::int64_t epochs_done() const;
  // Of the gradients that travelled together, in the training that is resumed; nothing: none did.
  [[nodiscard]] std::optional<std::int64_t> bucket_bytes() const;
  // For a name of --decoder: "auto" goes on with what the training that is resumed had.
  [[nodiscard]] std::string decoder(const std::string& asked) const;
  [[nodiscard]] const std::string& weights() const { return options_.weights; }
  // A resumed training began with the weights of its first part.
  void settle_weights(Work& work);

 private:
  // Of a network that comes from a file with its weights.
  void tell_of_file(Trainer& trainer);

  CheckpointOptions options_;
  std::unique_ptr<CheckpointWriter> writer_;  // null: nothing is written here
  std::optional<Checkpoint> resumed_;
  std::string story_;
  bool failed_ = false;
};

}  // namespace ridgeline
