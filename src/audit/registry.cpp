// All checks, in the order in which their findings are shown.

#include <array>

#include "audit/checks/checks.h"

namespace ridgeline::audit {
namespace {

constexpr std::array kChecks = std::to_array<Check>({
    {"impossible-values", "Negative times, accuracies above 100%, NaN and infinity",
     &check_impossible_values},
    {"duplicate-rows", "Rows that repeat another one in every cell", &check_duplicate_rows},
    {"rate-times-time", "Throughput x time of an iteration is the batch", &check_rate_times_time},
    {"mixed-units", "Milliseconds among seconds, MB beside MiB", &check_mixed_units},
    {"above-roof", "The network's FLOPs x rate against the hardware's peak", &check_above_roof},
    {"far-below-roof", "GPUs that wait: a small share of what the slowest one can do",
     &check_far_below_roof},
    {"flops", "MACs given as FLOPs, forward work given as training", &check_flops},
    {"parameters", "Parameters of the named network, and their memory", &check_parameters},
    {"intensity", "FLOP/byte against the network's tensors, GFLOP/MB taken for FLOP/byte",
     &check_intensity},
    {"data-sheet", "Peak rates and bandwidths against the data sheets", &check_data_sheet},
    {"efficiency", "Shares of a roof above 100%, and efficiency = rate / peak", &check_efficiency},
    {"warm-up", "Slow first iterations among the measured ones", &check_warm_up},
    {"clock-resolution", "Times on a grid: the clock is too coarse", &check_clock_resolution},
    {"few-samples", "Numbers without repeats, or with fewer than five", &check_few_samples},
    {"periodic-samples", "Every n-th iteration is faster or slower: missing synchronisation",
     &check_periodic_samples},
    {"iteration-count", "Fewer iterations than claimed, or than in other configurations",
     &check_iteration_count},
    {"unlike-work", "Batch, precision, frozen layers or data that differ within a comparison",
     &check_unlike_work},
    {"speed-up", "Speed-ups against the table's own times, and within their noise", &check_speedup},
    {"equal-devices", "CPU and GPU at the same speed: both wait for the loader",
     &check_equal_devices},
    {"chance", "Accuracy at chance, or at the share of the largest class", &check_chance},
    {"final-accuracy", "A final accuracy that is the mean over the epochs", &check_final_accuracy},
    {"data-size", "More samples than the data has, epochs that are none", &check_data_size},
    {"utilisation", "One snapshot, readings outside the run, utilisation below the rate's share",
     &check_utilisation},
    {"memory", "0 for not measured, less than the parameters, more than the device has",
     &check_memory},
    {"scaling", "Times that do not follow the batch", &check_scaling},
    {"totals", "Total = epochs x epoch time, epoch = samples / rate", &check_totals},
    {"overlapping-parts", "Parts that contain each other, yet sum to the total exactly",
     &check_overlapping_parts},
    {"trace", "Steps that end before their kernels, and idle devices", &check_trace},
});

}  // namespace

std::span<const Check> all_checks() { return kChecks; }

}  // namespace ridgeline::audit
