#pragma once

// Ceilings: what this machine was measured to do at most, the roofs of the roofline. Each is the
// median of some repeats with their range; `high` is the roof, because a roof is what can be
// reached at all. Fields by kind:
//   compute    subject fp32 fp64 tf32 bf16 fp16; FLOP/s
//              path scalar sse4 avx2 avx512, or cuda core, tensor; OpenCL: the type, float16
//              scope one core, all cores, device
//   bandwidth  subject L1 L2 L3 cache memory; path read write copy triad; B/s
//              capacity_bytes: the level's bytes within that scope. Bytes are those that a program
//              reads and writes, as STREAM counts: lines fetched because a store will overwrite
//              them do not count
//   latency    subject kernel launch, graph node, synchronise; on the cpu fork-join; s
//   transfer   subject to device, from device; path pageable, pinned; B/s

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "devices/device.h"
#include "store/records.h"
#include "store/store.h"

namespace ridgeline {

// How much trouble is taken.
struct CeilingEffort {
  // Of each measurement: many short ones, of which some are not disturbed. Where one takes long
  // there are fewer, but never fewer than 5.
  int repeats = 21;
  double repeat_seconds = 0.003;  // each, at least
  // Bytes of the arrays that stand for memory; 0: four times the last cache.
  std::int64_t memory_bytes = 0;
  // Only these, whatever their scope; empty: all. Of the CPU's.
  std::vector<Ceiling> only = {};
};

// Called before each measurement.
using CeilingProgress =
    std::function<void(std::int64_t done, std::int64_t total, const std::string& what)>;

// Everything about one device, "cpu", "cuda:0" or "opencl:0", with the data sheet's figures where
// the device is known (hardware.h). Takes about 20 s on two cores, less on a GPU; nothing else
// should run meanwhile. Throws bad_input for a device that cannot be used here.
[[nodiscard]] std::vector<Ceiling> measure_ceilings(const std::string& device,
                                                    const CeilingProgress& progress = {},
                                                    const CeilingEffort& effort = {});

// Those that show that something else ran meanwhile: of all cores, and below that of one of them.
[[nodiscard]] std::vector<Ceiling> disturbed(std::span<const Ceiling> ceilings);
// Takes from another measurement of the same device what is better there.
void keep_better(std::vector<Ceiling>& kept, std::span<const Ceiling> again);

// Goes on from what is `known` of the device: measures all of it where nothing is, and then again
// what was disturbed, and keeps the best of each. What stays disturbed is marked as a lower bound.
[[nodiscard]] std::vector<Ceiling> undisturbed_ceilings(const std::string& device,
                                                        const CeilingProgress& progress = {},
                                                        std::vector<Ceiling> known = {});

// The stored ones of a device; none: it was not measured in this environment.
[[nodiscard]] std::vector<Ceiling> stored_ceilings(const Store& store,
                                                   const std::string& environment,
                                                   const std::string& device);
// The stored ones of an environment that the store knows; measured and stored where there are none.
[[nodiscard]] std::vector<Ceiling> known_or_measured(Store& store, const std::string& environment,
                                                     const std::string& device,
                                                     const CeilingProgress& progress = {});

namespace ceilings {

// One without figures yet.
[[nodiscard]] Ceiling ceiling_named(std::string device, std::string kind, std::string subject,
                                    std::string path, std::string scope, std::string unit);
// Median and range of the repeats.
void set_values(Ceiling& ceiling, std::span<const double> repeats);

[[nodiscard]] std::vector<Ceiling> measure_cpu(const CeilingProgress& progress,
                                               const CeilingEffort& effort);
// REQUIRES: a graphics processor.
[[nodiscard]] std::vector<Ceiling> measure_cuda(Device& device, const CeilingProgress& progress,
                                                const CeilingEffort& effort);
// REQUIRES: an OpenCL device.
[[nodiscard]] std::vector<Ceiling> measure_opencl(Device& device, const CeilingProgress& progress,
                                                  const CeilingEffort& effort);

}  // namespace ceilings
}  // namespace ridgeline
