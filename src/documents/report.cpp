#include "documents/report.h"

#include <nlohmann/json.hpp>

#include "base/json_text.h"

namespace ridgeline {
namespace {

using Json = nlohmann::ordered_json;

}  // namespace

std::int64_t total_bytes(const std::vector<report::WrittenFile>& files) {
  std::int64_t bytes = 0;
  for (const report::WrittenFile& file : files) bytes += file.bytes;
  return bytes;
}

std::string written_json(const report::WrittenReport& report, const std::string& folder) {
  Json files = Json::array();
  for (const report::WrittenFile& file : report.files) {
    files.push_back({{"name", file.name}, {"bytes", file.bytes}});
  }
  return json_document(Json{{"folder", folder},
                            {"files", files},
                            {"tables", report.tables},
                            {"figures", report.figures},
                            {"bytes", total_bytes(report.files)},
                            {"warnings", report.warnings}});
}

}  // namespace ridgeline
