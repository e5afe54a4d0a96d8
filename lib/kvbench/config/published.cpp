// SPDX-License-Identifier: Apache-2.0
#include <kvbench/config/published.hpp>

#include <algorithm>
#include <charconv>

#include <kvbench/compare/configuration_name.hpp>
#include <kvbench/config/named_files.hpp>
#include <kvbench/config/run_keys.hpp>

namespace kvbench::config {
namespace {

/// The items of a list of tables; `example` is one of them.
const std::vector<Value>& tables_of(const Member& member, const char* example) {
  const Value& list = member.value;
  if (list.kind != Value::Kind::list)
    fail_at(list.place, "'{}' takes a list of tables, not {}", member.key, describe(list));
  for (const Value& item : list.items) {
    if (item.kind != Value::Kind::table) fail_at(item.place, "'{}' takes tables such as {}", member.key, example);
  }
  return list.items;
}

double number_of(const Member& member) {
  const std::string& text = member.value.text;
  double number = 0;
  const bool is_number = member.value.kind == Value::Kind::integer || member.value.kind == Value::Kind::number;
  if (is_number && std::from_chars(text.data(), text.data() + text.size(), number).ec == std::errc{}) return number;
  fail_at(member.value.place, "'{}' takes a number, not {}", member.key, describe(member.value));
}

Index tokens_of(const Member& member) {
  const double number = number_of(member);
  if (number >= 1 && number <= 1e9 && number == std::floor(number)) return static_cast<Index>(number);
  fail_at(member.value.place, "'{}' takes a number of tokens, not {}", member.key, describe(member.value));
}

/// The value of an enumeration 0 .. last that has this name.
template <class E>
E named(const Member& member, E last) {
  std::vector<std::string> names;
  for (int i = 0; i <= static_cast<int>(last); ++i) {
    names.emplace_back(name_of(static_cast<E>(i)));
    if (names.back() == text_of(member)) return static_cast<E>(i);
  }
  std::string all;
  for (const std::string& name : names) all += (all.empty() ? "\"" : ", \"") + name + "\"";
  fail_at(member.value.place, "'{}' takes one of {}, not {}", member.key, all, describe(member.value));
}

void check_names(const Value& table, const compare::Relation& relation, const std::vector<SweepRun>& runs) {
  const std::vector<compare::QueryConfiguration> known = configurations(runs, relation.run);
  for (const Member& member : table.members) {
    if (member.key == "run" && std::ranges::find(runs, relation.run, &SweepRun::name) == runs.end())
      fail_at(member.value.place, "there is no run '{}' in this file", relation.run);
  }
  for (const Member& member : table.members) {
    if (member.key != "a" && (member.key != "b" || relation.b.empty())) continue;
    with_place(member.value.place, [&] {
      resolved(compare::parse_configuration(member.key == "a" ? relation.a : relation.b, member.key), known,
               member.key);
    });
  }
}

/// A configuration, whose files are relative to the folder of the sweep file.
std::string configuration_of(const Member& member) {
  const Place& place = member.value.place;
  return with_place(place, [&] {
    const compare::ConfigurationName named = compare::parse_configuration(text_of(member), member.key);
    if (named.file) throw Error("'{}' has the number of a file; name a run with run = \"NAME\"", text_of(member));
    methods::MethodName method = method_name(place, methods::parse_method_name(named.method));
    if (named.params) method.settings = settings_of(place, method.name(), *named.params);
    return method.text() + (named.budget ? "@" + *named.budget : "");
  });
}

compare::Relation read_relation(const Value& table, const std::vector<SweepRun>& runs) {
  compare::Relation out;
  bool is = false;
  for (const Member& member : table.members) {
    if (member.key == "run") {
      out.run = text_of(member);
    } else if (member.key == "a") {
      out.a = configuration_of(member);
    } else if (member.key == "is") {
      out.kind = named(member, compare::Relation::Kind::equal);
      is = true;
    } else if (member.key == "b" && member.value.kind == Value::Kind::text) {
      out.b = configuration_of(member);
    } else if (member.key == "b") {
      out.number = number_of(member);
    } else if (member.key == "within") {
      out.within = number_of(member);
    } else if (member.key == "by") {
      out.by = named(member, compare::Span::all);
    } else if (member.key == "tokens") {
      out.tokens = tokens_of(member);
    } else if (member.key == "below") {
      out.below = text_of(member);
    } else {
      reject_key(member, {"run", "a", "is", "b", "within", "by", "tokens", "below"}, "a relation");
    }
  }
  if ((out.tokens > 0) != !out.below.empty())
    fail_at(table.place, "'tokens', the fewest of a budget, and 'below', why a test needs them, stand together");
  if (out.a.empty() || !is || (out.b.empty() && std::isnan(out.number)))
    fail_at(table.place, "a relation needs 'a', 'is' and 'b'");
  const bool tolerant = out.kind == compare::Relation::Kind::at_least || out.kind == compare::Relation::Kind::equal;
  if (!(out.within >= 0 && out.within < 1) || (out.within > 0 && !tolerant) ||
      (out.within == 0 && out.kind == compare::Relation::Kind::equal)) {
    fail_at(table.place, "'within' is a share of b below 1, which \"equal\" needs and \"at least\" may have");
  }
  check_names(table, out, runs);
  return out;
}

/// The metric behind a column of means, such as rel_err_mean, or kl_predicted.
replay::MetricInfo metric_of(const Published& published) {
  const std::string suffix = "_mean";
  const bool mean = published.metric.ends_with(suffix);
  const auto metric =
      compare::find_query_metric(published.metric.substr(0, published.metric.size() - (mean ? suffix.size() : 0)));
  if (!metric || is_prediction(*metric) == mean)
    fail_at(published.place,
            "relations need the mean of a metric with values per query, such as metric = \"rel_err_mean\", or "
            "\"kl_predicted\", not '{}'",
            published.metric);
  const auto of_part = [](const compare::Relation& r) { return r.by < compare::Span::prompt; };
  if (is_prediction(*metric) && std::ranges::any_of(published.claim.relations, of_part))
    fail_at(published.place, "{} is of all layers of a text together; state relations by \"prompt\", or over all",
            metric->name);
  return *metric;
}

/// The columns of a claim: one, or a list.
std::vector<std::string> columns_of(const Member& member) {
  if (member.value.kind != Value::Kind::list) return {text_of(member)};
  std::vector<std::string> columns;
  for (const Value& item : member.value.items) columns.push_back(text_of(Member{member.key, item.place, item}));
  if (columns.empty()) fail_at(member.value.place, "'{}' is an empty list", member.key);
  return columns;
}

void check(const Published& out) {
  const bool tested = !out.claim.relations.empty(), untested = !out.claim.untestable.empty();
  if (out.claim.text.empty() || out.metric.empty())
    fail_at(out.place, "a block [[published]] needs 'claim' and 'metric'");
  if (tested == untested) {
    fail_at(out.place,
            "a block [[published]] needs either 'relations', which state what the claim says of results, or "
            "'untestable', the reason why they cannot show it");
  }
  if (untested && out.rows.empty()) fail_at(out.place, "a block [[published]] without relations needs 'rows'");
}

/// The claim by each of these columns; where there are several, text and id name them.
std::vector<Published> claims_by(const Published& published, const std::vector<std::string>& columns) {
  std::vector<Published> claims;
  for (const std::string& column : columns) {
    Published& one = claims.emplace_back(published);
    one.metric = column;
    check(one);
    if (!one.claim.relations.empty()) one.claim.metric = metric_of(one);
    if (columns.size() == 1) continue;
    one.claim.text += ", by " + column;
    if (!one.claim.id.empty()) one.claim.id += "." + column;
  }
  return claims;
}

}  // namespace

std::vector<Published> read_published(const Value& table, const std::vector<SweepRun>& runs) {
  Published out{.place = table.place};
  std::vector<std::string> columns = {""};
  for (const Member& member : table.members) {
    if (member.key == "id") {
      out.claim.id = text_of(member);
    } else if (member.key == "claim") {
      out.claim.text = text_of(member);
    } else if (member.key == "paper") {
      out.paper = text_of(member);
    } else if (member.key == "metric") {
      columns = columns_of(member);
    } else if (member.key == "why") {
      out.why = text_of(member);
    } else if (member.key == "untestable") {
      out.claim.untestable = text_of(member);
    } else if (member.key == "rows") {
      for (const Value& item : tables_of(member, "{ method = \"uniform\" }")) out.rows.push_back(read_row(item, runs));
    } else if (member.key == "relations") {
      for (const Value& item : tables_of(member, "{ a = \"snapkv\", is = \"lower\", b = \"sink\" }"))
        out.claim.relations.push_back(read_relation(item, runs));
    } else {
      reject_key(member, {"id", "claim", "paper", "metric", "relations", "untestable", "rows", "why"},
                 "a block [[published]]");
    }
  }
  return claims_by(out, columns);
}

}  // namespace kvbench::config
