// SPDX-License-Identifier: Apache-2.0
#include <kvbench/report/read/labels.hpp>

#include <algorithm>
#include <map>

#include <kvbench/compare/configuration_name.hpp>
#include <kvbench/core/error.hpp>
#include <kvbench/core/name.hpp>
#include <kvbench/methods/find_method.hpp>
#include <kvbench/methods/registry.hpp>
#include <kvbench/report/read/table_kind.hpp>
#include <kvbench/report/text/text.hpp>

namespace kvbench::report {
namespace {

constexpr const char* label_flag = "--label";

/// Where the = before the text is: behind the brackets.
std::size_t equals_sign(const std::string& item) {
  const std::size_t close = item.find("]=");
  return close != item.npos ? close + 1 : item.find('=');
}

}  // namespace

Labels::Labels(const std::vector<std::string>& items) {
  for (const std::string& item : items) {
    const std::size_t at = equals_sign(item);
    const auto method = at == item.npos ? std::nullopt : methods::parse_method_text(item.substr(0, at));
    std::string text = at == item.npos ? "" : item.substr(at + 1);
    if (!method || method->name().empty() || text.empty())
      throw Error("{} '{}': write METHOD=TEXT, such as ./mine.py:farmean=FarMean", label_flag, item);
    check_name(text, fmt::format("{} '{}'", label_flag, item));
    if (std::ranges::find(labels_, text, &Label::text) != labels_.end())
      throw Error("{}: '{}' is the text of two methods, which nobody could tell apart", label_flag, text);
    labels_.push_back({{{}, method->name(), method->settings, {}}, std::move(text)});
  }
  std::ranges::stable_sort(labels_, {}, [](const Label& label) { return !label.of.params; });
}

/// The labels for rows of known methods.
class Labels::Renamer {
 public:
  Renamer(std::vector<Label> labels, const std::vector<std::string>& known)
      : labels_(std::move(labels)), used_(labels_.size(), false) {
    for (Label& label : labels_) {
      label.of.method = compare::method_meant(label.of.method, known, label_flag);
      if (compare::is_baseline(label.of.method))
        throw Error("{}: {} is a reference, which keeps its name", label_flag, label.of.method);
      const bool other = label.text != label.of.method && std::ranges::find(known, label.text) != known.end();
      if (other || std::ranges::find(methods::all_methods(), label.text, &methods::MethodInfo::name) !=
                       methods::all_methods().end())
        throw Error("{}: '{}' is the name of another method", label_flag, label.text);
    }
  }

  void rename(std::string& method, std::string& params) {
    const compare::QueryConfiguration was{method, params, {}};
    for (std::size_t i = 0; i < labels_.size(); ++i) {
      if (!matches(labels_[i].of, was)) continue;
      used_[i] = true;
      methods::show_as(labels_[i].text, was.method, labels_[i].of.params ? was.params : "");
      method = labels_[i].text;
      if (labels_[i].of.params) params.clear();
      return;
    }
  }
  void rename(std::string& label) {
    compare::QueryConfiguration one = compare::configuration_of(label);
    rename(one.method, one.params);
    label = label_of(one);
  }
  void finish(const std::vector<std::string>& known) const {
    for (std::size_t i = 0; i < labels_.size(); ++i) {
      const std::string& name = labels_[i].of.method;
      if (!used_[i])
        throw Error("{}: no row is of '{}'.{} The rows are of {}.", label_flag,
                    compare::label_of({name, labels_[i].of.params.value_or(""), {}}), did_you_mean(name, known),
                    listed(known));
    }
  }

 private:
  std::vector<Label> labels_;
  std::vector<bool> used_;
};

template <class Row>
void Labels::apply_to(std::vector<Row>& rows) const {
  if (labels_.empty()) return;
  DistinctTexts known;
  for (const Row& r : rows) known.add(r.method);
  Renamer renamer(labels_, known.list());
  for (Row& r : rows) {
    renamer.rename(r.method, r.params);
    if constexpr (requires { r.best; }) renamer.rename(r.best);
  }
  renamer.finish(known.list());
}

void Labels::apply(std::vector<replay::Record>& rows) const { apply_to(rows); }
void Labels::apply(std::vector<eval::EvalRecord>& rows) const { apply_to(rows); }

std::vector<compare::QueryConfiguration> Labels::shown(std::span<const replay::MethodChoice> methods) const {
  std::vector<compare::QueryConfiguration> rows;
  for (const replay::MethodChoice& choice : methods)
    rows.push_back({.method = choice.info->name, .params = choice.params.text(), .budget = {}});
  apply_to(rows);
  return rows;
}

void Labels::apply(std::vector<compare::Comparison>& rows) const {
  if (labels_.empty()) return;
  DistinctTexts known;
  for (const compare::Comparison& r : rows) {
    for (const std::string& side : {r.a, r.b}) known.add(compare::configuration_of(side).method);
  }
  Renamer renamer(labels_, known.list());
  for (compare::Comparison& r : rows) renamer.rename(r.a), renamer.rename(r.b);
  renamer.finish(known.list());
}

void Labels::apply(std::vector<CsvTable>& tables,
                   std::span<std::vector<compare::QueryConfiguration>* const> raw) const {
  if (labels_.empty()) return;
  DistinctTexts known;
  for (const CsvTable& table : tables) {
    for (const CsvRow& row : table.rows) {
      if (table.has("params")) known.add(table.text(row, "method"));
    }
  }
  Renamer renamer(labels_, known.list());
  for (CsvTable& table : tables) {
    const auto method = table.find("method"), params = table.find("params");
    for (CsvRow& row : table.rows) {
      if (method && params) renamer.rename(row.cells[*method], row.cells[*params]);
      for (const char* column : {"best", "a", "b"}) {
        if (const auto at = table.find(column)) renamer.rename(row.cells[*at]);
      }
    }
  }
  for (std::vector<compare::QueryConfiguration>* configurations : raw) {
    for (compare::QueryConfiguration& one : *configurations) renamer.rename(one.method, one.params);
  }
  renamer.finish(known.list());
}

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
