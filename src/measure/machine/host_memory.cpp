#include "measure/machine/host_memory.h"

#include <malloc.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <fstream>
#include <sstream>
#include <string>
#include <vector>

namespace ridgeline {
namespace {

constexpr std::int64_t kKiB = 1024;

// One stretch of addresses.
struct Mapping {
  std::uint64_t begin = 0, end = 0;
  std::string permissions, path;
  std::int64_t resident = 0;
  bool large_pages = false;
};

bool is_header(const std::string& line) {
  return line.find('-') < line.find(' ') && line.find(':') > line.find(' ');
}

// "7f00-7f10 r-xp 00000000 fe:00 1234   /usr/lib/libc.so.6"
Mapping parse_header(const std::string& line) {
  Mapping mapping;
  std::istringstream words(line);
  char dash = 0;
  std::string offset, device, inode;
  words >> std::hex >> mapping.begin >> dash >> mapping.end >> mapping.permissions >> offset >>
      device >> inode;
  std::getline(words >> std::ws, mapping.path);
  return mapping;
}

// The stack of a thread lies above a page that may not be touched.
bool is_guard(const Mapping& mapping) {
  return mapping.permissions == "---p" && mapping.path.empty() &&
         mapping.end - mapping.begin == static_cast<std::uint64_t>(sysconf(_SC_PAGESIZE));
}

bool is_library(const Mapping& mapping) {
  if (mapping.path.find(".so") != std::string::npos) return true;
  static const std::string program = [] {
    std::vector<char> path(4096);
    const ssize_t size = readlink("/proc/self/exe", path.data(), path.size());
    return std::string(path.data(), size > 0 ? static_cast<std::size_t>(size) : 0);
  }();
  return mapping.path == program || mapping.path.starts_with("[v");  // [vdso], [vvar]
}

void add(const Mapping& mapping, const Mapping& below, HostMemory& memory) {
  memory.resident += mapping.resident;
  const bool anonymous = mapping.path.empty() || mapping.path.starts_with('[');
  memory.driver_loaded |= mapping.path.find("libcuda.so") != std::string::npos;
  std::int64_t* owner = &memory.other;
  if (mapping.path.starts_with("/dev/nvidia")) {
    owner = &memory.driver;
  } else if (is_library(mapping)) {
    owner = &memory.libraries;
  } else if (!anonymous) {
    owner = &memory.files;
  } else if (mapping.permissions.find('x') != std::string::npos) {
    owner = &memory.generated_code;
  } else if (mapping.path == "[stack]" || (is_guard(below) && below.end == mapping.begin)) {
    owner = &memory.stacks;
  } else if (mapping.large_pages) {
    owner = &memory.arenas;
  }
  *owner += mapping.resident;
}

}  // namespace

HostMemory parse_smaps(std::istream& smaps) {
  HostMemory memory;
  Mapping below, current;
  for (std::string line; std::getline(smaps, line);) {
    if (is_header(line)) {
      add(current, below, memory);
      below = std::move(current);
      current = parse_header(line);
    } else if (line.starts_with("Rss:")) {
      current.resident = std::stoll(line.substr(4)) * kKiB;
    } else if (line.starts_with("VmFlags:")) {
      current.large_pages = line.find(" hg") != std::string::npos;
    }
  }
  add(current, below, memory);
  return memory;
}

HostMemory read_host_memory() {
  std::ifstream smaps("/proc/self/smaps");
  HostMemory memory = parse_smaps(smaps);
  const struct mallinfo2 heap = mallinfo2();
  memory.heap_used = static_cast<std::int64_t>(heap.uordblks + heap.hblkhd);
  memory.heap_free = static_cast<std::int64_t>(heap.fordblks);
  return memory;
}

std::int64_t heap_bytes() {
  const struct mallinfo2 heap = mallinfo2();
  return static_cast<std::int64_t>(heap.uordblks + heap.hblkhd);
}

std::int64_t resident_bytes(std::span<const std::byte> memory) {
  if (memory.empty()) return 0;
  const auto page = static_cast<std::uintptr_t>(sysconf(_SC_PAGESIZE));
  const auto first = reinterpret_cast<std::uintptr_t>(memory.data()) / page * page;
  const auto last = reinterpret_cast<std::uintptr_t>(memory.data()) + memory.size();
  std::vector<unsigned char> pages((last - first + page - 1) / page);
  if (mincore(reinterpret_cast<void*>(first), last - first, pages.data()) != 0) return 0;
  const auto in_use = std::count_if(pages.begin(), pages.end(),
                                    [](unsigned char state) { return (state & 1) != 0; });
  return std::min(static_cast<std::int64_t>(in_use) * static_cast<std::int64_t>(page),
                  static_cast<std::int64_t>(memory.size()));
}

}  // namespace ridgeline
