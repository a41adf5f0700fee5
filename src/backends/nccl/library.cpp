#include "backends/nccl/library.h"

#include "backends/nccl/nccl_version.h"
#include "base/error.h"
#include "base/shared_library.h"

namespace ridgeline::nccl {
namespace {

struct Opened {
  Functions functions;
  int version = 0;
  std::string problem;
};

// An old one lacks functions: its version says more than their names.
const Opened& opened() {
  static const Opened result = [] {
    Opened made;
    SharedLibrary library({"libnccl.so.2"});
    Functions& f = made.functions;
    library.find("ncclGetVersion", f.get_version);
    if (f.get_version != nullptr) {
      (void)f.get_version(&made.version);
      made.problem = refuse_version(made.version);
      if (!made.problem.empty()) return made;
    }
    library.find("ncclGetErrorString", f.error_string);
    library.find("ncclGetUniqueId", f.get_unique_id);
    library.find("ncclCommInitRank", f.init);
    library.find("ncclCommDestroy", f.destroy);
    library.find("ncclCommAbort", f.abort);
    library.find("ncclCommGetAsyncError", f.async_error);
    library.find("ncclGroupStart", f.group_start);
    library.find("ncclGroupEnd", f.group_end);
    library.find("ncclAllReduce", f.all_reduce);
    library.find("ncclAllGather", f.all_gather);
    library.find("ncclSend", f.send);
    library.find("ncclRecv", f.receive);
    if (!library.problem().empty()) {
      made.problem = fmt::format("NCCL cannot be opened: {} (Debian: libnccl2)", library.problem());
    }
    return made;
  }();
  return result;
}

}  // namespace

const std::string& library_problem() { return opened().problem; }
int library_version() { return opened().version; }
const Functions& functions() { return opened().functions; }

void check(ncclResult_t result, const char* what) {
  if (result != ncclSuccess) fail("NCCL: {}: {}", what, functions().error_string(result));
}

}  // namespace ridgeline::nccl
