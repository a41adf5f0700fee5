#pragma once

#include <cstdint>

namespace ridgeline {

struct OpDef;

struct LossAttributes {
  double label_smoothing = 0.0;
  double weight = 1.0;  // of this loss in the sum of several
};

// Softmax cross-entropy, averaged over StepState::valid_rows and multiplied by the weight; rows
// beyond them count nothing. The gradient is multiplied by StepState::loss_scale as well.
extern const OpDef softmax_cross_entropy_op;           // (logits, labels) -> loss, probabilities
extern const OpDef softmax_cross_entropy_backward_op;  // (probabilities, labels) -> diff_logits

// Running totals of an epoch, four f64: loss × rows, correct in the top 1, in the top 5, rows.
struct MetricTotals {
  double loss = 0.0, top1 = 0.0, top5 = 0.0, rows = 0.0;
};
extern const OpDef metrics_op;  // (totals, loss, logits, labels) -> totals'

}  // namespace ridgeline
