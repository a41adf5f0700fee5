#include "documents/study.h"

#include <nlohmann/json.hpp>

#include "base/json_text.h"
#include "store/fields.h"

namespace ridgeline {
namespace {

using Json = nlohmann::ordered_json;

bool waits(const StudyItemRecord& item) {
  return item.status == ItemStatus::waiting || item.status == ItemStatus::failed;
}

}  // namespace

std::string study_json(const StudySummary& summary) {
  Json items = Json::array();
  double estimate = 0.0;
  for (const StudyItemRecord& item : summary.items) {
    if (waits(item)) estimate += item.estimated_seconds;
    items.push_back(
        {{"key", item.key},
         {"part", study::part_of(item)},
         {"title", item.title},
         {"command", item.command},
         {"status", name_of(item.status)},
         {"reason", text_or_null(item.reason)},
         {"substitute", text_or_null(item.substitute)},
         {"estimated_seconds",
          item.status != ItemStatus::left_out ? Json(item.estimated_seconds) : Json(nullptr)},
         {"seconds", or_null(item.seconds)}});
  }
  const Json document = {{"study", summary.study->definition.name},
                         {"title", summary.study->definition.title},
                         {"scale", name_of(summary.scale)},
                         {"uuid", text_or_null(summary.uuid)},
                         {"store", summary.store},
                         {"resumed", summary.resumed},
                         {"interrupted", summary.interrupted},
                         {"estimated_seconds_left", estimate},
                         {"seconds", summary.uuid.empty() ? Json(nullptr) : Json(summary.seconds)},
                         {"items", std::move(items)}};
  return json_document(document);
}

std::string study_list_json() {
  Json list = Json::array();
  for (const std::string& name : study::built_in_studies()) {
    const study::Study found = study::find_study(name);
    Json parts = Json::array();
    for (const study::Part& part : found.full) parts.push_back(part.id);
    list.push_back({{"name", name},
                    {"title", found.definition.title},
                    {"question", found.definition.question},
                    {"parts", std::move(parts)}});
  }
  return json_document(Json{{"studies", std::move(list)}});
}

}  // namespace ridgeline
