#include <archive.h>
#include <archive_entry.h>
#include <unistd.h>

#include <memory>

#include "base/error.h"
#include "base/folder.h"
#include "data/download.h"

namespace ridgeline {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t kBlock = 1 << 16;

struct FreeReader {
  void operator()(archive* reader) const { archive_read_free(reader); }
};
struct FreeWriter {
  void operator()(archive* writer) const { archive_write_free(writer); }
};

const char* reason_of(archive* a) {
  const char* text = archive_error_string(a);
  return text != nullptr ? text : "no reason is given";
}

// The path below `inner`, or nothing for entries elsewhere. Paths that climb are errors.
fs::path path_below(const char* name, std::string_view inner, const fs::path& archive_path) {
  if (name == nullptr) bad_input("{}: an entry has no readable name", archive_path.string());
  const fs::path path = fs::path(name).lexically_normal();
  if (path.is_absolute() || (!path.empty() && *path.begin() == "..")) {
    bad_input("{}: contains the path '{}', which leads out of the folder; the archive is refused",
              archive_path.string(), name);
  }
  if (inner.empty()) return path;
  const fs::path below = path.lexically_relative(fs::path(inner));
  return below.empty() || *below.begin() == ".." ? fs::path() : below;
}

void copy_data(archive* reader, archive* writer, const fs::path& archive_path) {
  for (;;) {
    const void* block = nullptr;
    std::size_t size = 0;
    la_int64_t offset = 0;
    const int status = archive_read_data_block(reader, &block, &size, &offset);
    if (status == ARCHIVE_EOF) return;
    if (status < ARCHIVE_WARN) {
      bad_input("{}: is damaged: {}", archive_path.string(), reason_of(reader));
    }
    if (archive_write_data_block(writer, block, size, offset) < ARCHIVE_WARN) {
      fail("{}: cannot be unpacked: {}", archive_path.string(), reason_of(writer));
    }
  }
}

}  // namespace

void unpack(const fs::path& archive_path, const fs::path& folder, std::string_view inner) {
  const std::unique_ptr<archive, FreeReader> reader(archive_read_new());
  const std::unique_ptr<archive, FreeWriter> writer(archive_write_disk_new());
  ensure(reader && writer, "libarchive could not start");
  archive_read_support_filter_all(reader.get());
  archive_read_support_format_tar(reader.get());
  archive_read_support_format_zip(reader.get());
  if (archive_read_open_filename(reader.get(), archive_path.c_str(), kBlock) != ARCHIVE_OK) {
    bad_input("{}: is not an archive that can be unpacked: {}", archive_path.string(),
              reason_of(reader.get()));
  }
  NewFolder fresh(fmt::format("{}.unpacking{}", folder.string(), getpid()));
  std::int64_t files = 0;
  for (;;) {
    archive_entry* entry = nullptr;
    const int status = archive_read_next_header(reader.get(), &entry);
    if (status == ARCHIVE_EOF) break;
    if (status < ARCHIVE_WARN) {
      bad_input("{}: is damaged or not an archive: {}", archive_path.string(),
                reason_of(reader.get()));
    }
    const fs::path below = path_below(archive_entry_pathname(entry), inner, archive_path);
    const auto type = archive_entry_filetype(entry);
    // Data has no use for links and devices.
    const bool wanted = !below.empty() && archive_entry_hardlink(entry) == nullptr &&
                        (type == AE_IFREG || type == AE_IFDIR);
    if (!wanted) continue;
    archive_entry_set_pathname(entry, (fresh.path() / below).c_str());
    archive_entry_set_perm(entry, type == AE_IFDIR ? 0755 : 0644);
    if (archive_write_header(writer.get(), entry) < ARCHIVE_WARN) {
      fail("{}: cannot be unpacked: {}", archive_path.string(), reason_of(writer.get()));
    }
    if (type == AE_IFREG) {
      copy_data(reader.get(), writer.get(), archive_path);
      ++files;
    }
    if (archive_write_finish_entry(writer.get()) < ARCHIVE_WARN) {
      fail("{}: cannot be unpacked: {}", archive_path.string(), reason_of(writer.get()));
    }
  }
  if (files == 0) {
    bad_input("{}: contains no files{}", archive_path.string(),
              inner.empty() ? std::string() : fmt::format(" below {}", inner));
  }
  fresh.rename_to(folder);
  fresh.keep();
}

}  // namespace ridgeline
