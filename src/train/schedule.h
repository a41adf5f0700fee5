#pragma once

// How the learning rate goes from epoch to epoch, by PyTorch's formulas: torch.optim.lr_scheduler's
// LinearLR for the warm-up, then StepLR or CosineAnnealingLR, joined by SequentialLR as in
// torchvision's training script. The rate changes between epochs; in full-batch mode an iteration
// counts as one.

#include <cstdint>
#include <string>

namespace ridgeline {

struct Schedule {
  enum class Kind : std::uint8_t { constant, step, cosine };
  Kind kind = Kind::constant;
  std::int64_t step_size = 30;  // step: epochs between two drops
  double gamma = 0.1;           // step: the factor of a drop
  // Epochs in which the rate rises, from a hundredth, to the full rate; what follows counts from
  // there.
  std::int64_t warmup = 0;

  [[nodiscard]] bool changes() const { return kind != Kind::constant || warmup > 0; }
  // "cosine, warm-up of 5 epochs"
  [[nodiscard]] std::string text() const;
};

// Throws bad_input.
void check_schedule(const Schedule& schedule, std::int64_t epochs);

// Of an epoch counted from 0.
[[nodiscard]] double learning_rate_at(const Schedule& schedule, double rate, std::int64_t epoch,
                                      std::int64_t epochs);

}  // namespace ridgeline
