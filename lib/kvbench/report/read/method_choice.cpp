// SPDX-License-Identifier: Apache-2.0
#include <kvbench/report/read/method_choice.hpp>

#include <algorithm>
#include <map>

#include <kvbench/compare/configuration_name.hpp>
#include <kvbench/core/error.hpp>
#include <kvbench/core/name.hpp>
#include <kvbench/methods/registry.hpp>
#include <kvbench/report/read/table_kind.hpp>
#include <kvbench/report/text/text.hpp>

namespace kvbench::report {
namespace {

bool has_methods(const CsvTable& table) {
  const TableKind kind = kind_of(table);
  return kind == TableKind::replay || kind == TableKind::evaluations;
}

/// The distinct methods of the tables, in order of appearance.
std::vector<std::string> methods_of(const std::vector<CsvTable>& tables) {
  DistinctTexts out;
  for (const CsvTable& table : tables) {
    for (const CsvRow& row : table.rows) {
      if (has_methods(table)) out.add(table.text(row, "method"));
    }
  }
  return out.list();
}

compare::ConfigurationName chosen(const std::string& name, std::span<const std::string> known) {
  const std::optional<methods::MethodName> text = methods::parse_method_text(name);
  if (!text || text->name().empty())
    throw Error("--method '{}': write METHOD or METHOD[PARAMS], such as subgen[t=4]", name);
  return {.method = compare::method_meant(text->name(), known, "--method"), .params = text->settings, .budget = {}};
}

}  // namespace

void keep_methods(std::vector<CsvTable>& tables, const std::vector<std::string>& names) {
  std::vector<compare::ConfigurationName> all;
  const std::vector<std::string> methods = methods_of(tables);
  for (const std::string& name : names) all.push_back(chosen(name, methods));
  std::vector<bool> found(all.size(), false);
  DistinctTexts known;
  std::map<std::pair<std::string, std::string>, bool> kept;  // by method and parameters
  const auto is_kept = [&](const CsvTable& table, const CsvRow& row) {
    const compare::QueryConfiguration one{table.text(row, "method"), table.text(row, "params"), {}};
    const auto [at, fresh] = kept.emplace(std::pair(one.method, one.params), false);
    if (!fresh) return at->second;
    known.add(one.method);
    known.add(compare::label_of(one));
    for (std::size_t i = 0; i < all.size(); ++i) {
      if (matches(all[i], one) || same_name(methods::family_of(one.method), names[i])) found[i] = at->second = true;
    }
    return at->second;
  };
  for (CsvTable& table : tables) {
    if (has_methods(table)) std::erase_if(table.rows, [&](const CsvRow& row) { return !is_kept(table, row); });
  }
  for (std::size_t i = 0; i < all.size(); ++i) {
    if (!found[i])
      throw Error("--method {}: no row is of this method.{} The rows are of {}.", names[i],
                  did_you_mean(names[i], known.list()), listed(known.list()));
  }
  std::erase_if(tables, [](const CsvTable& table) { return table.rows.empty(); });
}

}  // namespace kvbench::report
