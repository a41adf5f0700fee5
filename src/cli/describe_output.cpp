#include "cli/describe_output.h"

#include "base/error.h"
#include "base/text.h"
#include "cli/options.h"
#include "cli/output.h"
#include "cli/tables.h"

namespace ridgeline::cli {
namespace {

std::string intensity_text(std::optional<double> ratio) {
  return ratio ? fmt::format("{:.2f}", *ratio) : std::string("n/a");
}

// Of a network that comes from a file.
std::string file_text(const ModelConfig& model) {
  if (!model.source) return {};
  return fmt::format("from {}, sha256 {}\n", model.source->path(), model.source->hash());
}

std::string title_text(const Description& d) {
  return fmt::format("{}, image {}, {} classes, {}, {} on {}, {}\n", d.model.name,
                     image_text(d.model), d.model.classes, d.precision, d.backend, d.device,
                     d.optimizer) +
         file_text(d.model);
}

// One row a quantity, one column a batch.
class BatchTable {
 public:
  explicit BatchTable(const std::vector<BatchComplexity>& batches) : batches_(batches) {}

  // `cell` gives a quantity's text for a batch.
  template <typename Cell>
  void add(const std::string& title, Cell cell) {
    std::vector<std::string> row = {title};
    for (const BatchComplexity& batch : batches_) row.push_back(cell(batch));
    rows_.push_back(std::move(row));
  }

  [[nodiscard]] std::string text(const std::string& title) const {
    std::vector<std::string> header = {title};
    for (const BatchComplexity& batch : batches_) {
      header.push_back("batch " + count_text(batch.batch));
    }
    TextTable table(std::move(header), 'l' + std::string(batches_.size(), 'r'));
    for (const auto& row : rows_) table.add_row(row);
    return shown(table);
  }

 private:
  const std::vector<BatchComplexity>& batches_;
  std::vector<std::vector<std::string>> rows_;
};

std::string work_text(const Description& d) {
  BatchTable table(d.batches);
  table.add("forward MACs", [](const auto& b) { return count_text(b.work.forward().macs); });
  table.add("training MACs", [](const auto& b) { return count_text(b.work.total.macs); });
  table.add("forward FLOPs", [](const auto& b) { return count_text(b.work.forward().flops); });
  const bool recomputes = d.batches[0].work.of(Phase::recompute).flops > 0;
  if (recomputes) {
    table.add("recomputed FLOPs",
              [](const auto& b) { return count_text(b.work.of(Phase::recompute).flops); });
  }
  table.add("data gradient FLOPs",
            [](const auto& b) { return count_text(b.work.of(Phase::backward_data).flops); });
  table.add("weight gradient FLOPs",
            [](const auto& b) { return count_text(b.work.of(Phase::backward_weights).flops); });
  table.add("optimizer FLOPs",
            [](const auto& b) { return count_text(b.work.of(Phase::optimizer).flops); });
  table.add("training FLOPs", [](const auto& b) { return count_text(b.work.total.flops); });
  table.add("training / forward", [](const auto& b) {
    return fmt::format("{:.2f}", static_cast<double>(b.work.total.flops) /
                                     static_cast<double>(b.work.forward().flops));
  });
  return table.text("work per step");
}

std::string traffic_text(const Description& d) {
  BatchTable table(d.batches);
  table.add("forward", [](const auto& b) {
    return b.work.forward_moved_bytes ? bytes_text(*b.work.forward_moved_bytes)
                                      : std::string("n/a");
  });
  table.add("training", [](const auto& b) { return bytes_text(b.work.moved_bytes); });
  table.add("training, without fusion",
            [](const auto& b) { return bytes_text(bytes_of(b.work.total)); });
  table.add("forward FLOP/byte",
            [](const auto& b) { return intensity_text(forward_intensity(b.work)); });
  table.add("training FLOP/byte",
            [](const auto& b) { return intensity_text(training_intensity(b.work)); });
  return table.text("bytes moved per step");
}

std::string memory_text(const Description& d) {
  BatchTable table(d.batches);
  for (const MemoryCategory& category : kMemoryCategories) {
    table.add(category.title,
              [&](const auto& b) { return bytes_text(memory_of(b, category.role)); });
  }
  table.add("gaps", [](const auto& b) { return bytes_text(b.gaps); });
  table.add("peak", [](const auto& b) { return bytes_text(b.peak); });
  std::string text = table.text("memory for training");
  const std::string limit = fmt::format("{} ({})", bytes_text(d.memory_limit),
                                        d.limit_is_machines ? "free now" : "--memory");
  text += d.largest.batch > 0
              ? fmt::format("\nlargest batch that fits into {}: {}, which needs {}\n", limit,
                            count_text(d.largest.batch), bytes_text(d.largest.bytes))
              : fmt::format("\nnot even a batch of 1 fits into {}\n", limit);
  return text;
}

std::string layers_text(const Description& d) {
  const auto mega = [](std::int64_t count) {
    return fmt::format("{:.3f}", static_cast<double>(count) / 1e6);
  };
  TextTable table(layer_columns(), "lllrrrrrr");
  table.important({"layer", "parameters", "MFLOP forward", "MFLOP backward", "MB", "FLOP/byte"});
  LayerComplexity sum;
  const auto add = [&](const LayerComplexity& layer, const std::string& output) {
    const Cost total = layer.total();
    table.add_row({layer.layer, layer.ops, output, count_text(layer.parameters),
                   count_text(layer.forward.macs), mega(layer.forward.flops),
                   mega(layer.backward.flops), mega(bytes_of(total)),
                   intensity_text(intensity(total))});
  };
  for (const LayerComplexity& layer : d.layers) {
    add(layer, layer.output.text());
    sum.parameters += layer.parameters;
    sum.forward += layer.forward;
    sum.backward += layer.backward;
    sum.optimizer += layer.optimizer;
  }
  sum.layer = "total";
  add(sum, "");
  return fmt::format("\nlayers of a training step, batch {}\n{}", d.batches[0].batch,
                     shown_main(table)) +
         fitted(
             "MACs are those of the forward pass. MB (10^6 bytes) and FLOP/byte are of the whole "
             "step with the optimizer, as if every op ran alone; fused steps move less (see "
             "above).\n");
}

}  // namespace

std::vector<std::string> layer_columns() {
  return {"layer",          "ops", "output",   "parameters", "MACs", "MFLOP forward",
          "MFLOP backward", "MB",  "FLOP/byte"};
}

std::string description_text(const Description& d, bool per_layer) {
  std::string text = fitted(title_text(d));
  text += fmt::format("\nparameters  {}\n\n{}\n{}\n{}", count_text(d.parameters), work_text(d),
                      traffic_text(d), memory_text(d));
  if (per_layer) text += layers_text(d);
  return text;
}

std::string layers_csv(const Description& d) {
  std::string text =
      "layer,ops,output,parameters,forward_macs,forward_flops,backward_flops,optimizer_flops,"
      "bytes,intensity\n";
  for (const LayerComplexity& layer : d.layers) {
    const Cost total = layer.total();
    text += csv_line(layer.layer, layer.ops, layer.output.text(), layer.parameters,
                     layer.forward.macs, layer.forward.flops, layer.backward.flops,
                     layer.optimizer.flops, bytes_of(total), intensity(total));
  }
  return text;
}

}  // namespace ridgeline::cli
