# Writes OUTPUT, a C++ file that holds FILES (a |-separated list of paths relative to SOURCE_DIR) as text, so that the
# program needs no files beside it.
string(REPLACE "|" ";" files "${FILES}")
set(entries "")
foreach(name IN LISTS files)
  # Read as hexadecimal digits: CMake lists would mangle brackets and semicolons.
  file(READ "${SOURCE_DIR}/${name}" digits HEX)
  string(REGEX REPLACE "(................................)" "\\1\n" digits "${digits}")
  string(REGEX REPLACE "([0-9a-f][0-9a-f])" "\\\\x\\1" digits "${digits}")
  string(REGEX REPLACE "\n" "\"\n\"" digits "${digits}")
  file(SIZE "${SOURCE_DIR}/${name}" size)
  string(APPEND entries "{\"${name}\", std::string_view(\n\"${digits}\", ${size})},\n")
endforeach()
file(WRITE "${OUTPUT}.new" "#include \"base/embedded.h\"

namespace ridgeline {
namespace {
constexpr EmbeddedFile kFiles[] = {
${entries}};
}  // namespace

std::span<const EmbeddedFile> embedded_files() { return kFiles; }

}  // namespace ridgeline
")
execute_process(COMMAND "${CMAKE_COMMAND}" -E copy_if_different "${OUTPUT}.new" "${OUTPUT}")
