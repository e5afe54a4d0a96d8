// SPDX-License-Identifier: Apache-2.0
#include <kvbench/config/named_files.hpp>

#include <algorithm>
#include <filesystem>

#include <fmt/format.h>

#include <kvbench/core/name.hpp>

namespace kvbench::config {
namespace {

bool names_file(const methods::MethodInfo& info, const methods::Assignment& setting) {
  const auto is = [&](const methods::ParamSpec& spec) { return same_name(spec.name, setting.name); };
  const auto spec = std::ranges::find_if(info.params, is);
  return spec != info.params.end() && spec->names_file(setting.value);
}

/// A file, which here is relative to the current folder, as the file `path` names it.
std::string file_beside(const std::string& path, const std::string& file) {
  if (path.empty() || std::filesystem::path(file).is_absolute()) return file;
  const auto absolute = [](const std::string& of) { return std::filesystem::absolute(of).lexically_normal(); };
  return absolute(file).lexically_relative(absolute(path).parent_path()).string();
}

}  // namespace

std::string path_of(const Place& place, const std::string& path) {
  return (std::filesystem::path(place.file).parent_path() / path).lexically_normal().string();
}

methods::MethodName method_name(const Place& place, const methods::MethodName& name) {
  return name.with_file(path_of(place, name.file));
}

methods::Assignment setting_of(const Place& place, const methods::MethodInfo& info, methods::Assignment setting) {
  if (names_file(info, setting)) setting.value = path_of(place, setting.value);
  return setting;
}

std::string with_path_hint(std::string error) {
  if (!error.ends_with('.')) error += '.';
  return error +
         " In a list of methods a comma parts names and square brackets hold settings; rename a file whose path has "
         "one.";
}

std::string item_text(std::string_view item, const Place* place) {
  return fmt::format("{}'{}'", place != nullptr ? "" : "`methods` ", item);
}

methods::MethodSettings method_of(std::string_view text, const Place* place) {
  const std::optional<methods::MethodName> name = methods::parse_method_text(text);
  if (!name) {
    const bool path = methods::parse_method_name(text).origin != methods::Origin::kvbench;
    std::string error = item_text(text, place) + ": brackets stand once, at the end; write METHOD[PARAMETER=VALUE]";
    throw Error("{}", path ? with_path_hint(std::move(error)) : error);
  }
  const methods::MethodInfo& info = methods::find_method(place != nullptr ? method_name(*place, *name) : *name);
  try {
    std::vector<methods::Assignment> settings = name->assignments();
    for (methods::Assignment& setting : settings) {
      if (place != nullptr) setting = setting_of(*place, info, setting);
    }
    return {&info, std::move(settings)};
  } catch (const Error& error) {
    throw Error("{}: {}", item_text(text, place), error.what());
  }
}

std::string method_beside(const std::string& path, const methods::MethodInfo& info, const methods::Params& params) {
  methods::MethodName name = methods::parse_method_name(info.name);
  if (!name.file.empty()) name = name.with_file(file_beside(path, name.file));
  std::string settings;
  for (const methods::Assignment& setting : methods::parse_settings(params.text())) {
    const std::string value = names_file(info, setting) ? file_beside(path, setting.value) : setting.value;
    settings += fmt::format("{}{}={}", settings.empty() ? "" : ",", setting.name, value);
  }
  if (!settings.empty()) name.settings = std::move(settings);
  return name.text();
}

}  // namespace kvbench::config
