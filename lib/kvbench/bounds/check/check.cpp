// SPDX-License-Identifier: Apache-2.0
#include <kvbench/bounds/check/check.hpp>

#include <algorithm>

namespace kvbench::bounds {

TwoWayTest decide_between(double p_for, double p_against) {
  return {.p_value = std::min(1.0, 2 * std::min(p_for, p_against)), .holds = p_for < p_against};
}

CheckRow& CheckContext::law(const Statement& statement, double p_value, const std::string& text, double ratio) {
  const double exact = std::isnan(ratio) ? NAN : 1;
  CheckRow& row = add(CheckKind::law, statement, text, {.measured = ratio, .bound = exact});
  row.p_value = p_value > 1 ? 1 : p_value;
  return row;
}

CheckRow& CheckContext::claim(const Statement& statement, const TwoWayTest& test, const std::string& text,
                              const Figures& figures) {
  CheckRow& row = add(CheckKind::claim, statement, text, figures);
  row.p_value = test.p_value, row.holds = test.holds, row.p_least = test.p_least;
  row.units = test.units, row.units_needed = test.units_needed, row.over_places = test.over_places;
  return row;
}

CheckRow& CheckContext::add(CheckKind kind, const Statement& statement, const std::string& text, const Figures& figures,
                            const Failures& failures) {
  CheckRow& row = rows.emplace_back();
  row.check = check;
  row.kind = kind;
  row.part = statement.part, row.params = statement.params, row.text = text;
  if (subject != nullptr) {
    row.source = subject->source;
    row.prompt = subject->prompt;
    row.layer = subject->head.layer.value;
    row.kv_head = subject->head.head.value;
  } else if (reader != nullptr) {
    row.source = reader->path().substr(reader->path().find_last_of('/') + 1);
  }
  row.measured = figures.measured, row.bound = figures.bound, row.measured_q99 = figures.measured_q99;
  row.literal = figures.literal, row.tight = figures.tight, row.data = figures.data, row.trivial = figures.trivial;
  if (!std::isnan(failures.allowed)) row.failures = failures.count, row.trials = failures.trials;
  row.allowed = failures.allowed;
  return row;
}

}  // namespace kvbench::bounds
