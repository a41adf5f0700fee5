#pragma once

// The checks. Each looks at one kind of error; registry.cpp says what.

#include <vector>

#include "audit/check.h"

namespace ridgeline::audit {

using Findings = std::vector<Finding>;

void check_impossible_values(Context& context, Findings& findings);
void check_duplicate_rows(Context& context, Findings& findings);
void check_rate_times_time(Context& context, Findings& findings);
void check_mixed_units(Context& context, Findings& findings);
void check_above_roof(Context& context, Findings& findings);
void check_far_below_roof(Context& context, Findings& findings);
void check_flops(Context& context, Findings& findings);
void check_parameters(Context& context, Findings& findings);
void check_intensity(Context& context, Findings& findings);
void check_data_sheet(Context& context, Findings& findings);
void check_warm_up(Context& context, Findings& findings);
void check_clock_resolution(Context& context, Findings& findings);
void check_few_samples(Context& context, Findings& findings);
void check_periodic_samples(Context& context, Findings& findings);
void check_iteration_count(Context& context, Findings& findings);
void check_unlike_work(Context& context, Findings& findings);
void check_speedup(Context& context, Findings& findings);
void check_equal_devices(Context& context, Findings& findings);
void check_chance(Context& context, Findings& findings);
void check_final_accuracy(Context& context, Findings& findings);
void check_data_size(Context& context, Findings& findings);
void check_utilisation(Context& context, Findings& findings);
void check_memory(Context& context, Findings& findings);
void check_efficiency(Context& context, Findings& findings);
void check_scaling(Context& context, Findings& findings);
void check_totals(Context& context, Findings& findings);
void check_overlapping_parts(Context& context, Findings& findings);
void check_trace(Context& context, Findings& findings);

}  // namespace ridgeline::audit
