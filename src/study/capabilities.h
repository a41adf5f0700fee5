#pragma once

// What a machine can do, as far as a plan must know. Tests plan for machines that they make up.

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/precision.h"
#include "store/records.h"
#include "study/executors.h"

namespace ridgeline::study {

// Of a device, for estimates: arithmetic in fp32 and memory traffic, a second.
struct DeviceSpeed {
  double flops = 0.0, bytes = 0.0;
};

class Capabilities {
 public:
  virtual ~Capabilities() = default;
  // Why a backend cannot run on a device here; empty: it can.
  [[nodiscard]] virtual std::string refuse(const ExecutorName& executor) = 0;
  // Why it cannot compute in a precision there; empty: it can.
  [[nodiscard]] virtual std::string refuse_precision(const ExecutorName& executor,
                                                     Precision precision) = 0;
  // Why several processes cannot share steps here; empty: they can.
  [[nodiscard]] virtual std::string refuse_ranks() = 0;
  [[nodiscard]] virtual int processors() = 0;
  // "cpu", "cuda:0": those that there are.
  [[nodiscard]] virtual std::vector<std::string> devices() = 0;
  // What --data takes for data that a study names; nothing: it is not here.
  [[nodiscard]] virtual std::optional<std::string> find_data(const std::string& name) = 0;
  // The file with weights that a study names; nothing: there is none.
  [[nodiscard]] virtual std::optional<std::string> find_weights(const std::string& name) = 0;
  // That a program can have at all; nothing: the system does not tell.
  [[nodiscard]] virtual std::optional<std::int64_t> memory_bytes(const std::string& device) = 0;
  [[nodiscard]] virtual DeviceSpeed speed(const std::string& device) = 0;
  [[nodiscard]] virtual bool ceilings_known(const std::string& device) = 0;
};

struct MachineOptions {
  std::vector<Ceiling> ceilings = {};  // that are known of it
  // Where data lies beside the usual folders: by name, and folders that hold it.
  std::map<std::string, std::string> data = {};
  std::string data_folder = {};  // empty: none
};
// This machine.
[[nodiscard]] std::unique_ptr<Capabilities> this_machine(MachineOptions options);

}  // namespace ridgeline::study
