#pragma once

// A request as JSON, read key by key into the structs of the laboratory. Keys are the names of the
// command line's options with underscores.

#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "lab/bench.h"
#include "lab/describe.h"
#include "lab/profile.h"
#include "lab/step_session.h"
#include "lab/train.h"
#include "study/request.h"

namespace ridgeline::capi {

class RequestReader {
 public:
  // Throws bad_input for what is no JSON object.
  explicit RequestReader(const char* text);

  // Each leaves its target where the key is missing or null, and throws bad_input for another type.
  void read(const char* key, std::string& value);
  void read(const char* key, std::optional<std::string>& value);
  void read(const char* key, bool& value);
  void read(const char* key, int& value);
  void read(const char* key, std::int64_t& value);
  void read(const char* key, double& value);
  void read(const char* key, std::optional<std::int64_t>& value);
  void read(const char* key, std::optional<double>& value);
  // A text or number alone is a list of one.
  void read(const char* key, std::vector<std::string>& values);
  void read(const char* key, std::vector<std::int64_t>& values);
  // The same as the command line has lists: "16,32".
  void read_joined(const char* key, std::string& values);

  // Throws bad_input for an unknown key.
  void finish() const;

 private:
  [[nodiscard]] const nlohmann::json* find(const char* key);
  [[noreturn]] void refuse(const char* key, const char* wanted) const;
  [[nodiscard]] std::string text_of(const char* key, const nlohmann::json& value) const;
  [[nodiscard]] std::int64_t whole_of(const char* key, const nlohmann::json& value) const;

  nlohmann::json document_;
  std::set<std::string> known_;
};

// Groups of keys that several requests share.
void read_run(RequestReader& reader, RunOptions& run);
void read_optimizer(RequestReader& reader, OptimizerOptions& optimizer);
void read_store(RequestReader& reader, StoreOptions& store);

[[nodiscard]] DescribeRequest describe_request(const char* text);
[[nodiscard]] SessionRequest session_request(const char* text);
[[nodiscard]] TrainRequest train_request(const char* text);
[[nodiscard]] study::StudyRequest study_request(const char* text, bool& dry_run);

struct BenchCall {
  BenchRequest request;
  bool per_step = false;
};
[[nodiscard]] BenchCall bench_request(const char* text);

struct ProfileCall {
  ProfileRequest request;
  std::string by = "op";
  std::optional<std::int64_t> top;
  std::string trace;
};
[[nodiscard]] ProfileCall profile_request(const char* text);

}  // namespace ridgeline::capi
