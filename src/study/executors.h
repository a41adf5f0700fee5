#pragma once

// Backends on devices: who can run where.

#include <string>
#include <string_view>
#include <vector>

namespace ridgeline::study {

struct ExecutorName {
  std::string backend, device;             // "auto", "cuda:0"
  [[nodiscard]] std::string text() const;  // "native", "auto on cuda:0"
  [[nodiscard]] std::string key() const;   // "native", "auto@cuda:0", as `bench` takes it
};

// "auto@cuda": a backend that a study wants on one device alone. Without the @, an empty device.
[[nodiscard]] ExecutorName split_backend(const std::string& text);

// "cpu", "cuda", "mps", or "any" for auto.
[[nodiscard]] std::string_view device_kind_of(std::string_view backend);

// The devices of a list that a backend, as a study names it, runs on, "cuda" spelled out as
// "cuda:0". An empty list stands for the processor and the first GPU; "best" stays as it is: the
// first GPU where there is one, else the processor.
[[nodiscard]] std::vector<std::string> devices_of(const std::string& backend,
                                                  const std::vector<std::string>& devices);

}  // namespace ridgeline::study
