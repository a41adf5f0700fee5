#pragma once

// CUPTI, NVIDIA's library that watches a device; opened when a profile asks for it.

#include <cupti.h>

#include <string>

namespace ridgeline::cupti {

struct Library {
  std::string unavailable;  // why it cannot be used; empty when it can
  std::string file;         // the one that was opened
  decltype(&cuptiGetVersion) get_version = nullptr;
  decltype(&cuptiGetResultString) result_string = nullptr;
  decltype(&cuptiGetTimestamp) timestamp = nullptr;
  decltype(&cuptiGetCallbackName) callback_name = nullptr;
  decltype(&cuptiActivityRegisterCallbacks) register_callbacks = nullptr;
  decltype(&cuptiActivityEnable) enable = nullptr;
  decltype(&cuptiActivityDisable) disable = nullptr;
  decltype(&cuptiActivityFlushAll) flush_all = nullptr;
  decltype(&cuptiActivityGetNextRecord) next_record = nullptr;
  decltype(&cuptiActivityGetNumDroppedRecords) dropped_records = nullptr;
  decltype(&cuptiActivityPushExternalCorrelationId) push_id = nullptr;
  decltype(&cuptiActivityPopExternalCorrelationId) pop_id = nullptr;

  // What a refusal means for the user.
  [[nodiscard]] std::string words(CUptiResult result) const;
  // Throws a failure with those words.
  void check(CUptiResult result, const char* what) const;
};

// The installed one, found once.
[[nodiscard]] const Library& library();

}  // namespace ridgeline::cupti
