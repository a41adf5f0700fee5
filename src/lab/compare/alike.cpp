#include "lab/compare/alike.h"

#include "base/error.h"

namespace ridgeline {
namespace {

std::string text_of(const std::string& value) { return value.empty() ? "none" : value; }
std::string text_of(std::int64_t value) { return fmt::format("{}", value); }

class Differences {
 public:
  template <typename Value>
  void add(const char* field, const Value& a, const Value& b) {
    if (a != b) list.push_back({field, text_of(a), text_of(b)});
  }
  std::vector<Difference> list;
};

}  // namespace

std::string Difference::text() const { return fmt::format("{}: {} against {}", field, a, b); }

std::vector<Difference> differences(const Work& a, const Work& b) {
  Differences found;
  found.add("kind", a.kind, b.kind);
  found.add("model", a.model, b.model);
  found.add("settings", a.settings, b.settings);
  found.add("batch", a.batch, b.batch);
  found.add("image", a.image, b.image);
  found.add("classes", a.classes, b.classes);
  found.add("precision", a.precision, b.precision);
  found.add("optimizer", a.optimizer, b.optimizer);
  found.add("data", a.data, b.data);
  found.add("samples of the data", a.data_samples, b.data_samples);
  found.add("normalisation", a.normalisation, b.normalisation);
  found.add("variant", a.variant, b.variant);
  // A field that is not in the list above must not pass as alike.
  ensure(found.list.empty() == (a == b), "work differs in a field that the comparison leaves out");
  return found.list;
}

std::vector<Difference> differences(const Executor& a, const Executor& b) {
  Differences found;
  found.add("backend", a.backend, b.backend);
  found.add("device", a.device, b.device);
  found.add("threads", std::int64_t{a.threads}, std::int64_t{b.threads});
  found.add("options", a.options, b.options);
  ensure(found.list.empty() == (a == b), "executors differ in a field that is left out here");
  return found.list;
}

bool repeats(const RunRecord& a, const RunRecord& b) {
  return a.work == b.work && a.executor == b.executor && a.environment == b.environment;
}

}  // namespace ridgeline
