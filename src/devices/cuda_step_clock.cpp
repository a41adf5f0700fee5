#include <cuda_runtime_api.h>

#include <algorithm>

#include "base/error.h"
#include "devices/cuda_check.h"
#include "devices/step_clock.h"

namespace ridgeline {
namespace {

using cuda::check;

// Pairs of events from which their own cost is taken.
constexpr std::size_t kEmptyPairs = 32;
// Two events are told apart no better than this; no launch is called shorter.
constexpr double kResolution = 0.5e-6;

class EventList {
 public:
  explicit EventList(std::size_t count) : events_(count) {
    for (cudaEvent_t& event : events_) check(cudaEventCreate(&event), "an event");
  }
  EventList(const EventList&) = delete;
  EventList& operator=(const EventList&) = delete;
  ~EventList() {
    for (const cudaEvent_t event : events_) {
      if (event != nullptr) (void)cudaEventDestroy(event);
    }
  }

  // Within a capture an external record is a node of the graph; elsewhere it is a plain one.
  void record(std::size_t index, cudaStream_t stream, bool captured) const {
    const unsigned flags = captured ? cudaEventRecordExternal : cudaEventRecordDefault;
    check(cudaEventRecordWithFlags(events_[index], stream, flags), "recording an event");
  }

  // Between each event and the next.
  [[nodiscard]] std::vector<double> seconds() const {
    std::vector<double> between;
    for (std::size_t i = 0; i + 1 < events_.size(); ++i) {
      float milliseconds = 0.0F;
      check(cudaEventElapsedTime(&milliseconds, events_[i], events_[i + 1]), "reading a time");
      between.push_back(static_cast<double>(milliseconds) * 1e-3);
    }
    return between;
  }

 private:
  std::vector<cudaEvent_t> events_;
};

class EventGraph {
 public:
  EventGraph() = default;
  EventGraph(const EventGraph&) = delete;
  EventGraph& operator=(const EventGraph&) = delete;
  ~EventGraph() {
    if (executable_ != nullptr) (void)cudaGraphExecDestroy(executable_);
    if (graph_ != nullptr) (void)cudaGraphDestroy(graph_);
  }

  void capture(cudaStream_t stream, const std::function<void()>& launches) {
    check(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal), "capturing a step");
    try {
      launches();
    } catch (...) {
      (void)cudaStreamEndCapture(stream, &graph_);
      throw;
    }
    check(cudaStreamEndCapture(stream, &graph_), "capturing a step");
    check(cudaGraphInstantiate(&executable_, graph_, 0), "making a graph of the step");
  }
  void replay(Device& device) const {
    check(cudaGraphLaunch(executable_, static_cast<cudaStream_t>(device.queue())),
          "starting the step");
    device.synchronize();
  }

 private:
  cudaGraph_t graph_ = nullptr;
  cudaGraphExec_t executable_ = nullptr;
};

// The usual distance of two events with nothing between them.
double cost_of_events(Device& device) {
  const EventList events(kEmptyPairs + 1);
  EventGraph graph;
  auto* const stream = static_cast<cudaStream_t>(device.queue());
  graph.capture(stream, [&] {
    for (std::size_t i = 0; i <= kEmptyPairs; ++i) events.record(i, stream, true);
  });
  graph.replay(device);  // the first replay also brings the graph to the device
  graph.replay(device);
  std::vector<double> seconds = events.seconds();
  std::nth_element(seconds.begin(), seconds.begin() + kEmptyPairs / 2, seconds.end());
  return seconds[kEmptyPairs / 2];
}

}  // namespace

struct StepClock::Events {
  Events(Device& on, std::size_t number, std::function<void(std::size_t)> what, bool captured)
      : device(on),
        stream(static_cast<cudaStream_t>(on.queue())),
        count(number),
        launch(std::move(what)),
        capturable(captured),
        list(number + 1) {
    device.synchronize();
    if (!capturable) return;
    graph.capture(stream, [&] { launch_all(); });
    graph.replay(device);
    overhead = cost_of_events(device);
  }

  void launch_all() const {
    list.record(0, stream, capturable);
    for (std::size_t i = 0; i < count; ++i) {
      launch(i);
      list.record(i + 1, stream, capturable);
    }
  }

  Device& device;
  cudaStream_t stream;
  std::size_t count;
  std::function<void(std::size_t)> launch;
  bool capturable;
  EventList list;
  EventGraph graph;
  double overhead = 0.0;
};

StepClock::StepClock(Device& device, std::size_t count, std::function<void(std::size_t)> launch,
                     bool capturable)
    : events_(std::make_unique<Events>(device, count, std::move(launch), capturable)) {}

StepClock::~StepClock() = default;

std::vector<double> StepClock::pass() {
  if (events_->capturable) {
    events_->graph.replay(events_->device);
  } else {
    events_->launch_all();
    events_->device.synchronize();
  }
  std::vector<double> seconds = events_->list.seconds();
  for (double& s : seconds) s = std::max(s - events_->overhead, kResolution);
  return seconds;
}

}  // namespace ridgeline
