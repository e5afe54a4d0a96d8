// SPDX-License-Identifier: Apache-2.0
#include <kvbench/eval/pass_file.hpp>

#include <algorithm>
#include <functional>

#include <kvbench/store/check_values.hpp>

namespace kvbench::store {

template <class A>
void visit(A& archive, eval::TokenScore& v) {
  archive(v.kl, v.tv, v.nll_full, v.nll, v.same_top, v.sure, v.right_full, v.right);
}

template <class A>
void visit(A& archive, eval::ShortScore& v) {
  archive(v.nll, v.right);
}

template <class A>
void visit(A& archive, eval::LayerErrors& v) {
  archive(v.layer, v.drift, v.residual);
  for (double& metric : v.metrics) archive(metric);
}

template <class A>
void visit(A& archive, eval::TokensHeld& v) {
  archive(v.kept, v.lost);
}

template <class A>
void visit(A& archive, eval::PassResult& v) {
  archive(v.injection.mode, v.injection.layer, v.injection.scale, v.status, v.reason, v.tokens, v.answer, v.layers,
          v.needles, v.messages, v.budget_tokens, v.kept_tokens, v.bytes, v.seconds);
}

template <class A>
void visit(A& archive, eval::EvaluatedDocument& v) {
  archive(v.without_distant, v.layers, v.windowed, v.answer);
}

}  // namespace kvbench::store

namespace kvbench::eval {
namespace {

enum RecordKind : std::uint32_t { pass_kind = 16, document_kind = 17 };  // below: those of sweeps

using store::check_amount;
using store::require;

constexpr const char* wrong_number = "the number of stored scores is wrong";
constexpr const char* wrong_layers = "the stored layers are not those of the model";

/// KL divergences and negative log-likelihoods are at least 0, but for rounding. They are infinite where a probability
/// is 0, and kveval never stores NaN.
void check_score(double nats) { require(nats >= -1e-6, "a score cannot be right"); }

/// Ascending, and some of `known`.
template <class Layers>
bool are_layers(const Layers& layers, const std::vector<int>& known) {
  return std::ranges::adjacent_find(layers, std::greater_equal()) == layers.end() &&
         std::ranges::all_of(layers, [&](auto layer) { return std::ranges::find(known, layer) != known.end(); });
}

/// Those of a document that is continued by up to `generate` tokens, if `expected`.
void check_answer(const std::vector<int>& answer, bool expected, Index generate) {
  require(answer.empty() != expected && std::ssize(answer) <= generate, "the length of a stored answer is wrong");
  require(std::ranges::none_of(answer, [](int token) { return token < 0; }), "a token of an answer is negative");
}

void check_held(const TokensHeld& held) {
  for (const double share : {held.kept, held.lost})
    require(!(share < 0 || share > 1 + 1e-9), "a share of held tokens is not from 0 to 1");
}

void check_pass(const PassResult& pass, const std::vector<int>& layers) {
  store::check_message(pass.reason);
  store::check_bytes(pass.bytes);
  for (const double amount : {pass.budget_tokens, pass.kept_tokens, pass.seconds}) check_amount(amount);
  check_held(pass.needles);
  std::ranges::for_each(pass.messages, check_held);
  for (const TokenScore& token : pass.tokens) {
    for (const double nats : {token.kl, token.nll_full, token.nll}) check_score(nats);
    require(token.tv >= 0 && token.tv <= 1, "a total variation is not from 0 to 1");
  }
  std::vector<std::int64_t> numbers;
  for (const LayerErrors& errors : pass.layers) {
    numbers.push_back(errors.layer);
    for (const replay::Metric metric : replay::all_metrics()) store::check_metric(metric, errors.metrics[metric]);
    require(!(errors.drift < 0) && !(errors.residual < 0), "an error is negative");
  }
  require(are_layers(numbers, layers), wrong_layers);
}

}  // namespace

void PassFile::add(const std::string& key, PassResult pass) { file_.append(pass_kind, key, store::encode(pass)); }

void PassFile::add(const std::string& key, EvaluatedDocument document) {
  file_.append(document_kind, key, store::encode(document));
}

PassResult PassFile::pass(const std::string& key, const Injection& injection, const ScoredDocument& document) const {
  return file_.decoded(key, pass_kind, [&](std::string_view bytes) {
    auto pass = store::decode<PassResult>(bytes);
    require(pass.injection == injection, "a stored pass is of another injection");
    require(pass.tokens.size() == (pass.status == replay::Status::ok ? document.tokens : 0), wrong_number);
    require(pass.messages.empty() || pass.messages.size() == document.messages, "the number of messages is wrong");
    check_answer(pass.answer, document.generate > 0 && pass.status == replay::Status::ok, document.generate);
    check_pass(pass, document.layers);
    return pass;
  });
}

EvaluatedDocument PassFile::document(const std::string& key, const ScoredDocument& of) const {
  return file_.decoded(key, document_kind, [&](std::string_view bytes) {
    auto document = store::decode<EvaluatedDocument>(bytes);
    check_answer(document.answer, of.generate > 0, of.generate);
    const std::size_t predicted = of.generate > 0 ? document.answer.size() - 1 : of.tokens;
    require(document.without_distant.size() == (of.has_short ? predicted : 0), wrong_number);
    require(!document.layers.empty() && are_layers(document.layers, of.layers), wrong_layers);
    require(are_layers(document.windowed, document.layers), wrong_layers);
    for (const ShortScore& score : document.without_distant) check_score(score.nll);
    return document;
  });
}

}  // namespace kvbench::eval
