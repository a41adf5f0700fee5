// A library that makes one call of a program fail: loaded with LD_PRELOAD, it counts the calls of
// one kind and lets the k-th of them fail as a full disk, a broken one or a lack of memory would.
// scripts/fault-sweep is its user. It is told by the environment:
//
//   RIDGELINE_FAULT_STATE    a file of State's size, zeros at first; it is shared by a program and
//                            the commands it starts, so that k counts the calls of all of them
//   RIDGELINE_FAULT_PROGRAM  the name of the program; others (rsvg-convert) are left alone
//   RIDGELINE_FAULT_FOLDER   only files below this folder count
//   RIDGELINE_FAULT_CALL     write, sync, rename, open, map, truncate or allocate
//   RIDGELINE_FAULT_NUMBER   k, from 1; 0: none fails, the calls are only counted
//   RIDGELINE_FAULT_ERROR    the number of the error; 0, for write: half of the bytes are written
//   RIDGELINE_FAULT_AGAIN    where it is set, an allocation fails when it is tried again, too
//   RIDGELINE_FAULT_SPARED   libraries, as in libx:liby; a call that one makes, or that is made for
//                            it, does not fail
//   RIDGELINE_FAULT_TRACE    where it is set, the stack at the fault goes to standard error
//
// Allocations count from the beginning of main(). Nothing here allocates, locks, or calls a
// function that it replaces itself: the originals are reached by glibc's other names or by system
// calls.

#include <dirent.h>
#include <dlfcn.h>
#include <execinfo.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <climits>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <string_view>

extern "C" {
void* __libc_malloc(size_t);
void* __libc_calloc(size_t, size_t);
void* __libc_realloc(void*, size_t);
void* __libc_memalign(size_t, size_t);
}

