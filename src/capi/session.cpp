// Single training steps.

#include <nlohmann/json.hpp>

#include "base/json_text.h"
#include "capi/guard.h"
#include "capi/request.h"

struct rl_session {
  explicit rl_session(const ridgeline::SessionRequest& request) : steps(request) {}
  ridgeline::StepSession steps;
  std::atomic_flag busy;
};

namespace ridgeline::capi {
namespace {

// Runs `body` with the session, which is this thread's meanwhile.
template <typename Body>
int with_session(rl_session* session, Body&& body) noexcept {
  return guarded([&] {
    const InUse use(given(session, "session")->busy, "session");
    body(session->steps);
  });
}

std::span<const std::byte> bytes_of(const void* data, std::size_t size, const char* what) {
  return {static_cast<const std::byte*>(given(data, what)), size};
}

std::size_t size_of_count(std::int64_t count) {
  if (count < 0) bad_input("{} elements", count);
  return static_cast<std::size_t>(count);
}

std::string describe_session(const StepSession& steps) {
  const ModelConfig& model = steps.spec().model;
  auto tensors = nlohmann::ordered_json::array();
  for (const Parameter& parameter : steps.parameters()) {
    auto shape = nlohmann::ordered_json::array();
    for (int axis = 0; axis < parameter.file_shape.rank(); ++axis) {
      shape.push_back(parameter.file_shape[axis]);
    }
    tensors.push_back({{"name", parameter.name},
                       {"shape", std::move(shape)},
                       {"role", name_of(parameter.role)},
                       {"frozen", parameter.frozen}});
  }
  return json_text(
      nlohmann::ordered_json{{"model", model.name},
                             {"backend", steps.backend()},
                             {"device", steps.device_name()},
                             {"batch", steps.spec().batch},
                             {"image", {model.channels, model.height, model.width}},
                             {"classes", model.classes},
                             {"input", steps.spec().tensor_input ? "tensor" : "pixels"},
                             {"element", steps.element() == DType::f64 ? "float64" : "float32"},
                             {"gradients", steps.spec().keep_gradients},
                             {"tensors", std::move(tensors)}});
}

}  // namespace
}  // namespace ridgeline::capi

using namespace ridgeline;
using namespace ridgeline::capi;

int rl_session_open(const char* request, rl_session** session) {
  return guarded([&] {
    *given(session, "session") = nullptr;
    *session = new rl_session(session_request(request));
  });
}

int rl_session_describe(rl_session* session, char** result) {
  return with_session(session, [&](const StepSession& steps) {
    *given(result, "result") = to_text(describe_session(steps));
  });
}

int rl_session_plan(rl_session* session, char** text) {
  return with_session(session, [&](const StepSession& steps) {
    *given(text, "text") = to_text(steps.plan().text(false));
  });
}

int rl_session_step(rl_session* session, const void* images, size_t image_bytes,
                    const int32_t* labels, int64_t rows, double learning_rate, double* loss) {
  return with_session(session, [&](StepSession& steps) {
    const auto rate = learning_rate < 0.0 ? std::nullopt : std::optional(learning_rate);
    const double result = steps.step(bytes_of(images, image_bytes, "images"),
                                     {given(labels, "labels"), size_of_count(rows)}, rate);
    if (loss != nullptr) *loss = result;
  });
}

int rl_session_logits(rl_session* session, const void* images, size_t image_bytes, double* logits,
                      int64_t count) {
  return with_session(session, [&](StepSession& steps) {
    const std::vector<double> values = steps.logits(bytes_of(images, image_bytes, "images"));
    if (values.size() != size_of_count(count)) {
      bad_input("room for {} logits, there are {}", count, values.size());
    }
    std::copy(values.begin(), values.end(), given(logits, "logits"));
  });
}

int rl_session_read(rl_session* session, const char* name, void* values, size_t size) {
  return with_session(session, [&](const StepSession& steps) {
    steps.read(given(name, "name"), {static_cast<std::byte*>(given(values, "values")), size});
  });
}

int rl_session_write(rl_session* session, const char* name, const void* values, size_t size) {
  return with_session(session, [&](StepSession& steps) {
    steps.write(given(name, "name"), bytes_of(values, size, "values"));
  });
}

int rl_session_memory(rl_session* session, const char* name, void** values, size_t* size) {
  return with_session(session, [&](StepSession& steps) {
    const std::span<std::byte> place = steps.memory(given(name, "name"));
    *given(values, "values") = place.data();
    *given(size, "size") = place.size();
  });
}

int rl_session_close(rl_session* session) {
  // In a forked process guarded() refuses: the memory is left to the end of that process.
  return guarded([&] {
    if (session == nullptr) return;
    { const InUse use(session->busy, "session"); }
    delete session;
  });
}
