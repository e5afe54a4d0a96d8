// SPDX-License-Identifier: Apache-2.0
#include <kvbench/config/published.hpp>

#include <algorithm>
#include <set>

#include <fmt/ranges.h>

#include <kvbench/compare/configuration_name.hpp>
#include <kvbench/config/named_files.hpp>
#include <kvbench/config/run_keys.hpp>
#include <kvbench/core/name.hpp>

namespace kvbench::config {
namespace {

/// Columns, and what results have there: texts in quotes, and whole numbers.
const std::pair<std::string, std::string> column_texts[] = {
    {"layer", "a whole number or 'all'"},    {"kv_head", "a whole number or 'all'"},
    {"head", "a whole number or 'all'"},     {"query", "a whole number or 'all'"},
    {"seed", "a whole number, 'all' or ''"}, {"protocol", "'prefill', 'decode' or 'stream'"},
    {"device", "'cpu', 'ref' or 'cuda'"},    {"status", "'ok', 'skipped', 'failed' or 'infeasible'"},
    {"array", "'keys', 'values' or 'both'"},
};

void check_text(const Member& column, const std::string& text) {
  const bool number = !text.empty() && text.find_first_not_of("0123456789") == text.npos;
  // rows name the model of a GPU too: cuda (MODEL)
  const std::string name = column.key == "device" ? text.substr(0, text.find(" (")) : text;
  for (const auto& [known, texts] : column_texts) {
    if (known == column.key && !(number && texts.starts_with("a whole")) && texts.find("'" + name + "'") == texts.npos)
      fail_at(column.value.place, "'{}' takes {}, not {}", known, texts, describe(column.value));
  }
}

/// A row; its texts become those of results.
class RowOfRuns {
 public:
  RowOfRuns(const Value& table, const std::vector<SweepRun>& runs) {
    for (const Member& column : table.members) add(column);
    if (find("method") && find("measure"))
      fail_at(table.place, "a row is of a method or of a measure; leave one of them out");
    if (const Text* run = find("run"); run && std::ranges::find(runs, run->text, &SweepRun::name) == runs.end())
      fail_at(*run->place, "there is no run '{}' in this file", run->text);
    limit("prompt", runs, [](const SweepRun& run) { return run.request.prompts; });
    limit("layer", runs, [](const SweepRun& run) { return run.request.layers; });
    limit("kv_head", runs, [](const SweepRun& run) { return run.request.kv_heads; });
    limit("protocol", runs, [](const SweepRun& run) {
      std::vector<std::string> names;
      for (const replay::Protocol one : run.protocols) names.emplace_back(name_of(one));
      return names;
    });
    const auto measured = [&](const SweepRun& run) { return has(run, find("measure")->text); };
    if (const Text* one = find("measure"); one && std::ranges::none_of(runs, measured))
      fail_at(*one->place, "no run has the measure '{}'", one->text);
    bind(runs);
  }

  std::vector<std::pair<std::string, std::string>> row() const {
    std::vector<std::pair<std::string, std::string>> out;
    for (const Text& one : texts_) out.emplace_back(one.column, one.text);
    return out;
  }

 private:
  struct Text {
    std::string column, text;
    const Place* place;
  };

  void add(const Member& column) {
    const Value& value = column.value;
    reject_other_key(column);
    if (value.kind == Value::Kind::list || value.kind == Value::Kind::table)
      fail_at(value.place, "'{}' takes a value, not {}", column.key, describe(value));
    std::string text = value.kind == Value::Kind::number ? fmt::format("{}", std::stod(value.text)) : value.text;
    check_text(column, text);
    if (column.key == "method") text = method_name(value.place, methods::parse_method_name(text)).name();
    texts_.push_back({column.key, std::move(text), &value.place});
  }

  static void reject_other_key(const Member& column) {
    static const std::vector<std::string> keys = {"run",  "trace", "sha256",   "model",   "prompt", "layer",  "kv_head",
                                                  "head", "query", "protocol", "device",  "method", "params", "budget",
                                                  "seed", "dense", "status",   "measure", "array",  "x",      "paper"};
    if (std::ranges::find(keys, column.key) == keys.end()) reject_key(column, keys, "a row");
  }

