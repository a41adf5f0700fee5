#include "store/run_filter.h"

#include "base/error.h"
#include "base/parse.h"
#include "base/suggest.h"
#include "base/text.h"
#include "models/model.h"
#include "onnx/network.h"
#include "store/identity_fields.h"

namespace ridgeline {
namespace {

// Fields of the run itself that are text.
template <typename Visit>
void visit_text_fields(const RunRecord& run, Visit&& visit) {
  visit_own_fields(run, [&](std::string_view name, const auto& value) {
    using Type = std::remove_cvref_t<decltype(value)>;
    if constexpr (std::same_as<Type, std::string>) visit(name, std::string_view(value));
    if constexpr (std::same_as<Type, RunStatus>) visit(name, name_of(value));
  });
}

bool is_option(std::string_view name) {
  for (const ModelInfo& model : all_models()) {
    for (const ModelOption& option : model.options) {
      if (option.name == name) return true;
    }
  }
  return false;
}

void check_name(std::string_view name, const std::string& text) {
  if (find_identity_field(name) != nullptr || is_option(name)) return;
  std::vector<std::string_view> known;
  for (const IdentityField& field : identity_fields()) known.push_back(field.name);
  visit_text_fields(RunRecord{}, [&](std::string_view field, auto) { known.push_back(field); });
  for (const std::string_view field : known) {
    if (field == name) return;
  }
  bad_input("'{}' in '{}': runs have no field of that name{}; known: {}", name, text,
            did_you_mean(name, known), joined(known, ", "));
}

bool same_number(const std::optional<double>& value, const std::string& text) {
  const auto number = number_in<double>(text);
  return number && value == number;
}

bool fits(const RunRecord& run, const std::string& name, const std::string& wanted) {
  if (const IdentityField* field = find_identity_field(name)) {
    const std::string text = field->text(run);
    if (field->is_number && same_number(field->value(run), wanted)) return true;
    return text == wanted || (text.empty() && wanted == "no");
  }
  if (const auto option = run.work.settings.find(name); option != run.work.settings.end()) {
    return option->second == wanted;
  }
  bool same = false;
  visit_text_fields(run, [&](std::string_view field, std::string_view value) {
    same = same || (field == name && value == wanted);
  });
  return same;
}

}  // namespace

RunFilter parse_run_filter(const std::string& text) {
  RunFilter filter;
  std::string* value = nullptr;
  for (std::size_t begin = 0; begin <= text.size();) {
    const std::size_t end = std::min(text.find(',', begin), text.size());
    const std::string part = text.substr(begin, end - begin);
    const std::size_t equals = part.find('=');
    if (equals != std::string::npos && equals > 0) {
      const std::string name = part.substr(0, equals);
      check_name(name, text);
      value = &filter[name];
      *value = part.substr(equals + 1);
    } else if (value != nullptr && equals == std::string::npos) {
      *value += "," + part;
    } else {
      bad_input("'{}' in '{}': must be NAME=VALUE, for example backend=native", part, text);
    }
    begin = end + 1;
  }
  // A file is meant by its contents.
  if (const auto model = filter.find("model");
      model != filter.end() && onnx::is_network_file(model->second)) {
    const ModelConfig config = onnx::named_config(model->second);
    model->second = config.name;
    filter["model_hash"] = onnx::short_hash(*config.source);
  }
  return filter;
}

bool fits(const RunRecord& run, const RunFilter& filter) {
  for (const auto& [name, wanted] : filter) {
    if (!fits(run, name, wanted)) return false;
  }
  return true;
}

}  // namespace ridgeline
