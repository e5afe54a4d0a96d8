// SPDX-License-Identifier: Apache-2.0
#include <kvbench/report/columns/tables.hpp>

#include <fmt/format.h>

#include <kvbench/report/columns/shared.hpp>

namespace kvbench::report {
namespace {

using eval::EvalRecord;
using EvalColumn = Column<EvalRecord>;

/// A value that only rows with status ok have.
template <class F>
Value<EvalRecord> where_passed(F of) {
  return value_where<EvalRecord>([](const EvalRecord& r) { return r.status == replay::Status::ok; }, of);
}

/// The same of rows over all layers.
bool is_over_layers(const EvalRecord& r) { return r.status == replay::Status::ok && !r.layer; }
template <class F>
Value<EvalRecord> over_layers(F of) {
  return value_where<EvalRecord>(is_over_layers, of);
}

/// The layer of an injection; -1 for none.
Value<EvalRecord> injected_layer() {
  return {
      .print = [](const EvalRecord& r) { return r.injection.layer < 0 ? "" : value_text(r.injection.layer); },
      .parse = [](EvalRecord& r, const CsvCell& cell) { r.injection.layer = cell.text.empty() ? -1 : cell.count(); }};
}

/// Tables of earlier versions lack it.
Value<EvalRecord> injected_share() {
  return {.print = [](const EvalRecord& r) { return value_text(r.injection.scale); },
          .parse =
              [](EvalRecord& r, const CsvCell& cell) {
                const double share = cell.text.empty() ? 1 : cell.number();
                if (!(share > 0 && share <= 1)) cell.refuse("a share above 0 and at most 1");
                r.injection.scale = share;
              }};
}

Value<EvalRecord> document_seed() {
  return needed(Value<EvalRecord>{
      .print =
          [](const EvalRecord& r) { return r.settings.document_seed ? value_text(*r.settings.document_seed) : ""; },
      .parse =
          [](EvalRecord& r, const CsvCell& cell) {
            r.settings.document_seed.reset();
            if (!cell.text.empty()) parse_value(cell, r.settings.document_seed.emplace());
          }});
}

Value<EvalRecord> protocol() {
  return {.print =
              [](const EvalRecord& r) {
                return r.settings.protocol == eval::EvalProtocol() ? "" : r.settings.protocol.text();
              },
          .parse =
              [](EvalRecord& r, const CsvCell& cell) {
                r.settings.protocol = {};
                try {
                  if (!cell.text.empty()) r.settings.protocol = eval::EvalProtocol::parse(cell.text);
                } catch (const Error&) {
                  cell.refuse("stream, compress and when, or empty");
                }
              }};
}

/// Tables of earlier versions lack it.
Value<EvalRecord> turn() {
  return {.print = [](const EvalRecord& r) { return r.turn == 0 ? "" : value_text(r.turn); },
          .parse = [](EvalRecord& r, const CsvCell& cell) { r.turn = cell.text.empty() ? 0 : cell.count(); }};
}

template <class T>
Value<EvalRecord> of_settings(T eval::EvalSettings::*value) {
  return needed(value_where<EvalRecord>(
      always, [value](auto& r) -> auto& { return r.settings.*value; }));
}

class EvalColumns : public SharedColumns<EvalRecord> {
 public:
  using SharedColumns::number;
  void number(const char* key, const std::string& doc, double EvalRecord::*value, replay::Limits limits) {
    list.push_back({key, doc, over_layers(value), "number"});
    list.back().limits = limits;
  }
  void count(const char* key, const char* doc, Index EvalRecord::*value) {
    list.push_back({key, doc, over_layers(value), "integer"});
  }
  /// What tells rows apart.
  template <class F>
  void text(Tells what, const char* key, const char* doc, F member) {
    identity(what, {key, doc, needed(value_where<EvalRecord>(always, member)), "text"});
  }
};

void add_eval_identity(EvalColumns& c) {
  c.text(Tells::section, "model", "file name of the model", &EvalRecord::model);
  c.text(Tells::section, "sha256", "first 12 digits of the SHA-256 of the model", &EvalRecord::sha256);
  c.channels();
  c.text(Tells::section, "text", "file name of the text that the documents are made of", &EvalRecord::text);
  c.text(Tells::place, "task", "task, see kvbench eval --list-tasks", &EvalRecord::task);
  c.text(Tells::place, "document", "document, or all", &EvalRecord::document);
  c.text(Tells::section, "question",
         "inside or outside the compressed context, followed by (chat) where documents are conversations",
         &EvalRecord::question);
  c.identity(
      Tells::section,
      {"context_tokens", "tokens of the context, which is compressed; of conversations: of the longest one, all turns",
       needed(value_of(&EvalRecord::context_tokens)), "integer", "tokens"});
  c.text(Tells::place, "document_sha256",
         "first 12 digits of the SHA-256 of the token ids of the document, in decimal, separated by spaces: context "
         "and scored tokens on a line each; empty in rows over documents",
         &EvalRecord::document_sha256);
  c.text(Tells::place, "documents_sha256", "the same of the digests of all documents of the task, on a line each",
         &EvalRecord::documents_sha256);
  c.identity(Tells::place,
             {"inject",
              "where outputs of the method replace those of the model: in all layers, in one, in all up to one (upto), "
              "in none",
              needed(value_where<EvalRecord>(
                  always, [](auto& r) -> auto& { return r.injection.mode; })),
              "text"});
  c.identity(Tells::place, {"inject_layer", "the layer of one and upto", needed(injected_layer()), "integer"});
  c.identity(Tells::section, {"inject_scale", "share of the errors of the outputs that is injected; empty: all of them",
                              injected_share(), "number"});
  c.identity(Tells::place, {"layer", "layer whose errors the row reports, or all",
                            needed(optional_value<EvalRecord>(&EvalRecord::layer, "all")), "integer"});
  c.identity(Tells::place, {"turn",
                            "turn of the conversation whose answer is scored, from 1; bytes and kept tokens are those "
                            "after the last turn; empty: all scored tokens",
                            turn(), "integer"});
  c.text(Tells::section, "device", "back end that computed the caches of the methods", &EvalRecord::device);
  c.configuration();
  c.status("why the row is not ok, which passes are missing, and notes of the method");
}

void add_settings(EvalColumns& c) {
  using eval::EvalSettings;
  const auto add = [&](const char* key, const char* doc, auto member, const char* type = "text") {
    c.identity(Tells::section, {key, doc, of_settings(member), type});
  };
  add("method_layers",
      "layers in which methods run, such as 0-2,5; the others keep their full cache, which the bytes count; methods "
      "that round also run in those with a sliding window",
      &EvalSettings::layers);
  add("model_layers", "number of layers of the model", &EvalSettings::model_layers, "integer");
  add("weights", "f32, f16, bf16, or file: as the file of the model has them", &EvalSettings::weights);
  add("kv_dtype", "element type of the cache", &EvalSettings::kv_dtype);
  add("protect",
      "numbers of first and last tokens of the context that are kept exactly, followed by outside where they are not "
      "part of the budget",
      &EvalSettings::protect);
  add("decoded", "treatment of decoded tokens: method or keep", &EvalSettings::decoded);
  c.identity(Tells::section,
             {"protocol",
              "stream: the context passes through the compressed cache, too; compress once, turn, anew or "
              "a number of tokens: when the cache of a conversation is compressed again; empty: the "
              "context is read with exact attention and then compressed",
              protocol(), "text"});
  // Tables of earlier versions lack it.
  c.identity(
      Tells::section,
      {"generate",
       "tokens of an answer, at most, of documents that the full and the compressed cache continue by themselves, "
       "followed by greedy, or the temperature and the seed of samples; the scored tokens are the full cache's answer; "
       "empty: they are those of the document",
       value_where<EvalRecord>(
           always, [](auto& r) -> auto& { return r.settings.generate; }),
       "text"});
  c.list.push_back({"scored_sha256",
                    "first 12 digits of the SHA-256 of the scored tokens of the document, on a line: equal where the "
                    "same tokens are scored behind contexts of several lengths; empty in rows over documents",
                    value_of(&EvalRecord::scored_sha256), "text"});
  c.list.push_back(
      {"document_seed", "seed of the documents; empty where they are given as token ids", document_seed(), "integer"});
}

void add_eval_sizes(EvalColumns& c) {
  c.count("documents", "documents behind the row", &EvalRecord::documents);
  c.count("seeds", "seeds behind the row", &EvalRecord::seeds);
  c.list.push_back({"compressed_layers", "number of layers that the method compressed, whose errors the row summarises",
                    needed(over_layers(&EvalRecord::compressed_layers)), "integer"});
  c.count("scored", "predicted tokens that are counted (answers, or all of tasks without questions)",
          &EvalRecord::tokens);
  c.count("scored_key", "of these, key tokens: their nll rises by at least 2 without the distant context",
          &EvalRecord::key_tokens);
  c.count("answers", "answers, of tasks with exact match", &EvalRecord::answers);
  c.tokens(is_over_layers, false);
  c.list.push_back(
      {"kept_by_span",
       "of conversations: share of the tokens of each span (docs/turns.md) before the last answer that the "
       "cache holds behind the last scored token, such as `system 1.000, user 0.312`: mean over kv heads, "
       "compressed layers, documents and seeds; spans of one name are one; empty where the method merges "
       "tokens or chooses among them for each query",
       over_layers(&EvalRecord::kept_by_span), "text"});
  c.list.push_back({"lost_by_span", "the same, of the tokens that no kv head of these layers holds",
                    over_layers(&EvalRecord::lost_by_span), "text"});
  c.held(is_over_layers, "keys and values held, mean per kv head over all layers of the model");
  c.moved(is_over_layers);
}

void add_damage(EvalColumns& c) {
  for (std::size_t f = 0; f < eval::damage_count; ++f) {
    const eval::DamageFigure& figure = eval::damage_figures[f];
    const auto add = [&](const std::string& key, const std::string& doc, double eval::Estimate::*part) {
      c.list.push_back({key, doc, over_layers([ f, part ](auto& r) -> auto& { return r.damage[f].*part; }), "number",
                        key.ends_with("_tokens") ? "tokens" : ""});
      c.list.back().limits = figure.info.limits;
    };
    const std::string key(figure.info.name);
    add(key, std::string(figure.info.meaning), &eval::Estimate::mean);
    c.list.back().value.needed = f == index_of(eval::damage("kl_mean"));
    if (!figure.interval) continue;
    const std::string interval =
        fmt::format("end of the 95 % {}interval of {} over documents{}", figure.is_positive() ? "" : "bootstrap ", key,
                    figure.is_positive() ? " (log-normal, modified Cox)" : " and seeds");
    add(key + "_lo", "lower " + interval + "; empty where there are fewer than two documents", &eval::Estimate::lo);
    add(key + "_hi", "upper " + interval, &eval::Estimate::hi);
  }
}

void add_tests(EvalColumns& c) {
  namespace limits = replay::limits;
  c.number("match_p", "McNemar's test of harmful against beneficial flips, two-sided mid-p", &EvalRecord::match_p,
           limits::share);
  c.number("match_equal_p", "equivalence test (TOST): p-value of 'match differs by the margin or more'",
           &EvalRecord::match_equal_p, limits::share);
  c.number("nll_equal_p", "equivalence test (TOST) over documents: p-value of 'nll differs by the margin or more'",
           &EvalRecord::nll_equal_p, limits::share);
  c.number("json_p", "McNemar's test of lines that are valid JSON with one of the two answers alone, two-sided mid-p",
           &EvalRecord::json_p, limits::share);
  c.number("json_equal_p", "equivalence test (TOST): p-value of 'valid JSON differs by the margin or more'",
           &EvalRecord::json_equal_p, limits::share);
  c.number("nll_margin", "margin of the equivalence test of nll, nats", &EvalRecord::nll_margin, limits::at_least_zero);
  c.number("match_margin", "margin of the equivalence tests of match and of valid JSON", &EvalRecord::match_margin,
           limits::share);
  c.list.push_back({"nll_verdict",
                    "no difference, worse, better, undecided, or cannot discriminate (see verdict_reason)",
                    over_layers(&EvalRecord::nll_verdict), "text"});
  c.list.push_back({"match_verdict", "the same of exact match", over_layers(&EvalRecord::match_verdict), "text"});
  c.list.push_back({"json_verdict", "the same of valid JSON", over_layers(&EvalRecord::json_verdict), "text"});
  c.list.push_back(
      {"verdict_reason", "why the task cannot discriminate", value_of(&EvalRecord::verdict_reason), "text"});
}

void add_errors(EvalColumns& c) {
  const auto add = [&](const std::string& key, const std::string& doc, auto value,
                       replay::Limits limits = replay::limits::at_least_zero) {
    c.list.push_back({key, doc, where_passed(value), "number"});
    c.list.back().limits = limits;
  };
  add("drift",
      "|h - h_full| / |h_full| of the hidden state after the layer (of rows over all layers: after the last one), mean "
      "over tokens",
      &EvalRecord::drift);
  add("residual_err",
      "|a - a*| / |residual stream|: a, what attention adds to it after W_O and, where the model has one, a norm; a*, "
      "the same of the exact output at the model's current state; mean over tokens and layers",
      &EvalRecord::residual);
  for (const replay::Metric m : replay::all_metrics()) {
    if (replay::is_of_layer(m)) continue;  // as the column before, from W_O itself
    const replay::MetricInfo& info = info_of(m);
    add(
        fmt::format("{}_mean", info.name),
        fmt::format("{}, at the model's current state: mean over layers, query heads, scored tokens, documents and "
                    "seeds",
                    info.meaning),
        [m](auto& r) -> auto& { return r.metrics[m]; }, info.limits);
  }
}

std::vector<EvalColumn> make_eval_columns() {
  EvalColumns c;
  add_eval_identity(c);
  add_settings(c);
  add_eval_sizes(c);
  add_damage(c);
  add_tests(c);
  add_errors(c);
  c.list.push_back(version_column<EvalRecord>("text"));
  c.list.push_back(commit_column<EvalRecord>("text"));
  c.list.push_back({"isa", "instruction set of the kernels", value_of<EvalRecord>(&EvalRecord::isa), "text"});
  c.list.push_back({"pass_s", "time of the pass of a document with this configuration, mean",
                    over_layers(&EvalRecord::seconds), "number", "s", true});
  return c.list;
}

}  // namespace

std::span<const EvalColumn> eval_columns() {
  static const std::vector<EvalColumn> table = make_eval_columns();
  return table;
}

}  // namespace kvbench::report