  /// `known`: what the runs have in the column of this text, in quotes.
  static void refuse(const Text& given, const std::set<std::string>& known) {
    fail_at(*given.place, "no run has the {} '{}' here; there is {}", given.column, given.text, fmt::join(known, ", "));
  }

  /// Refuses a text that no run has in this column. `of_run`: those of a run; none or `auto`: any.
  void limit(const char* column, const std::vector<SweepRun>& runs, auto of_run) {
    const Text* given = find(column);
    if (!given || given->text == "all") return;
    std::set<std::string> known;
    for (const SweepRun& run : runs) {
      if (find("run") && find("run")->text != run.name) continue;
      const auto texts = of_run(run);
      if (texts.empty()) return;
      for (const auto& text : texts) known.insert(fmt::format("'{}'", text));
    }
    if (!known.contains(fmt::format("'{}'", given->text)) && !known.contains("'auto'")) refuse(*given, known);
  }

  Text* find(std::string_view column) {
    const auto found = std::ranges::find(texts_, column, &Text::column);
    return found == texts_.end() ? nullptr : &*found;
  }

  bool has(const SweepRun& run, const std::string& measure) {
    const auto named = [&](measures::Measure one) { return measures::name_of(one) == measure; };
    return (!find("run") || find("run")->text == run.name) && std::ranges::any_of(run.measures, named);
  }

  /// Method, parameters and budget are those of configurations of the runs, and are written as these are.
  void bind(const std::vector<SweepRun>& runs) {
    std::vector<compare::QueryConfiguration> left = configurations(runs, find("run") ? find("run")->text : "");
    const auto narrow = [&](const char* column, auto fits, auto written) {
      Text* given = find(column);
      if (!given) return;
      std::set<std::string> known;
      for (const compare::QueryConfiguration& one : left) known.insert(fmt::format("'{}'", written(one)));
      std::erase_if(left, [&](const auto& one) { return !fits(one, given->text); });
      if (left.empty()) refuse(*given, known);
      given->text = written(left.front());
    };
    using Configuration = compare::QueryConfiguration;
    narrow(
        "method", [](const Configuration& c, const std::string& text) { return same_name(c.method, text); },
        [](const Configuration& c) { return c.method; });
    if (Text* params = find("params")) {
      if (!find("method")) fail_at(*params->place, "'params' stands beside the 'method' that has them");
      params->text =
          with_place(*params->place, [&] { return settings_of(*params->place, find("method")->text, params->text); });
    }
    narrow(
        "params",
        [](const Configuration& c, const std::string& text) {
          return matches({{}, c.method, text, {}}, c);
        },
        [](const Configuration& c) { return c.params; });
    narrow(
        "budget",
        [](const Configuration& c, const std::string& text) {
          const std::optional<Budget> budget = Budget::find(text);
          return budget && budget->text() == c.budget.text();
        },
        [](const Configuration& c) { return c.budget.text(); });
  }

  std::vector<Text> texts_;
};

}  // namespace

std::vector<compare::QueryConfiguration> configurations(const std::vector<SweepRun>& runs, const std::string& name) {
  std::vector<compare::QueryConfiguration> all;
  for (const SweepRun& run : runs) {
    if (!name.empty() && run.name != name) continue;
    for (const replay::MethodChoice& method : run.request.methods) {
      for (const Budget& budget : run.request.budgets) {
        all.push_back({.method = method.info->name, .params = method.params.text(), .budget = budget});
      }
    }
  }
  return all;
}

std::string settings_of(const Place& place, const std::string& method, const std::string& params) {
  std::string settings;
  for (const methods::Assignment& given : methods::parse_settings(params)) {
    const methods::Assignment setting = setting_of(place, methods::find_method(method), given);
    settings += fmt::format("{}{}={}", settings.empty() ? "" : ",", setting.name, setting.value);
  }
  return settings;
}

std::vector<std::pair<std::string, std::string>> read_row(const Value& table, const std::vector<SweepRun>& runs) {
  return RowOfRuns(table, runs).row();
}

}  // namespace kvbench::config
