// SPDX-License-Identifier: Apache-2.0
#include <kvbench/eval/results.hpp>

#include <algorithm>
#include <locale>
#include <ranges>
#include <set>
#include <span>
#include <sstream>

#include <fmt/ranges.h>

#include <kvbench/core/enumeration.hpp>
#include <kvbench/core/error.hpp>
#include <kvbench/replay/plan/request.hpp>
#include <kvbench/trace/sha256.hpp>

namespace kvbench::eval {
namespace {

std::string short_digest(const std::string& text) { return trace::Sha256().add(text).hex().substr(0, 12); }

}  // namespace

EvalSettings settings_of(const replay::ReplayRequest& request) {
  EvalSettings out;
  out.kv_dtype = request.kv_element == methods::Element::f32 ? "f32" : "f16";
  out.protect =
      fmt::format("{},{}{}", request.protect_first, request.protect_last, request.protect_outside ? " outside" : "");
  out.decoded = request.decoded == replay::Decoded::keep ? "keep" : "method";
  out.protocol.stream = request.protocol == replay::Protocol::stream;
  return out;
}

std::string layer_ranges(const std::vector<std::int64_t>& layers) {
  std::string out;
  for (std::size_t first = 0, end = 0; first < layers.size(); first = end) {
    for (end = first + 1; end < layers.size() && layers[end] == layers[end - 1] + 1;) ++end;
    out += fmt::format("{}{}", first == 0 ? "" : ",", layers[first]);
    if (end > first + 1) out += fmt::format("-{}", layers[end - 1]);
  }
  return out;
}

Index layer_count(const std::string& ranges) {
  Index count = 0;
  std::istringstream parts(ranges);
  for (std::string part; std::getline(parts, part, ',');) {
    long first = 0, last = 0;
    char dash = 0;
    std::istringstream range(part);
    range.imbue(std::locale::classic());
    if (!(range >> first)) continue;
    count += range >> dash >> last && last >= first && last < 1'000'000 ? last - first + 1 : 1;
  }
  return count;
}

std::string digest_of(const TaskDocument& document) {
  return short_digest(fmt::format("{}\n{}\n", fmt::join(document.context, " "), fmt::join(document.scored, " ")));
}

std::string digest_of_scored(const TaskDocument& document) {
  return short_digest(fmt::format("{}\n", fmt::join(document.scored, " ")));
}

std::string digest_of(const std::vector<std::string>& documents) {
  return short_digest(fmt::format("{}\n", fmt::join(documents, "\n")));
}

std::string_view name_of(Inject inject) {
  constexpr std::string_view names[] = {"all", "one", "upto", "none"};
  return name_in(names, inject);
}

namespace {

/// The predictions of a span: scored token i is predicted by prediction i - 1.
template <class T>
std::span<const T> predictions(const std::vector<T>& all, const ScoredSpan& span) {
  return std::span(all).subspan(static_cast<std::size_t>(span.begin - 1), static_cast<std::size_t>(span.size()));
}

void check_length(const EvalDocument& document, std::size_t predicted, const char* what) {
  if (predicted + 1 != document.document.scored.size()) {
    throw Error("document {}: has {} scored tokens, but {} predictions {}", document.document.name,
                document.document.scored.size(), predicted, what);
  }
}

void add_token(const TokenScore& token, const ShortScore* without_distant, PassSums& sums) {
  sums.tokens += 1;
  sums.kl += token.kl;
  sums.tv += token.tv;
  sums.same_top += token.same_top;
  sums.sure += token.sure;
  sums.sure_changed += token.sure && !token.same_top;
  sums.nll_full += token.nll_full;
  sums.nll += token.nll;
  if (without_distant == nullptr) return;
  sums.nll_short += without_distant->nll;
  if (!is_key_token(token.nll_full, *without_distant)) return;
  sums.key_tokens += 1;
  sums.key_nll_full += token.nll_full;
  sums.key_nll += token.nll;
}

/// Of the answer of the compressed cache beside that of the full one.
void add_answer(const EvalDocument& document, const std::vector<int>& answer, PassSums& sums) {
  const std::vector<int>& full = document.document.scored;
  sums.continued = 1;
  const std::optional<Index> differs = first_difference(full, answer);
  sums.same = !differs, sums.differs = differs.has_value();
  sums.first_differs = static_cast<double>(differs.value_or(0));
  sums.length_full = static_cast<double>(full.size()), sums.length = static_cast<double>(answer.size());
  const auto alike = [&](Index count, double& share, double& asked) {
    if (document.generate >= count) share = share_alike(full, answer, count), asked = 1;
  };
  alike(32, sums.alike_32, sums.asked_32);
  alike(64, sums.alike_64, sums.asked_64);
  alike(256, sums.alike_256, sums.asked_256);
  const double of_full = repetition(full), of_answer = repetition(answer);
  if (std::isnan(of_full) || std::isnan(of_answer)) return;
  sums.repeatable = 1, sums.repetition_full = of_full, sums.repetition = of_answer;
}

}  // namespace

std::span<const ScoredSpan> spans_of(const TaskDocument& document, Index turn) {
  const std::span all(document.spans);
  if (turn == 0) return all;
  const Index at = turn - document.first_turn;
  const bool has_it = document.first_turn > 0 && at >= 0 && at < std::ssize(all);
  return has_it ? all.subspan(static_cast<std::size_t>(at), 1) : std::span<const ScoredSpan>();
}

void Holders::add(const std::vector<Index>& held) {
  heads += 1;
  for (const Index token : held) {
    of_token.resize(std::max<std::size_t>(of_token.size(), static_cast<std::size_t>(token) + 1));
    ++of_token[static_cast<std::size_t>(token)];
  }
}

namespace {

/// `tokens`: each once.
TokensHeld tokens_held(const auto& tokens, const Holders& holders) {
  if (tokens.empty() || holders.heads == 0) return {};
  double kept = 0, lost = 0;
  for (const Index token : tokens) {
    const Index heads =
        token < std::ssize(holders.of_token) ? holders.of_token[static_cast<std::size_t>(token)] : Index{0};
    kept += static_cast<double>(heads) / static_cast<double>(holders.heads), lost += heads == 0;
  }
  const auto count = static_cast<double>(tokens.size());
  return {kept / count, lost / count};
}

}  // namespace

TokensHeld needles_held(const TaskDocument& document, const Holders& holders) {
  std::set<Index> tokens;
  for (const ScoredSpan& span : document.spans) {
    for (Index i = 0; i < span.needle_tokens; ++i) tokens.insert(span.needle + i);
  }
  return tokens_held(tokens, holders);
}

std::vector<TokensHeld> messages_held(const TaskDocument& document, const Holders& holders) {
  std::vector<TokensHeld> out;
  if (holders.heads == 0) return out;
  for (const trace::Span& message : document.messages)
    out.push_back(tokens_held(std::views::iota(Index{message.begin}, Index{message.end}), holders));
  return out;
}

PassSums sums_of(const TaskInfo& task, const EvalDocument& document, const PassResult& pass, Index turn) {
  check_length(document, pass.tokens.size(), "of a configuration");
  const bool has_short = !document.without_distant.empty();
  if (has_short) check_length(document, document.without_distant.size(), "of the short context");
  PassSums sums;
  if (document.generate > 0) add_answer(document, pass.answer, sums);
  if (!std::isnan(pass.needles.kept))
    sums.needles = 1, sums.needle_kept = pass.needles.kept, sums.needle_lost = pass.needles.lost;
  if (document.json) {
    sums.records = 1, sums.json_full = *document.json == Json::valid;
    sums.json = pass.json == Json::valid, sums.json_cut = pass.json == Json::cut;
  }
  for (const ScoredSpan& span : spans_of(document.document, turn)) {
    for (Index i = span.begin - 1; i < span.end - 1; ++i) {
      const auto at = static_cast<std::size_t>(i);
      add_token(pass.tokens[at], has_short ? &document.without_distant[at] : nullptr, sums);
    }
    if (task.exact_match && has_short)
      sums.right_short += std::ranges::all_of(predictions(document.without_distant, span), &ShortScore::right);
  }
  if (!task.exact_match) return sums;
  for (const AnswerMatch match : matches_of(document, pass)) {
    sums.answers += 1;
    sums.right_full += match.full;
    sums.right += match.compressed;
    sums.harmful += match.full && !match.compressed;
    sums.beneficial += !match.full && match.compressed;
  }
  return sums;
}

std::vector<AnswerMatch> matches_of(const EvalDocument& document, const PassResult& pass) {
  std::vector<AnswerMatch> out;
  for (const ScoredSpan& span : document.document.spans) {
    const auto tokens = predictions(pass.tokens, span);
    out.push_back(
        {std::ranges::all_of(tokens, &TokenScore::right_full), std::ranges::all_of(tokens, &TokenScore::right)});
  }
  return out;
}

std::vector<double> divergences_of(const EvalDocument& document, const PassResult& pass, Index turn) {
  std::vector<double> out;
  for (const ScoredSpan& span : spans_of(document.document, turn)) {
    for (const TokenScore& token : predictions(pass.tokens, span)) out.push_back(token.kl);
  }
  return out;
}

}  // namespace kvbench::eval
