#pragma once

// Gets files over the network: resumed where they were interrupted, checked, unpacked as a whole.

#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>
#include <string_view>

namespace ridgeline {

// Bytes done, bytes in all (0 where the server does not say).
using DownloadProgress = std::function<void(std::int64_t, std::int64_t)>;

struct RemoteFile {
  std::string url;
  std::string md5;  // empty: not known, not checked
};

// Downloads to `path`. What has arrived stays in `path`.part when the connection breaks, and the
// next call goes on from there. A file at `path` with the right checksum is taken as it is.
// Failures say the address and where a file fetched by other means would go; a wrong checksum is a
// failure that removes the file.
void download(const RemoteFile& file, const std::filesystem::path& path,
              const DownloadProgress& progress);

// Unpacks tar, tar.gz, tar.xz or zip (told by the contents) into `folder`, which must not exist: it
// appears when all is unpacked, or not at all. Names that lead out of the folder are refused. With
// `inner`, only what lies below that path of the archive is unpacked, without the path.
void unpack(const std::filesystem::path& archive, const std::filesystem::path& folder,
            std::string_view inner);

}  // namespace ridgeline
