#include "measure/profile/kernel_name.h"

#include <cxxabi.h>

#include <cctype>
#include <cstdlib>
#include <memory>

namespace ridgeline {
namespace {

bool is_word(char c) { return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_'; }

// Where the argument list begins: the first parenthesis outside of template arguments, which
// "(anonymous namespace)" is none of. A name without arguments ends there.
std::size_t end_of_name(std::string_view name) {
  int depth = 0;
  for (std::size_t i = 0; i < name.size(); ++i) {
    if (name[i] == '<') ++depth;
    if (name[i] == '>') --depth;
    if (name[i] != '(' || depth > 0) continue;
    constexpr std::string_view kAnonymous = "(anonymous namespace)";
    if (!name.substr(i).starts_with(kAnonymous)) return i;
    i += kAnonymous.size() - 1;
  }
  return name.size();
}

// Behind the last space or "::" outside of template arguments.
std::size_t begin_of_function(std::string_view name) {
  int depth = 0;
  std::size_t begin = 0;
  for (std::size_t i = 0; i < name.size(); ++i) {
    if (name[i] == '<' || name[i] == '(') ++depth;
    if (name[i] == '>' || name[i] == ')') --depth;
    if (depth == 0 && (name[i] == ' ' || name[i] == ':')) begin = i + 1;
  }
  return begin;
}

std::string_view first_word(std::string_view text) {
  std::size_t end = 0;
  while (end < text.size() && is_word(text[end])) ++end;
  return text.substr(0, end);
}

}  // namespace

std::string demangled(const std::string& name) {
  int status = 0;
  const std::unique_ptr<char, decltype(&std::free)> text(
      abi::__cxa_demangle(name.c_str(), nullptr, nullptr, &status), &std::free);
  return status == 0 && text != nullptr ? std::string(text.get()) : name;
}

std::string short_kernel_name(std::string_view name) {
  const std::string_view whole = name.substr(0, end_of_name(name));
  const std::string_view function = whole.substr(begin_of_function(whole));
  const std::size_t arguments = function.find('<');
  if (arguments == std::string_view::npos) return std::string(function);
  std::string text(function.substr(0, arguments));
  const bool is_wrapper = whole.find("cutlass::") < whole.find('<');
  const std::string_view kept =
      is_wrapper ? first_word(function.substr(arguments + 1)) : std::string_view();
  return text + '<' + std::string(kept) + "…>";
}

// "cudaGraphLaunch_v10000", "cudaLaunchKernel_ptsz_v7000"
std::string plain_call_name(std::string_view name) {
  const std::size_t version = name.rfind("_v");
  if (version != std::string_view::npos && version + 2 < name.size() &&
      name.find_first_not_of("0123456789", version + 2) == std::string_view::npos) {
    name = name.substr(0, version);
  }
  for (const std::string_view stream : {"_ptsz", "_ptds"}) {
    if (name.ends_with(stream)) name.remove_suffix(stream.size());
  }
  return std::string(name);
}

}  // namespace ridgeline