namespace {

enum class Call { write, sync, rename, open, map, truncate, allocate, count };
constexpr const char* kNames[] = {"write", "sync", "rename", "open", "map", "truncate", "allocate"};

// scripts/fault-sweep reads it.
struct State {
  std::atomic<std::uint64_t> calls[static_cast<int>(Call::count)];
  std::atomic<std::uint64_t> faults, spared;
};
static_assert(sizeof(State) == 72 && std::atomic<std::uint64_t>::is_always_lock_free);

// Set once, before main() begins; threads read it only.
State* state = nullptr;
Call wanted = Call::count;
std::uint64_t number = 0;
int fault_error = 0;
bool again = false;
const char* spared = "";
bool trace = false;
char folder[PATH_MAX] = "";
std::size_t folder_length = 0;

const char* setting(const char* name) {
  const char* text = getenv(name);
  return text != nullptr ? text : "";
}

bool is_program() {
  char path[PATH_MAX];
  const ssize_t length = readlink("/proc/self/exe", path, sizeof(path) - 1);
  if (length <= 0) return false;
  path[length] = '\0';
  const char* slash = strrchr(path, '/');
  return slash != nullptr && strcmp(slash + 1, setting("RIDGELINE_FAULT_PROGRAM")) == 0;
}

void start() {
  if (!is_program()) return;
  const long file =
      syscall(SYS_openat, AT_FDCWD, setting("RIDGELINE_FAULT_STATE"), O_RDWR | O_CLOEXEC, 0);
  if (file < 0) return;
  const long memory =
      syscall(SYS_mmap, nullptr, sizeof(State), PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
  syscall(SYS_close, file);
  if (memory < 0 && memory > -4096) return;
  for (int call = 0; call < static_cast<int>(Call::count); ++call) {
    if (strcmp(setting("RIDGELINE_FAULT_CALL"), kNames[call]) == 0)
      wanted = static_cast<Call>(call);
  }
  number = strtoull(setting("RIDGELINE_FAULT_NUMBER"), nullptr, 10);
  fault_error = atoi(setting("RIDGELINE_FAULT_ERROR"));
  again = *setting("RIDGELINE_FAULT_AGAIN") != '\0';
  spared = setting("RIDGELINE_FAULT_SPARED");
  trace = *setting("RIDGELINE_FAULT_TRACE") != '\0';
  strncpy(folder, setting("RIDGELINE_FAULT_FOLDER"), sizeof(folder) - 1);
  folder_length = strlen(folder);
  void* frames[1];
  backtrace(frames, 1);  // its first call loads a library
  state = reinterpret_cast<State*>(memory);
}

// Whether the file of a library is one of those that are spared.
bool is_spared(std::string_view file) {
  for (std::string_view left = spared; !left.empty();) {
    const std::string_view name = left.substr(0, left.find(':'));
    if (file.find(name) != file.npos) return true;
    left.remove_prefix(name.size() == left.size() ? left.size() : name.size() + 1);
  }
  return false;
}

// Whether one of the functions that led here belongs to a library that is spared.
bool in_spared(void* const* frames, int count) {
  for (int i = 0; i < count; ++i) {
    Dl_info place;
    if (dladdr(frames[i], &place) != 0 && is_spared(place.dli_fname)) return true;
  }
  return false;
}

// Counts a call; true: this is the one that fails.
bool fails(Call call) {
  if (state == nullptr) return false;
  const std::uint64_t k = ++state->calls[static_cast<int>(call)];
  if (call != wanted || k != number) return false;
  void* frames[64];
  const int depth = backtrace(frames, 64);
  if (in_spared(frames, depth)) {
    ++state->spared;
    return false;
  }
  ++state->faults;
  if (trace) backtrace_symbols_fd(frames, depth, STDERR_FILENO);
  errno = fault_error;
  return true;
}

// The size of the allocation that has just failed in this thread, where it fails again.
constinit thread_local std::size_t failed_size = 0;

bool fails_to_allocate(std::size_t size) {
  if (fails(Call::allocate)) {
    if (again) failed_size = size;
    return true;
  }
  const bool tried_again = failed_size != 0 && failed_size == size;
  failed_size = 0;
  return tried_again;
}

bool lies_below(const char* path) {
  return strncmp(path, folder, folder_length) == 0 &&
         (path[folder_length] == '/' || path[folder_length] == '\0');
}

bool counts(const char* path) {
  if (state == nullptr || path == nullptr) return false;
  if (*path == '/') return lies_below(path);
  char current[PATH_MAX];
  return syscall(SYS_getcwd, current, sizeof(current)) > 0 && lies_below(current);
}

bool counts(int file) {
  if (state == nullptr || file < 0) return false;
  const int before = errno;
  char link[32] = "/proc/self/fd/", digits[16], path[PATH_MAX];
  int length = 0;
  for (int rest = file; rest > 0 || length == 0; rest /= 10)
    digits[length++] = '0' + char(rest % 10);
  char* end = link + strlen(link);
  while (length > 0) *end++ = digits[--length];
  const ssize_t got = readlink(link, path, sizeof(path) - 1);
  errno = before;
  if (got <= 0) return false;
  path[got] = '\0';
  return lies_below(path);
}

// A call that returns -1 or what the system call returns.
bool fails(Call call, int file) { return counts(file) && fails(call); }
bool fails(Call call, const char* path) { return counts(path) && fails(call); }

int opened(int at, const char* path, int flags, mode_t mode) {
  if (fails(Call::open, path)) return -1;
  return static_cast<int>(syscall(SYS_openat, at, path, flags, mode));
}

template <typename Function>
Function original(Function, const char* name) {
  return reinterpret_cast<Function>(dlsym(RTLD_NEXT, name));
}

int (*real_main)(int, char**, char**) = nullptr;

int counted_main(int argc, char** argv, char** environment) {
  start();
  return real_main(argc, argv, environment);
}

}  // namespace

#pragma GCC visibility push(default)
extern "C" {

int __libc_start_main(int (*main)(int, char**, char**), int argc, char** argv, void (*init)(),
                      void (*fini)(), void (*rtld_fini)(), void* stack_end) {
  real_main = main;
  return original(&__libc_start_main, "__libc_start_main")(counted_main, argc, argv, init, fini,
                                                           rtld_fini, stack_end);
}

void* malloc(size_t size) { return fails_to_allocate(size) ? nullptr : __libc_malloc(size); }

void* calloc(size_t count, size_t size) {
  return fails_to_allocate(count * size) ? nullptr : __libc_calloc(count, size);
}

void* realloc(void* memory, size_t size) {
  return fails_to_allocate(size) ? nullptr : __libc_realloc(memory, size);
}

void* memalign(size_t alignment, size_t size) {
  return fails_to_allocate(size) ? nullptr : __libc_memalign(alignment, size);
}

void* aligned_alloc(size_t alignment, size_t size) { return memalign(alignment, size); }

int posix_memalign(void** memory, size_t alignment, size_t size) {
  const int before = errno;
  void* got = memalign(alignment, size);
  errno = before;
  if (got == nullptr) return ENOMEM;
  *memory = got;
  return 0;
}

ssize_t write(int file, const void* bytes, size_t count) {
  if (fails(Call::write, file)) {
    if (fault_error != 0) return -1;
    count -= count / 2;
  }
  return syscall(SYS_write, file, bytes, count);
}

ssize_t pwrite64(int file, const void* bytes, size_t count, off64_t offset) {
  if (fails(Call::write, file)) {
    if (fault_error != 0) return -1;
    count -= count / 2;
  }
  return syscall(SYS_pwrite64, file, bytes, count, offset);
}
ssize_t pwrite(int file, const void* bytes, size_t count, off_t offset) {
  return pwrite64(file, bytes, count, offset);
}

ssize_t writev(int file, const iovec* pieces, int count) {
  if (fails(Call::write, file)) {
    if (fault_error != 0) return -1;
    return syscall(SYS_write, file, pieces[0].iov_base, pieces[0].iov_len - pieces[0].iov_len / 2);
  }
  return syscall(SYS_writev, file, pieces, count);
}

int fsync(int file) {
  return fails(Call::sync, file) ? -1 : static_cast<int>(syscall(SYS_fsync, file));
}
int fdatasync(int file) {
  return fails(Call::sync, file) ? -1 : static_cast<int>(syscall(SYS_fdatasync, file));
}

int ftruncate64(int file, off64_t length) {
  return fails(Call::truncate, file) ? -1 : static_cast<int>(syscall(SYS_ftruncate, file, length));
}
int ftruncate(int file, off_t length) { return ftruncate64(file, length); }

int renameat2(int from_at, const char* from, int to_at, const char* to, unsigned flags) {
  if (fails(Call::rename, from)) return -1;
  return static_cast<int>(syscall(SYS_renameat2, from_at, from, to_at, to, flags));
}
int renameat(int from_at, const char* from, int to_at, const char* to) {
  return renameat2(from_at, from, to_at, to, 0);
}
int rename(const char* from, const char* to) { return renameat2(AT_FDCWD, from, AT_FDCWD, to, 0); }

// The mode is there only where a file may be made; reading it otherwise does no harm on this ABI.
int open64(const char* path, int flags, ...) {
  va_list rest;
  va_start(rest, flags);
  const mode_t mode = va_arg(rest, mode_t);
  va_end(rest);
  return opened(AT_FDCWD, path, flags, mode);
}
int open(const char* path, int flags, ...) {
  va_list rest;
  va_start(rest, flags);
  const mode_t mode = va_arg(rest, mode_t);
  va_end(rest);
  return opened(AT_FDCWD, path, flags, mode);
}
int openat64(int at, const char* path, int flags, ...) {
  va_list rest;
  va_start(rest, flags);
  const mode_t mode = va_arg(rest, mode_t);
  va_end(rest);
  return opened(at, path, flags, mode);
}
int openat(int at, const char* path, int flags, ...) {
  va_list rest;
  va_start(rest, flags);
  const mode_t mode = va_arg(rest, mode_t);
  va_end(rest);
  return opened(at, path, flags, mode);
}
int creat(const char* path, mode_t mode) {
  return opened(AT_FDCWD, path, O_CREAT | O_WRONLY | O_TRUNC, mode);
}

FILE* fopen64(const char* path, const char* mode) {
  static const auto real = original(&fopen64, "fopen64");
  return fails(Call::open, path) ? nullptr : real(path, mode);
}
FILE* fopen(const char* path, const char* mode) { return fopen64(path, mode); }

struct __dirstream* opendir(const char* path) {
  static const auto real = original(&opendir, "opendir");
  return fails(Call::open, path) ? nullptr : real(path);
}

// Memory without a file counts as well: the arenas of a session come so.
void* mmap64(void* at, size_t length, int protection, int flags, int file, off64_t offset) {
  if ((flags & MAP_ANONYMOUS) != 0 ? fails(Call::map) : fails(Call::map, file)) return MAP_FAILED;
  return reinterpret_cast<void*>(syscall(SYS_mmap, at, length, protection, flags, file, offset));
}
void* mmap(void* at, size_t length, int protection, int flags, int file, off_t offset) {
  return mmap64(at, length, protection, flags, file, offset);
}

}  // extern "C"
#pragma GCC visibility pop
