#pragma once

// A table as checks look at it: rows in groups of one configuration, with what is known of the
// network and the hardware of each.

#include <optional>
#include <string>
#include <vector>

#include "audit/check.h"
#include "audit/facts.h"
#include "audit/table.h"

namespace ridgeline::audit {

// What the user says where the file does not.
struct Defaults {
  std::string hardware, model;
  std::optional<std::int64_t> batch, image, classes;
};

// Rows that are equal in everything that tells configurations apart.
struct Group {
  std::vector<std::size_t> rows;  // in the file's order

  [[nodiscard]] std::size_t first() const { return rows.front(); }
};

class Context {
 public:
  Context(const Table& table, const Defaults& defaults, Facts& facts);

  [[nodiscard]] const Table& table() const { return table_; }
  [[nodiscard]] Facts& facts() { return facts_; }
  [[nodiscard]] const std::vector<Group>& groups() const { return groups_; }

  // "resnet18, batch 64, T4"
  [[nodiscard]] std::string label(std::size_t row) const;
  [[nodiscard]] std::optional<double> batch(std::size_t row) const;
  [[nodiscard]] std::string precision(std::size_t row) const;
  [[nodiscard]] std::string model(std::size_t row) const;
  // "cpu", "gpu" or empty.
  [[nodiscard]] std::string kind(std::size_t row) const;
  // All that names who computed: "T4", "RTX 4080 laptop gpu pytorch".
  [[nodiscard]] std::string executor(std::size_t row) const;
  [[nodiscard]] bool is_inference(std::size_t row) const;
  [[nodiscard]] bool is_warmup(std::size_t row) const;
  [[nodiscard]] const DatasetFacts* dataset(std::size_t row) const;
  [[nodiscard]] std::optional<std::int64_t> classes(std::size_t row) const;
  [[nodiscard]] NetworkQuery query(std::size_t row) const;
  // Null: not known.
  // Null also where the row tells options of the network: they are not looked up.
  [[nodiscard]] const NetworkFacts* network(std::size_t row);
  [[nodiscard]] const HardwareFacts* hardware(std::size_t row);
  // Samples a second, as told or from times; nothing: neither.
  [[nodiscard]] std::optional<double> rate(std::size_t row) const;
  // The time that the row is about, whichever kind it is.
  [[nodiscard]] std::optional<double> seconds(std::size_t row) const;
  // The median rate of a group; the samples of its times in order.
  [[nodiscard]] std::optional<double> rate(const Group& group) const;
  // Times of iterations (or epochs) of a group with a series; empty where it has none.
  [[nodiscard]] std::vector<double> series(const Group& group, Role role) const;

 private:
  void make_groups();
  [[nodiscard]] bool has_options(std::size_t row) const;

  const Table& table_;
  const Defaults& defaults_;
  Facts& facts_;
  std::vector<Group> groups_;
};

// A finding about some rows.
[[nodiscard]] Finding found(std::string_view check, Severity severity, Confidence confidence,
                            std::string evidence, std::string cause,
                            const std::vector<std::size_t>& rows);

// "12.3%", "7.1 TFLOP/s", "1.82 G", "650"
[[nodiscard]] std::string share_text(double share);
[[nodiscard]] std::string flop_rate_text(double flops_per_second);
[[nodiscard]] std::string amount_text(double amount);
[[nodiscard]] std::string plain_number(double number);
[[nodiscard]] bool near(double a, double b, double tolerance);

}  // namespace ridgeline::audit
