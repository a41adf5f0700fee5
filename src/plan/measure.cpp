#include "plan/measure.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "base/clock.h"
#include "base/error.h"
#include "base/philox.h"
#include "plan/session.h"

namespace ridgeline {
namespace {

// Labels must stay below the number of classes, which the loss tells.
std::int64_t bound_of(const Graph& graph, const Value& value) {
  for (const NodeId user : value.users) {
    const Node& node = graph.node(user);
    if (node.kind == OpKind::softmax_cross_entropy)
      return graph.value(node.inputs[0]).spec.shape[1];
  }
  return value.spec.dtype == DType::u8 ? 256 : 1;
}

// Numbers between which a value's elements are drawn. Weights keep the size of what flows through
// them: with values that grow or fade from layer to layer, kernels would be timed on infinities and
// denormal numbers.
struct Range {
  double low, high;
};

Range range_of(const Value& value) {
  const Shape& shape = value.spec.shape;
  if (value.role == Role::parameter && shape.rank() > 1) {
    const auto fan_in = static_cast<double>(shape.elements() / shape[0]);
    const double bound = std::sqrt(6.0 / fan_in);
    return {-bound, bound};
  }
  if (value.role == Role::optimizer_state) return {0.0, 1e-3};
  return {0.5, 1.0};
}

std::vector<std::byte> random_bytes(const Graph& graph, ValueId id) {
  const Value& value = graph.value(id);
  std::vector<std::byte> bytes(static_cast<std::size_t>(value.spec.bytes()));
  PhiloxSequence random(0, RandomStream::synthetic, static_cast<std::uint64_t>(id));
  const auto bound = static_cast<std::uint64_t>(bound_of(graph, value));
  const Range range = range_of(value);
  // Random up to a block, which then repeats: timing needs no more.
  const std::int64_t elements = value.spec.shape.elements();
  const std::int64_t drawn = std::min<std::int64_t>(elements, 1 << 14);
  for (std::int64_t i = 0; i < drawn; ++i) {
    switch (value.spec.dtype) {
      case DType::f32:
        reinterpret_cast<float*>(bytes.data())[i] =
            static_cast<float>(range.low + (range.high - range.low) * random.uniform_double());
        break;
      case DType::f64:
        reinterpret_cast<double*>(bytes.data())[i] =
            range.low + (range.high - range.low) * random.uniform_double();
        break;
      case DType::i32:
        reinterpret_cast<std::int32_t*>(bytes.data())[i] =
            static_cast<std::int32_t>(random.next() % bound);
        break;
      case DType::u8:
        reinterpret_cast<std::uint8_t*>(bytes.data())[i] = static_cast<std::uint8_t>(random.next());
        break;
      case DType::bf16:
      case DType::f16:
        fail("state of type {} is not kept", name_of(value.spec.dtype));
    }
  }
  const std::size_t block = static_cast<std::size_t>(drawn) * size_of(value.spec.dtype);
  for (std::size_t at = block; at < bytes.size(); at += block) {
    std::copy_n(bytes.begin(), std::min(block, bytes.size() - at),
                bytes.begin() + static_cast<std::ptrdiff_t>(at));
  }
  return bytes;
}

// How long to measure: at least twice, at most so often, and no longer than needed.
struct Patience {
  double seconds;
  int most;
};
constexpr Patience kOneStep{0.03, 5}, kWholePlan{0.2, 20};

double fastest_of_some(Device& device, Patience patience, const std::function<void()>& launches) {
  double fastest = std::numeric_limits<double>::infinity();
  const Clock::time_point begin = Clock::now();
  for (int i = 0; i < patience.most && (i < 2 || seconds_since(begin) < patience.seconds); ++i) {
    fastest = std::min(fastest, device.time(launches));
  }
  return fastest;
}

}  // namespace

void fill_for_timing(Session& session, std::size_t plan) {
  const Graph& graph = *session.plan(plan).graph;
  std::int64_t rows = 1;
  for (std::size_t id = 0; id < graph.values().size(); ++id) {
    const Value& value = graph.values()[id];
    if (value.producer != kNoNode || !session.has(value.name)) continue;
    if (value.role == Role::input) rows = value.spec.shape[0];
    const std::vector<std::byte> bytes = random_bytes(graph, static_cast<ValueId>(id));
    session.write(value.name, bytes);
    session.device().synchronize();
  }
  StepState& state = session.step_state();
  state = {};
  state.valid_rows = rows;
}

double time_step(Session& session, std::size_t plan, std::size_t step) {
  // Where launches are queued, one alone would be timed with the way to the device.
  const int launches = session.device().kind() == "cpu" ? 1 : 8;
  const double seconds = fastest_of_some(session.device(), kOneStep, [&] {
    for (int i = 0; i < launches; ++i) session.launch_step(plan, step);
  });
  return seconds / launches;
}

double time_whole(Session& session, std::size_t plan) {
  // Twice: the second run is where a device records the plan.
  for (int i = 0; i < 2; ++i) session.run(plan);
  return fastest_of_some(session.device(), kWholePlan, [&] { session.run(plan); });
}

std::vector<double> time_steps(Session& session, std::size_t plan) {
  session.run(plan);
  session.device().synchronize();
  std::vector<double> seconds;
  for (std::size_t s = 0; s < session.plan(plan).steps.size(); ++s) {
    seconds.push_back(time_step(session, plan, s));
  }
  return seconds;
}

}  // namespace ridgeline
