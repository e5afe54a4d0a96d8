// SPDX-License-Identifier: Apache-2.0
#include <kvbench/report/columns/evaluations.hpp>

#include <functional>

#include <fmt/format.h>

#include <kvbench/eval/damage.hpp>

namespace kvbench::report {
namespace {

using EvalColumn = Column<eval::EvalRecord>;

/// A number that only rows with status ok have.
template <class F>
auto where_passed(F value) {
  return [value](const eval::EvalRecord& r) {
    return r.status == replay::Status::ok ? number_text(std::invoke(value, r)) : "";
  };
}

/// The same of rows over all layers.
template <class F>
auto over_layers(F value) {
  return [value](const eval::EvalRecord& r) {
    return r.status == replay::Status::ok && !r.layer ? value_text(std::invoke(value, r)) : "";
  };
}

class EvalColumns {
 public:
  std::vector<EvalColumn> list;

  void number(const char* key, const std::string& doc, double eval::EvalRecord::*value) {
    list.push_back({key, doc, over_layers(value), "number"});
  }
  void count(const char* key, const char* doc, Index eval::EvalRecord::*value) {
    list.push_back({key, doc, over_layers(value), "integer"});
  }
  void estimate(const std::string& key, const std::string& doc, eval::Estimate eval::EvalRecord::*value) {
    const auto part = [&](const std::string& name, const std::string& what, double eval::Estimate::*field) {
      list.push_back(
          {name, what, over_layers([value, field](const eval::EvalRecord& r) { return r.*value.*field; }), "number"});
    };
    part(key, doc, &eval::Estimate::mean);
    const std::string interval = fmt::format("end of the 95 % bootstrap interval of {} over documents and seeds", key);
    part(key + "_lo", "lower " + interval + "; empty where there are fewer than two documents", &eval::Estimate::lo);
    part(key + "_hi", "upper " + interval, &eval::Estimate::hi);
  }
  void bytes(const char* key, const char* doc, double (*value)(const eval::EvalRecord&)) {
    list.push_back({key, doc, over_layers(value), "number", "B"});
  }
};

void add_eval_identity(EvalColumns& c) {
  c.list = {
      {"model", "file name of the model", text_of(&eval::EvalRecord::model), "text"},
      {"sha256", "first 12 digits of the SHA-256 of the model", text_of(&eval::EvalRecord::sha256), "text"},
      {"text", "file name of the text that the documents are made of", text_of(&eval::EvalRecord::text), "text"},
      {"task", "task, see kvbench eval --list-tasks", text_of(&eval::EvalRecord::task), "text"},
      {"document", "document, or all", text_of(&eval::EvalRecord::document), "text"},
      {"question", "inside or outside the compressed context, followed by (chat) where documents are conversations",
       text_of(&eval::EvalRecord::question), "text"},
      {"context_tokens", "tokens of the context, which is compressed", text_of(&eval::EvalRecord::context_tokens),
       "integer", "tokens"},
      {"inject",
       "where outputs of the method replace those of the model: in all layers, in one, in all up to one (upto), in "
       "none",
       [](const eval::EvalRecord& r) { return std::string(name_of(r.injection.mode)); }, "text"},
      {"inject_layer", "the layer of one and upto",
       [](const eval::EvalRecord& r) { return r.injection.layer < 0 ? "" : value_text(r.injection.layer); }, "integer"},
      {"layer", "layer whose errors the row reports, or all", text_of(&eval::EvalRecord::layer, "all"), "integer"},
      {"device", "back end that computed the caches of the methods", text_of(&eval::EvalRecord::device), "text"},
      {"method", "name in the registry", text_of(&eval::EvalRecord::method), "text"},
      {"params", "parameters that differ from their defaults", text_of(&eval::EvalRecord::params), "text"},
      {"budget", "budget as given", text_of(&eval::EvalRecord::budget), "text"},
      {"status", "ok, skipped, failed or infeasible", text_of(&eval::EvalRecord::status), "text"},
      {"reason", "why the row is not ok, which passes are missing, and notes of the method",
       text_of(&eval::EvalRecord::reason), "text"},
  };
}

void add_eval_sizes(EvalColumns& c) {
  c.count("documents", "documents behind the row", &eval::EvalRecord::documents);
  c.count("seeds", "seeds behind the row", &eval::EvalRecord::seeds);
  c.count("scored", "predicted tokens that are counted (answers, or all of tasks without questions)",
          &eval::EvalRecord::tokens);
  c.count("scored_key", "of these, key tokens: their nll rises by at least 2 without the distant context",
          &eval::EvalRecord::key_tokens);
  c.count("answers", "answers, of tasks with exact match", &eval::EvalRecord::answers);
  const auto tokens = [&](const char* key, const char* doc, double eval::EvalRecord::*value) {
    c.list.push_back({key, doc, over_layers(value), "number", "tokens"});
  };
  tokens("budget_tokens", "the budget in tokens", &eval::EvalRecord::budget_tokens);
  tokens("kept_tokens", "entries that answer a query, without those that the harness keeps exactly",
         &eval::EvalRecord::kept_tokens);
  c.bytes("kv_bytes", "keys and values held, mean per kv head", [](const eval::EvalRecord& r) { return r.bytes.kv; });
  c.bytes("meta_bytes", "weights, counts, ids, centroids, bounds held, mean per kv head",
          [](const eval::EvalRecord& r) { return r.bytes.meta; });
  c.bytes("total_bytes", "kv_bytes + meta_bytes",
          [](const eval::EvalRecord& r) { return r.bytes.of(CostKind::memory); });
  c.bytes("full_bytes", "the exact cache of the same tokens", [](const eval::EvalRecord& r) { return r.bytes.full; });
  c.bytes("fast_bytes", "part of total_bytes in the fast memory of the processor",
          [](const eval::EvalRecord& r) { return r.bytes.fast; });
  c.bytes("slow_bytes", "part of total_bytes in slower memory", [](const eval::EvalRecord& r) { return r.bytes.slow; });
  c.bytes("bytes_read", "bytes that one query of a kv head reads",
          [](const eval::EvalRecord& r) { return r.bytes.read; });
}

void add_damage(EvalColumns& c) {
  const auto meaning = [](const eval::DamageMetric& metric) { return std::string(metric.info.meaning); };
  c.estimate("kl_mean", meaning(eval::damage("kl")), &eval::EvalRecord::kl);
  c.number("kl_p99", "99 % quantile of KL over the scored tokens", &eval::EvalRecord::kl_p99);
  c.estimate("top1", meaning(eval::damage("top1")), &eval::EvalRecord::same_top);
  c.number("nll_full", "negative log-likelihood of the true tokens with the full cache, mean, nats",
           &eval::EvalRecord::nll_full);
  c.number("nll", "the same with the compressed cache", &eval::EvalRecord::nll);
  c.estimate("nll_diff", meaning(eval::damage("nll")), &eval::EvalRecord::nll_difference);
  c.estimate("ppl_ratio", "perplexity of the compressed cache / of the full one, exp(nll_diff)",
             &eval::EvalRecord::perplexity_ratio);
  c.number("key_nll_full", "nll_full of the key tokens", &eval::EvalRecord::key_nll_full);
  c.number("key_nll", meaning(eval::damage("key_nll")), &eval::EvalRecord::key_nll);
  c.estimate("key_nll_diff", "key_nll - key_nll_full", &eval::EvalRecord::key_nll_difference);
  c.number("match_full", meaning(eval::damage("match")) + ", full cache", &eval::EvalRecord::match_full);
  c.number("match_short", "the same with a short context, the end of the full one", &eval::EvalRecord::match_short);
  c.number("match", "the same with the compressed cache", &eval::EvalRecord::match);
  c.estimate("match_diff", "match - match_full", &eval::EvalRecord::match_difference);
  c.number("harmful", "share of answers that only the full cache has right", &eval::EvalRecord::harmful);
  c.number("beneficial", "share of answers that only the compressed cache has right", &eval::EvalRecord::beneficial);
}

void add_tests(EvalColumns& c) {
  c.number("match_p", "McNemar's test of harmful against beneficial flips, two-sided mid-p",
           &eval::EvalRecord::match_p);
  c.number("match_equal_p", "equivalence test (TOST): p-value of 'match differs by the margin or more'",
           &eval::EvalRecord::match_equal_p);
  c.number("nll_equal_p", "equivalence test (TOST) over documents: p-value of 'nll differs by the margin or more'",
           &eval::EvalRecord::nll_equal_p);
  c.number("nll_margin", "margin of the equivalence test of nll, nats", &eval::EvalRecord::nll_margin);
  c.number("match_margin", "margin of the equivalence test of match", &eval::EvalRecord::match_margin);
  c.list.push_back(
      {"nll_verdict", "no difference, worse, better, undecided, or cannot discriminate (see verdict_reason)",
       over_layers([](const eval::EvalRecord& r) { return std::string(name_of(r.nll_verdict)); }), "text"});
  c.list.push_back({"match_verdict", "the same of exact match",
                    over_layers([](const eval::EvalRecord& r) { return std::string(name_of(r.match_verdict)); }),
                    "text"});
  c.list.push_back(
      {"verdict_reason", "why the task cannot discriminate", text_of(&eval::EvalRecord::verdict_reason), "text"});
}

void add_errors(EvalColumns& c) {
  const auto add = [&](const std::string& key, const std::string& doc, auto value) {
    c.list.push_back({key, doc, where_passed(value), "number"});
  };
  add("drift",
      "|h - h_full| / |h_full| of the hidden state after the layer (of rows over all layers: after the last one), mean "
      "over tokens",
      &eval::EvalRecord::drift);
  add("residual_err",
      "|a - a*| / |residual stream|: a, what attention adds to it after W_O and, where the model has one, a norm; a*, "
      "the same of the exact output at the model's current state; mean over tokens and layers",
      &eval::EvalRecord::residual);
  for (std::size_t m = 0; m < replay::metric_count; ++m) {
    const replay::MetricInfo& info = replay::attention_metrics[m].info;
    add(fmt::format("{}_mean", info.name),
        fmt::format("{}, at the model's current state: mean over layers, query heads, scored tokens, documents and "
                    "seeds",
                    info.meaning),
        [m](const eval::EvalRecord& r) { return r.metrics[m]; });
  }
}

std::vector<EvalColumn> make_eval_columns() {
  EvalColumns c;
  add_eval_identity(c);
  add_eval_sizes(c);
  add_damage(c);
  add_tests(c);
  add_errors(c);
  c.list.push_back(version_column<eval::EvalRecord>("text"));
  c.list.push_back(commit_column<eval::EvalRecord>("text"));
  c.list.push_back({"isa", "instruction set of the kernels", text_of(&eval::EvalRecord::isa), "text"});
  c.list.push_back({"pass_s", "time of the pass of a document with this configuration, mean",
                    over_layers(&eval::EvalRecord::seconds), "number", "s", true});
  return c.list;
}

}  // namespace

std::span<const EvalColumn> eval_columns() {
  static const std::vector<EvalColumn> table = make_eval_columns();
  return table;
}

}  // namespace kvbench::report
