# Writes OUTPUT, a C++ file that holds FILES as text, so that the program needs no files beside it. FILES is a |-separated
# list of paths relative to SOURCE_DIR, which are the names too.
string(REPLACE "|" ";" files "${FILES}")
set(entries "")
foreach(file IN LISTS files)
  set(path "${SOURCE_DIR}/${file}")
  # Read as hexadecimal digits: CMake lists would mangle brackets and semicolons.
  file(READ "${path}" digits HEX)
  string(REGEX REPLACE "(................................)" "\\1\n" digits "${digits}")
  string(REGEX REPLACE "([0-9a-f][0-9a-f])" "\\\\x\\1" digits "${digits}")
  string(REGEX REPLACE "\n" "\"\n\"" digits "${digits}")
  file(SIZE "${path}" size)
  string(APPEND entries "{\"${file}\", std::string_view(\n\"${digits}\", ${size})},\n")
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
