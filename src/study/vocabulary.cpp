// The names that a study's file may use for tables, figures and tests of hypotheses.

#include "study/study.h"

namespace ridgeline::study {

const std::vector<Word>& table_names() {
  static const std::vector<Word> names = {
      {"complexity", "Parameters, MACs, FLOPs, bytes and intensity of each network"},
      {"ceilings", "What each machine was measured to do at most"},
      {"throughput", "Samples a second, FLOP/s and accuracy by model and executor"},
      {"iterations", "Mean, deviation, extremes and median of the iterations"},
      {"batch-sweep", "Throughput, utilisation, FLOP/s and memory by batch"},
      {"batch-gains", "What larger batches gain over the smallest"},
      {"intensity", "Arithmetic intensity by model and batch"},
      {"efficiency", "Achieved FLOP/s, share of the roof, and bound"},
      {"bounds", "What bounds each network, and for which share of its time"},
      {"speedups", "Ratios between executors that did the same work, with verdicts"},
      {"phases", "Total, iteration, forward, backward and optimizer times"},
      {"operations", "Matrix products, ReLU, softmax and gradients, side by side"},
      {"op-breakdown", "Time by kind of operation, with its efficiency"},
      {"breakdown", "Kernel, copy, runtime, data, CPU and idle: the step's time"},
      {"memory", "Bytes by owner, planned and measured"},
      {"training", "Epoch time, total time, throughput, accuracy, memory"},
      {"sweep", "Throughput, loss and accuracy along an axis"},
      {"targets", "Time and epochs to a wanted accuracy"},
      {"inference", "Latency percentiles and throughput of inference"},
      {"resources", "Utilisation, memory, temperature, clock, power and energy"},
      {"parity", "That all executors computed the same"},
      {"scaling", "Speed-up and efficiency by ranks, and what exchanges cost"},
      {"predictions", "How wrong predictions of runs are that were left out"},
  };
  return names;
}

const std::vector<Word>& figure_names() {
  static const std::vector<Word> names = {
      {"roofline", "Networks under the roofs of each machine"},
      {"roofline-layers", "Layers of a network under the roofs"},
      {"roofline-batches", "How points move with the batch"},
      {"throughput", "Samples a second as bars"},
      {"batch-sweep", "Samples a second over the batch"},
      {"scaling", "Efficiency over ranks"},
      {"epoch-times", "Seconds of each epoch"},
      {"throughput-epochs", "Samples a second of each epoch"},
      {"accuracy-epochs", "Test accuracy over epochs or iterations"},
      {"accuracy-time", "Test accuracy over training time"},
      {"loss-epochs", "Training loss over epochs or iterations"},
      {"sweep", "Throughput and accuracy along an axis"},
      {"breakdown", "Kernel, copy, runtime, data, CPU and idle as stacked bars"},
      {"operations", "Time by kind of operation, executors side by side"},
      {"memory", "Bytes by owner as stacked bars"},
      {"memory-timeline", "What lives in memory, step by step"},
      {"step-timeline", "One iteration, span by span"},
      {"telemetry", "Utilisation, clock, temperature, power and memory over time"},
      {"samples", "Every measured iteration"},
      {"network", "The network as boxes and arrows"},
      {"predictions", "Predicted against measured iterations, each run left out in turn"},
  };
  return names;
}

const std::vector<Word>& hypothesis_tests() {
  static const std::vector<Word> names = {
      {"faster",
       "Runs that fit `of` take less time than those that fit `than`, for all the work "
       "that both did"},
      {"speedup-varies",
       "The speed-up of `of` over `than` differs from network to network, along "
       "`axis`"},
      {"speedup-grows", "The speed-up of `of` over `than` grows with `axis`"},
      {"efficiency-grows", "The share of the roof that is reached grows with `axis`"},
      {"throughput-grows", "Samples a second grow with `axis`"},
      {"bound", "Networks are bound by what `of` names: memory, compute, launch or data"},
      {"same-accuracy", "Executors that do the same work reach the same accuracy"},
  };
  return names;
}

}  // namespace ridgeline::study
