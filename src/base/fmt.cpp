// The one place where fmt's functions are compiled. Debian has no static fmt library, and compiling
// them in every file (FMT_HEADER_ONLY) makes the build three times as long.

#include <fmt/format-inl.h>

template auto fmt::detail::thousands_sep_impl<char>(locale_ref) -> thousands_sep_result<char>;
template auto fmt::detail::decimal_point_impl<char>(locale_ref) -> char;
