// SPDX-License-Identifier: Apache-2.0
// The columns that tables of replays and of evaluations share: what a row is about, and what it costs.
#pragma once

#include <cmath>
#include <utility>
#include <vector>

#include <kvbench/methods/engines.hpp>
#include <kvbench/replay/records/row.hpp>
#include <kvbench/report/columns/column.hpp>

namespace kvbench::report {

template <class Row>
class SharedColumns {
 public:
  using Has = bool (*)(const Row&);
  std::vector<Column<Row>> list;

  void add(std::initializer_list<Column<Row>> columns) { list.insert(list.end(), columns); }
  /// A column that tells rows apart.
  void identity(Tells what, Column<Row> column) {
    column.tells = what;
    list.push_back(std::move(column));
  }
  void configuration() {
    using Identity = replay::RowIdentity;
    identity(Tells::configuration, {"method", "name in the registry", of(&Identity::method), "text"});
    identity(Tells::configuration,
             {"params", "parameters that differ from their defaults", of(&Identity::params), "text"});
    identity(Tells::configuration, {"budget", "budget as given", of(&Identity::budget), "text"});
    add({{"runs_in",
          "engines that run this today, with their settings, which neither protect tokens nor leave layers dense; "
          "empty: none that kvbench knows",
          printed<Row>([](const Row& r) {
            return methods::runs_in(r.method, r.params, r.budget_tokens, static_cast<double>(r.context_tokens));
          }),
          "text"}});
  }
  void channels() {
    add({{"rope_layout",
          "order of the channels that formats round: half or interleaved, the pairs of the rotary embedding; empty "
          "where the model has none, or it was not measured",
          value_where<Row>(always, &replay::RowIdentity::rope_layout), "text"}});
  }
  void status(const char* reason) {
    add({{"status", "ok, skipped, failed or infeasible", of(&replay::RowIdentity::status), "text"},
         {"reason", reason, of(&replay::RowIdentity::reason), "text"}});
  }

  void number(const char* key, const char* unit, const char* doc, Value<Row> value) {
    list.push_back({key, doc, std::move(value), "number", unit});
  }
  /// The number of tokens that a budget means, and of entries that answer. `has`: whether a row has costs;
  /// `budget_needed`: whether a table without the former is not read.
  void tokens(Has has, bool budget_needed) {
    number("budget_tokens", "tokens", "the budget in tokens", value_where<Row>(has, &replay::Costs::budget_tokens));
    list.back().value.needed = budget_needed;
    number("kept_tokens", "tokens", "entries that answer a query, without those that the harness keeps exactly",
           value_where<Row>(has, &replay::Costs::kept_tokens));
  }
  void held(Has has, const char* keys_and_values) {
    part("kv_bytes", keys_and_values, has, &replay::Bytes::kv);
    part("meta_bytes", "weights, counts, ids, centroids, bounds held, mean per kv head", has, &replay::Bytes::meta);
    number("total_bytes", "B", "kv_bytes + meta_bytes", needed(total_bytes(has)));
    part("full_bytes", "the exact cache of the same tokens: context, protected ones included, and decoded ones", has,
         &replay::Bytes::full);
    list.back().value.needed = true;
  }
  void moved(Has has) {
    part("fast_bytes", "part of total_bytes in the fast memory of the processor", has, &replay::Bytes::fast);
    part("slow_bytes", "part of total_bytes in slower memory (the full cache of retrieval methods)", has,
         &replay::Bytes::slow);
    part("bytes_read", "bytes that one query of a kv head reads, over all its query heads", has, &replay::Bytes::read);
  }

 private:
  template <class T>
  static Value<Row> of(T replay::RowIdentity::*member) {
    return needed(value_where<Row>(always, member));
  }
  void part(const char* key, const char* doc, Has has, double replay::Bytes::*field) {
    number(key, "B", doc,
           value_where<Row>(
               has, [field](auto& r) -> auto& { return r.bytes.*field; }));
  }
  /// The bytes that are held. Two other columns have its parts; a table that lacks them is read as one with `kv` alone.
  static Value<Row> total_bytes(Has has) {
    Value<Row> total = value_where<Row>(has, [](const Row& r) { return r.bytes.of(CostKind::memory); });
    total.parse = [](Row& r, const CsvCell& cell) {
      if (std::isnan(r.bytes.of(CostKind::memory))) r.bytes.kv = cell.number(), r.bytes.meta = 0;
    };
    return total;
  }
};

}  // namespace kvbench::report
