// SPDX-License-Identifier: Apache-2.0
#include <kvbench/eval/tasks/rows.hpp>

#include <cmath>

#include <fmt/format.h>

#include <kvbench/core/error.hpp>
#include <kvbench/eval/tasks/assemble.hpp>

namespace kvbench::eval {
namespace {

/// Lines of JSON with the same keys, whose values are drawn.
class Records {
 public:
  Records(const TaskRequest& request, TaskDraws& draws)
      : request_(&request), draws_(&draws), words_(shuffled_words(request, draws, 16)) {
    draws.shuffle(order_);
  }

  /// What every line begins with.
  Tokens lead() const { return request_->tokenize(fmt::format("{{\"{}\": \"", words_[0])); }
  Tokens rest() {
    std::string out = word() + "\"";
    for (const std::size_t kind : order_) out += fmt::format(", \"{}\": {}", words_[kind + 1], value(kind));
    return request_->tokenize(out + "}\n");
  }
  Tokens line() {
    Tokens out = lead();
    append_tokens(out, rest());
    return out;
  }

 private:
  const std::string& word() { return words_[keys + draws_->below(words_.size() - keys)]; }
  std::string digits(std::size_t below) { return std::to_string(draws_->below(below)); }

  // Draws are statements of their own: the order of arguments depends on the compiler.
  std::string value(std::size_t kind) {
    std::string out;
    switch (kind) {
      case 0:
        out = digits(1000);
        return draws_->below(2) == 0 ? out : out + "." + digits(100);
      case 1:
        return draws_->below(2) == 0 ? "true" : "null";
      case 2:
        out = fmt::format("[\"{}\"", word());
        for (std::size_t more = draws_->below(3); more > 0; --more) out += fmt::format(", \"{}\"", word());
        return out + "]";
      default:
        out = fmt::format("{{\"{}\": \"{}", words_[5], word());
        out += fmt::format(" \\\"{}\\\"\", \"{}\": [", word(), words_[6]);
        out += digits(10) + ", ";
        return out + digits(10) + "]}";
    }
  }

  static constexpr std::size_t keys = 7;  // words that are keys alone
  const TaskRequest* request_;
  TaskDraws* draws_;
  std::vector<std::string> words_;
  std::vector<std::size_t> order_ = {0, 1, 2, 3};  ///< kinds of the values
};

TaskDocument make_json(const TaskRequest& request, Index document) {
  TaskDraws draws(request.seed, "json", document);
  Records records(request, draws);
  const Tokens lead = records.lead();
  TaskDocument out{.name = "", .context = beginning(request), .spans = {{1, request.score_tokens, NAN}}};
  const Index around = std::ssize(out.context) + std::ssize(lead), room = request.context_tokens - around;
  std::vector<Tokens> lines = {records.line(), records.line()};
  Index total = std::ssize(lines[0]) + std::ssize(lines[1]);
  if (room < total)
    throw Error("`context_tokens` {}: is too small for the task, which shows two records; give at least {}",
                request.context_tokens, around + total);
  for (; total < room; total += std::ssize(lines.back())) lines.push_back(records.line());
  cut_front(lines, room);
  for (const Tokens& line : lines) append_tokens(out.context, line);
  append_tokens(out.context, lead);
  out.scored = records.rest();
  while (std::ssize(out.scored) < request.score_tokens) append_tokens(out.scored, records.line());
  out.scored.resize(static_cast<std::size_t>(request.score_tokens));
  return out;
}

}  // namespace

TaskInfo json_task() {
  return {.name = "json",
          .measures =
              "whether free answers (--generate) stay valid JSON: a record that the context begins, to its line "
              "end",
          .form =
              "lines `{\"amber\": \"river\", \"stone\": 417, ...}` of the same keys that fill the context, which "
              "ends with the beginning of one, `{\"amber\": \"`",
          .exact_match = false,
          .shortens = true,
          .json = true,
          .make = make_json};
}

}  // namespace kvbench::eval
