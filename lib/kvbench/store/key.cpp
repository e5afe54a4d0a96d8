// SPDX-License-Identifier: Apache-2.0
#include <kvbench/store/key.hpp>

#include <algorithm>
#include <filesystem>
#include <iterator>
#include <sstream>
#include <string_view>

#include <fmt/format.h>

#include <kvbench/core/version.hpp>
#include <kvbench/methods/contract/layer_plan.hpp>
#include <kvbench/methods/find_method.hpp>
#include <kvbench/trace/sha256.hpp>

namespace kvbench::store {
namespace {

/// A value of a method in Python without the escapes of python/kvbench/methods/parameters.py, such as %2C for a comma.
std::string without_escapes(const std::string& value) {
  constexpr std::string_view digits = "0123456789ABCDEF";
  std::string out;
  for (std::size_t i = 0; i < value.size(); ++i) {
    const std::size_t high = i + 2 < value.size() ? digits.find(value[i + 1]) : digits.npos;
    const std::size_t low = i + 2 < value.size() ? digits.find(value[i + 2]) : digits.npos;
    const bool escape = value[i] == '%' && high != digits.npos && low != digits.npos;
    out += escape ? static_cast<char>(16 * high + low) : value[i];
    if (escape) i += 2;
  }
  return out;
}

bool is_file(const methods::MethodInfo& method, const std::string& parameter, const std::string& value) {
  const auto spec = std::ranges::find(method.params, parameter, &methods::ParamSpec::name);
  return spec != method.params.end() && spec->names_file(value);
}

}  // namespace

std::vector<NamedFile> files_of_method(const methods::MethodInfo& method, const std::string& params) {
  std::vector<NamedFile> files;
  const methods::MethodName name = methods::parse_method_name(method.name);
  const bool python = name.origin == methods::Origin::python;
  if (!name.file.empty()) {
    const char* what = python ? "a method in Python" : name.origin == methods::Origin::plan ? "a plan" : "scores";
    files.push_back({fmt::format("the file of {}", what), name.file});
  }
  if (name.origin == methods::Origin::plan) {
    const methods::Params lines = method.bind({});
    for (const methods::PlannedBudget& plan : lines.as<methods::LayerPlan>().budgets) {
      for (const auto& [place, of] : plan.lines)
        std::ranges::move(files_of_method(*of.info, of.params.text()), std::back_inserter(files));
    }
  }
  std::istringstream settings(params);
  for (std::string setting; std::getline(settings, setting, ';');) {
    const std::size_t equals = setting.find('=');
    const std::string text = setting.substr(equals + 1), value = python ? without_escapes(text) : text;
    std::error_code none;
    if (is_file(method, setting.substr(0, equals), value) && std::filesystem::is_regular_file(value, none))
      files.push_back({fmt::format("a file that {} reads", method.name), value});
  }
  return files;
}

std::string key_of_bytes(std::string_view bytes) {
  return trace::Sha256().add(fmt::format("{} {} {}", version(), commit(), bytes)).hex();
}

MethodInputs inputs_of(const methods::MethodInfo& method, const std::string& params) {
  MethodInputs inputs{method.name, params, {}};
  for (const NamedFile& file : files_of_method(method, params)) {
    const std::string ran = methods::source_sha256(file.path);
    inputs.files += " " + (ran.empty() ? trace::sha256_of_file(file.path) : ran);
  }
  return inputs;
}

}  // namespace kvbench::store
