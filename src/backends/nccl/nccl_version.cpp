#include "backends/nccl/nccl_version.h"

#include <fmt/core.h>

namespace ridgeline::nccl {
namespace {

constexpr int kSends = 2703;  // the first with ncclSend and ncclRecv
constexpr int kRecords = 20900;
constexpr int kTenThousands = 10000;

}  // namespace

std::string refuse_version(int version) {
  if (version >= kSends) return {};
  return fmt::format("NCCL {} is too old: {} is needed", text_of_version(version),
                     text_of_version(kSends));
}

bool records_exchanges(int version) { return version >= kRecords; }

std::string text_of_version(int version) {
  const int unit = version >= kTenThousands ? kTenThousands : 1000;
  return fmt::format("{}.{}.{}", version / unit, version % unit / 100, version % 100);
}

}  // namespace ridgeline::nccl
