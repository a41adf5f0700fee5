#pragma once

// Units as people write them, in heads of columns and behind numbers.

#include <optional>
#include <string>
#include <string_view>

namespace ridgeline::audit {

enum class Dimension {
  none,
  time,        // seconds
  throughput,  // samples a second
  flop_rate,   // FLOP/s
  flops,       // FLOP
  macs,        // multiply-accumulates
  bytes,
  bandwidth,  // bytes a second
  share,      // of 1
  ratio,      // "2.8x"
  intensity,  // FLOP/byte
  power,
  temperature,
  multiple,  // "M", "G": of whatever the column counts
};

struct Unit {
  std::string name;  // as written
  Dimension dimension = Dimension::none;
  double scale = 1.0;  // to the base unit
};

// "ms", "img/s", "GFLOP/s", "MiB", "%"; case counts only where it must (M is not m).
[[nodiscard]] std::optional<Unit> find_unit(std::string_view text);

// A number with its unit: "31.8 KB", "98%", "2.8×", "1 h 15 min", "~220". In base units.
struct Quantity {
  double value = 0.0;
  Dimension dimension = Dimension::none;
};
[[nodiscard]] std::optional<Quantity> find_quantity(std::string_view text);

// A title taken apart: "Batch time (ms)" is "batch time" in ms.
struct Title {
  std::string words;  // lower case, one blank between them: "batch time"
  std::optional<Unit> unit;
};
[[nodiscard]] Title read_title(std::string_view title);

}  // namespace ridgeline::audit
