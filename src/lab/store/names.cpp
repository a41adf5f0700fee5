// The registered names of numbers, notes and sensors.

#include <array>

#include "lab/store/columns.h"

namespace ridgeline {
namespace {

constexpr std::array kNumberNames = {
    RegisteredName{"parameters", "", "Trainable numbers of the network"},
    RegisteredName{"training_flops", "FLOP", "Algorithmic, of one training step"},
    RegisteredName{"forward_flops", "FLOP", "Algorithmic, of one forward pass"},
    RegisteredName{"executed_flops", "FLOP", "Of one step, as the kernels do it"},
    RegisteredName{"plan_bytes_read", "B", "Of one step, at the boundaries of the plan's steps"},
    RegisteredName{"plan_bytes_written", "B", "Of one step, at the boundaries of the plan's steps"},
    RegisteredName{"plan_steps", "", "Steps of the plan"},
    RegisteredName{"folded_batch_norms", "", "Batch normalisations folded into their convolutions"},
    RegisteredName{"planned_bytes", "B", "Device memory that the plan takes"},
    RegisteredName{"peak_memory_bytes", "B", "Most memory in use on the device, as measured"},
    RegisteredName{"runtime_memory_bytes", "B", "Taken on the device by driver and libraries"},
    RegisteredName{"setup_seconds", "s", "Building graph, plan and session"},
    RegisteredName{"autotune_seconds", "s", "Of the setup, timing kernels to choose from"},
    RegisteredName{"compile_seconds", "s", "Compiling or capturing before the first iteration"},
    RegisteredName{"first_step_seconds", "s", "The first iteration"},
    RegisteredName{"warmup_iterations", "", "Iterations before measuring"},
    RegisteredName{"warmup_seconds", "s", "They took"},
    RegisteredName{"measured_iterations", "", "Measured iterations"},
    RegisteredName{"median_seconds", "s", "Median of the measured iterations, wall clock"},
    RegisteredName{"ci_low_seconds", "s", "Lower end of the median's 95% interval"},
    RegisteredName{"ci_high_seconds", "s", "Upper end of the median's 95% interval"},
    RegisteredName{"device_median_seconds", "s", "Median by the device's own clock"},
    RegisteredName{"queued_seconds", "s",
                   "Median of iterations that are queued, by the device's own clock"},
    RegisteredName{"samples_per_second", "samples/s",
                   "Batch over the median; over that of queued iterations where there are any"},
    RegisteredName{"achieved_flops_per_second", "FLOP/s", "Algorithmic FLOPs over the median"},
    RegisteredName{"achieved_bytes_per_second", "B/s", "Bytes of the plan over the median"},
    RegisteredName{"step_sum_seconds", "s", "Sum of the step times"},
    RegisteredName{"data_wait_share", "share", "Of the iteration, waiting for the loader"},
    RegisteredName{"energy_joules", "J", "Of the measured iterations, all devices that tell"},
    RegisteredName{"energy_joules_per_sample", "J", "The same for one sample"},
    RegisteredName{"cpu_energy_joules", "J", "The processor's part"},
    RegisteredName{"gpu_energy_joules", "J", "The graphics processors' part"},
    RegisteredName{"mean_power_watts", "W", "Over the measured iterations"},
    RegisteredName{"telemetry_rate_hz", "Hz", "Rounds of reading in a second"},
    RegisteredName{"telemetry_overhead_share", "share", "Of one core, taken by reading sensors"},
    RegisteredName{"recording_overhead_share", "share",
                   "Of the run, taken by writing to the store"},
    RegisteredName{"parity_max_difference", "", "Greatest relative difference of a peer's losses"},
    RegisteredName{"first_loss", "", "Of the first iteration"},
    RegisteredName{"final_loss", "", "Of the last iteration"},
    RegisteredName{"final_test_accuracy", "share", "After the last epoch"},
    RegisteredName{"best_test_accuracy", "share", "Of all epochs"},
    RegisteredName{"latency_p50_seconds", "s", "Of inference: half of the requests take less"},
    RegisteredName{"latency_p90_seconds", "s", "90 of 100 requests take less"},
    RegisteredName{"latency_p95_seconds", "s", "95 of 100 requests take less"},
    RegisteredName{"latency_p99_seconds", "s", "99 of 100 requests take less"},
};

constexpr std::array kNoteNames = {
    RegisteredName{"providers", "", "Backends with their shares of time"},
    RegisteredName{"kernels", "", "Names of the kernels that ran"},
    RegisteredName{"clock", "", "What timed the iterations: host, device or both"},
    RegisteredName{"stopping", "", "Why measuring ended: count, precision reached, time is up"},
    RegisteredName{"steadiness", "", "What the test of the warm-up said"},
    RegisteredName{"parity", "", "Whether a peer computes the same, with evidence"},
    RegisteredName{"peer_version", "", "Of Python and the peer's libraries"},
    RegisteredName{"missing_sensors", "", "Sensors that cannot be read here, and why"},
    RegisteredName{"pattern", "", "Which samples differ periodically"},
    RegisteredName{"checkpoint", "", "Where a training keeps its state"},
};

constexpr std::array kSensorNames = {
    RegisteredName{"cpu_utilisation_percent", "%", "Of all processors of the system"},
    RegisteredName{"iowait_percent", "%", "Time in which processors waited for disks"},
    RegisteredName{"steal_percent", "%", "Time that the hypervisor gave to others"},
    RegisteredName{"other_cpu_percent", "%", "Used by other programs; 100 is one core"},
    RegisteredName{"process_cpu_percent", "%", "Used by this process; 100 is one core"},
    RegisteredName{"children_cpu_percent", "%", "Used by its children; 100 is one core"},
    RegisteredName{"rss_bytes", "B", "Resident memory of this process"},
    RegisteredName{"peak_rss_bytes", "B", "The most it has had"},
    RegisteredName{"children_rss_bytes", "B", "Resident memory of its children"},
    RegisteredName{"threads", "", "Threads of this process"},
    RegisteredName{"processes", "", "This process and its descendants"},
    RegisteredName{"context_switches_per_second", "1/s", "Of this process"},
    RegisteredName{"disk_read_bytes_per_second", "B/s", "Read from disks by this process"},
    RegisteredName{"cpu_mhz", "MHz", "Mean clock of the processors"},
    RegisteredName{"cpu_temperature_celsius", "°C", "The hottest sensor of the processor"},
    RegisteredName{"cpu_throttle_events", "", "Times the processor slowed itself down for heat"},
    RegisteredName{"cpu_energy_joules", "J", "Counter (RAPL): only differences mean something"},
    RegisteredName{"memory_energy_joules", "J", "The same for the memory"},
    RegisteredName{"memory_available_bytes", "B", "Memory that the system can still give"},
    RegisteredName{"memory_available_percent", "%", "The same as a share of all"},
    RegisteredName{"memory_pressure_percent", "%", "Time in which tasks waited for memory"},
    RegisteredName{"swap_bytes", "B", "Swap in use in the system"},
    RegisteredName{"swap_in_bytes_per_second", "B/s", "Read back from swap"},
    RegisteredName{"swap_out_bytes_per_second", "B/s", "Written to swap"},
    RegisteredName{"gpu_utilisation_percent", "%", "Time in which a kernel ran"},
    RegisteredName{"gpu_memory_utilisation_percent", "%",
                   "Time in which memory was read or written"},
    RegisteredName{"gpu_memory_used_bytes", "B", "Of all programs"},
    RegisteredName{"gpu_memory_occupied_percent", "%", "The same as a share of all"},
    RegisteredName{"gpu_process_memory_bytes", "B", "Of this process"},
    RegisteredName{"gpu_sm_mhz", "MHz", "Clock of the multiprocessors"},
    RegisteredName{"gpu_memory_mhz", "MHz", "Clock of the memory"},
    RegisteredName{"gpu_temperature_celsius", "°C", "Of the chip"},
    RegisteredName{"gpu_fan_percent", "%", "Of its highest speed"},
    RegisteredName{"gpu_power_watts", "W", "Drawn by the board"},
    RegisteredName{"gpu_power_limit_watts", "W", "That the driver enforces"},
    RegisteredName{"gpu_pstate", "", "0 is the fastest performance state"},
    RegisteredName{"gpu_energy_joules", "J", "Counter: only differences mean something"},
    RegisteredName{"gpu_throttle_reasons", "", "Bits of NVML's clock event reasons"},
};

}  // namespace

std::span<const RegisteredName> number_names() { return kNumberNames; }
std::span<const RegisteredName> note_names() { return kNoteNames; }
std::span<const RegisteredName> sensor_names() { return kSensorNames; }

}  // namespace ridgeline
