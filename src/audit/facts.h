#pragma once

// What is known without measuring: networks, data sheets, datasets.

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "devices/device.h"
#include "measure/ceilings/hardware.h"

namespace ridgeline::audit {

// The zoo's name for what people write: "ResNet-50", "MobileNetV2", "SqueezeNet 1.1". Empty: none.
[[nodiscard]] std::string zoo_name(std::string_view written);

// Work of one image, from the Plan of a training step.
struct NetworkFacts {
  std::string name;
  std::int64_t image = 0, classes = 0;
  double parameters = 0.0;
  double least_parameters = 0.0, most_parameters = 0.0;  // for 2 and for 1000 classes
  double forward_macs = 0.0, forward_flops = 0.0;
  double training_macs = 0.0, training_flops = 0.0;
};

struct NetworkQuery {
  std::string model;  // as written
  std::optional<std::int64_t> image, classes;
};

// Images and classes of data that the world knows.
struct DatasetFacts {
  std::string_view name;                        // letters and digits alone: "tinyimagenet"
  std::int64_t image, classes, training, test;  // 0: not fixed
};
[[nodiscard]] const DatasetFacts* find_dataset(std::string_view written);

// The roofs of a device, from its data sheet or measured.
struct HardwareFacts {
  std::string name;                     // "Tesla T4", "A100 (the fastest of 4 kinds)"
  std::map<std::string, double> flops;  // by precision: "fp32", "tf32", "bf16", "fp16", "fp64"
  std::optional<double> bytes_per_second, memory_bytes;
  bool measured = false;  // else from the data sheet

  // The roof of a precision as people name it ("amp" is fp16 or bf16); where it is empty or "fp32"
  // TF32 counts, which frameworks use by themselves. Nothing: unknown.
  [[nodiscard]] std::optional<double> roof(const std::string& precision) const;
  [[nodiscard]] double fastest() const;
};

// Knows networks and hardware, and keeps what it found out.
class Facts {
 public:
  Facts();

  // Null where the zoo does not have the model, or not for such images.
  [[nodiscard]] const NetworkFacts* network(const NetworkQuery& query);
  // FLOP/byte of a training step at that batch, by what the plan's steps move; nothing as above.
  [[nodiscard]] std::optional<double> intensity(const NetworkQuery& query, std::int64_t batch);
  // Null where nothing is known by that name, such as "T4", "rtx 4080 laptop", "A100".
  [[nodiscard]] const HardwareFacts* hardware(const std::string& written);
  // The slowest GPU of the data sheets in fp32: what any GPU of the last years reaches.
  [[nodiscard]] const HardwareFacts& slowest_gpu() const { return slowest_; }
  // Measured ceilings of a device, which come before data sheets: under the names that they have.
  void add_measured(const std::vector<std::string>& names, const HardwareFacts& facts);
  // The names that hardware() knows, for messages.
  [[nodiscard]] std::vector<std::string> hardware_names() const;

 private:
  KnownHardware known_;
  HardwareFacts slowest_;
  std::unique_ptr<Device> cpu_;
  std::map<std::string, std::optional<NetworkFacts>> networks_;
  std::map<std::string, std::optional<double>> intensities_;
  std::map<std::string, std::optional<HardwareFacts>> hardware_;
  std::map<std::string, HardwareFacts> measured_;
};

}  // namespace ridgeline::audit
