#pragma once

// What an hour on a device costs, from the user's file.

#include <map>
#include <optional>
#include <string>
#include <string_view>

namespace ridgeline::predict {

// [[price]] name = "T4", per_hour = 0.35; and once for the file currency = "USD".
class Prices {
 public:
  Prices() = default;
  // Throws bad_input with file, line and key.
  Prices(std::string_view text, const std::string& file);

  // Of the entry whose name stands in the device's, the longest one; nothing: none does.
  [[nodiscard]] std::optional<double> per_hour(const std::string& device) const;
  [[nodiscard]] const std::string& currency() const { return currency_; }
  [[nodiscard]] bool empty() const { return per_hour_.empty(); }

 private:
  std::map<std::string, double> per_hour_;
  std::string currency_;
};

}  // namespace ridgeline::predict
