// SPDX-License-Identifier: Apache-2.0
#include <apps/kveval/documents.hpp>

#include <algorithm>
#include <cmath>
#include <filesystem>

#include <kvbench/core/error.hpp>
#include <kvbench/core/name.hpp>

#include <apps/llama/chat.hpp>
#include <apps/llama/texts.hpp>

namespace kvbench::kveval {
namespace {

eval::TaskDocument from_ids(const Options& options, const std::string& path, const llama::Model& model) {
  std::vector<std::int32_t> ids = llama::read_ids(path, model.vocabulary_size());
  if (options.generation.tokens > 0 && std::ssize(ids) >= options.context())
    ids.resize(static_cast<std::size_t>(options.context() + options.score));  // the others follow from the answer
  if (std::ssize(ids) < options.context() + options.score) {
    throw Error("{}: has {} token ids, and --context {} and --score {} need {}; give more ids, or smaller numbers",
                path, ids.size(), options.context(), options.score, options.context() + options.score);
  }
  const auto end = ids.begin() + options.context();
  const std::vector<std::int32_t> prefix = model.has_tokenizer() ? model.prefix() : std::vector<std::int32_t>();
  const bool has_prefix = std::ranges::equal(prefix, std::span(ids).first(prefix.size()));
  return {.name = std::filesystem::path(path).stem().string(),
          .context = {ids.begin(), end},
          .beginning = has_prefix ? std::ssize(prefix) : 0,
          .scored = {end, end + options.score},
          .spans = {{1, options.score, NAN}}};
}

void add_content(const eval::Content& content, const Options& options, const llama::Model& model,
                 std::vector<int>& tokens) {
  const std::vector<int> ids =
      llama::tokens_of_message(model, content.text, options.chat ? "" : "\n", content.ids, options.transcripts);
  tokens.insert(tokens.end(), ids.begin(), ids.end());
}

/// What a chat template puts before a message belongs to it, as in traces.
void add_message(const std::string& span, eval::TurnTokens& turn) {
  turn.messages.push_back(
      {span, turn.messages.empty() ? 0 : turn.messages.back().end, std::ssize(turn.asked) + std::ssize(turn.answer)});
}

/// Sets documents, and the tokens of the longest one.
void add_conversations(const Options& options, const llama::Model& model, eval::EvalResults& results) {
  const auto [before, after, between] = llama::message_ends(model, options.chat);
  for (const eval::Transcript& transcript :
       eval::read_transcripts(llama::read_text(options.transcripts), options.transcripts)) {
    const std::string name = fmt::format("transcript-{}", results.documents.size());
    std::vector<eval::TurnTokens> turns;
    for (const eval::Turn& turn : transcript) {
      if (options.chat && turn.asked.size() > 1)
        throw Error(
            "{}: {}: two messages before one answer, which the chat template would not put together; leave "
            "--chat out",
            options.transcripts, name);
      eval::TurnTokens& tokens = turns.emplace_back();
      if (turns.size() > 1) tokens.asked = between;
      for (const eval::Content& asked : turn.asked) {
        add_content(asked, options, model, tokens.asked);
        add_message(asked.span, tokens);
      }
      tokens.asked.insert(tokens.asked.end(), after.begin(), after.end());
      add_content(turn.answer, options, model, tokens.answer);
      add_message(turn.answer.span, tokens);
    }
    eval::TaskDocument document =
        transcript_document(name, before, turns, options.compressions, options.question_inside);
    const Index tokens = std::ssize(document.context) + std::ssize(document.scored);
    if (tokens > model.training_context())
      throw Error("{}: {} has {} tokens, and {} was trained on {}; leave its last turns out", options.transcripts, name,
                  tokens, options.model, model.training_context());
    results.context_tokens = std::max(results.context_tokens, tokens);
    results.documents.push_back({.task = 0, .document = std::move(document)});
  }
}

void use_chat(const llama::Model& model, eval::TaskRequest& request) {
  const llama::ChatTexts texts = llama::chat_texts(model);
  const auto tokenize = [&model](const std::string& text) { return model.tokenize_controls(text); };
  request.chat = eval::ChatTemplate{texts.before, texts.after, texts.between, tokenize};
  const std::vector<int> before = tokenize(texts.before);
  const bool has_prefix = !before.empty() && request.prefix == std::vector{before.front()};
  if (has_prefix) request.prefix.clear();  // some templates begin with the BOS token
}

eval::TaskRequest task_request(const Options& options, const std::string& text, const llama::Model& model) {
  if (!model.has_tokenizer()) throw Error("{}: {} has no tokenizer; give token ids with --ids", text, options.model);
  eval::TaskRequest request{.tokenize = [&model](const std::string& piece) { return model.tokenize_piece(piece); },
                            .haystack = llama::read_text(text),
                            .haystack_name = text,
                            .prefix = model.prefix(),
                            .chat = std::nullopt};
  request.seed = options.document_seed;
  request.documents = options.documents;
  request.context_tokens = options.context();
  request.score_tokens = options.score;
  request.questions = options.questions;
  request.question_inside = options.question_inside;
  if (options.chat) use_chat(model, request);
  return request;
}

/// One of each text. Throws Error where two texts are equal.
std::vector<eval::TaskRequest> task_requests(const Options& options, const llama::Model& model) {
  std::vector<eval::TaskRequest> requests;
  for (const std::string& text : options.texts) {
    requests.push_back(task_request(options, text, model));
    for (std::size_t other = 0; other + 1 < requests.size(); ++other) {
      if (requests[other].haystack == requests.back().haystack)
        throw Error("{} and {} are the same text; name it once", options.texts[other], text);
    }
  }
  return requests;
}

/// A document with its scored tokens behind the contexts of all lengths, the longest of which it has.
void add_lengths(const Options& options, std::size_t task, eval::TaskDocument document, eval::EvalResults& results) {
  for (const Index length : options.contexts) {
    if (length == options.context()) break;
    results.documents.push_back({.task = task, .document = shortened(document, length), .context_tokens = length});
  }
  results.documents.push_back({.task = task, .document = std::move(document), .context_tokens = options.context()});
}

}  // namespace

std::string beyond_training(const Options& options, const llama::Model& model, const eval::TaskDocument& document) {
  const Index tokens = std::ssize(document.context) + std::ssize(document.scored), trained = model.training_context();
  if (options.contexts.size() == 1 || tokens <= trained) return "";
  return fmt::format("context and scored tokens are {} tokens, and the model was trained on {}", tokens, trained);
}

void make_documents(const Options& options, const llama::Model& model, eval::EvalResults& results) {
  if (!options.transcripts.empty()) {
    results.tasks.push_back(&eval::find_task("text"));
    return add_conversations(options, model, results);
  }
  const Index shortest = options.contexts.front();
  if (options.generation.tokens == 0 && shortest + options.score > model.training_context()) {
    throw Error("--context {} and --score {}: {} was trained on {} tokens; give at most that number in total", shortest,
                options.score, options.model, model.training_context());
  }
  for (const std::string& name : options.tasks) results.tasks.push_back(&eval::find_task(name));
  for (const std::string& path : options.ids) add_lengths(options, 0, from_ids(options, path, model), results);
  if (!options.ids.empty()) return;
  const std::vector<std::string> names = distinct_names(options.texts);
  const std::vector<eval::TaskRequest> requests = task_requests(options, model);
  for (std::size_t task = 0; task < results.tasks.size(); ++task) {
    for (std::size_t text = 0; text < requests.size(); ++text) {
      for (eval::TaskDocument& document : kvbench::eval::make_documents(*results.tasks[task], requests[text])) {
        if (requests.size() > 1) document.name = names[text] + ":" + document.name;
        add_lengths(options, task, std::move(document), results);
      }
    }
  }
}

}  // namespace kvbench::kveval
