#pragma once

#include <vector>

#include "measure/iterations/measurement.h"

namespace ridgeline {

// Hands every event on to several sinks, in their order.
class SinkChain final : public MeasureSink {
 public:
  void add(MeasureSink& sink) { sinks_.push_back(&sink); }
  void group_begun(double now) override {
    for (MeasureSink* sink : sinks_) sink->group_begun(now);
  }
  void begun(std::size_t candidate) override {
    for (MeasureSink* sink : sinks_) sink->begun(candidate);
  }
  void prepared(std::size_t candidate, const Preparation& preparation) override {
    for (MeasureSink* sink : sinks_) sink->prepared(candidate, preparation);
  }
  void measured(std::size_t candidate, std::span<const Sample> samples) override {
    for (MeasureSink* sink : sinks_) sink->measured(candidate, samples);
  }
  void readings(std::size_t candidate, std::span<const Reading> readings) override {
    for (MeasureSink* sink : sinks_) sink->readings(candidate, readings);
  }
  void ended(std::size_t candidate, const Ending& ending) override {
    for (MeasureSink* sink : sinks_) sink->ended(candidate, ending);
  }

 private:
  std::vector<MeasureSink*> sinks_;
};

}  // namespace ridgeline
