#pragma once

// What `bench` measures, as it comes, in TensorBoard: one run for each candidate.

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "lab/board/run_board.h"
#include "measure/iterations/measurement.h"

namespace ridgeline {

// Names of folders, one for each: "mnist_cnn-native-b512-fp32-1x28x28-cpu"; what is the same in all
// of that gets a number.
[[nodiscard]] std::vector<std::string> board_names(std::span<const Subject> subjects);

class BenchBoard final : public MeasureSink {
 public:
  // Nothing is written before a candidate begins.
  BenchBoard(std::filesystem::path folder, std::vector<Subject> subjects);

  void group_begun(double now) override;
  void begun(std::size_t candidate) override;
  void measured(std::size_t candidate, std::span<const Sample> samples) override;
  void readings(std::size_t candidate, std::span<const Reading> readings) override;
  void ended(std::size_t candidate, const Ending& ending) override;

  // Of the first file that could not be written; the others go on.
  [[nodiscard]] const std::string& trouble() const { return trouble_; }

 private:
  struct Run {
    std::optional<RunBoard> board;
    std::int64_t samples = 0;
  };
  void look_for_trouble(const Run& run);

  std::filesystem::path folder_;
  std::vector<Subject> subjects_;
  std::vector<std::string> names_;
  std::vector<Run> runs_;
  double wall_time_ = wall_time_now();
  std::string trouble_;
};

}  // namespace ridgeline
