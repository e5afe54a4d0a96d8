// SPDX-License-Identifier: Apache-2.0
#include <apps/kvdump/prompt.hpp>

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <fstream>

#include <fmt/ranges.h>

#include <kvbench/core/atomic_file.hpp>
#include <kvbench/core/error.hpp>
#include <kvbench/eval/transcripts.hpp>

#include <apps/llama/chat.hpp>
#include <apps/llama/context.hpp>
#include <apps/llama/texts.hpp>

namespace kvbench::kvdump {
namespace {

void cut(std::vector<std::int32_t>& tokens, const std::string& path, const Options& options, int training_context) {
  const auto have = std::ssize(tokens);
  if (have < 2) throw Error("{}: a prompt of {} tokens is too short; give at least 2", path, have);
  if (options.ctx && *options.ctx > have) {
    throw Error("{}: --ctx {} is more than its {} tokens; give a longer prompt or --ctx {}, or omit --ctx to use all",
                path, *options.ctx, have, have);
  }
  tokens.resize(static_cast<std::size_t>(options.ctx.value_or(std::min<std::int64_t>(have, training_context))));
}

std::vector<std::int32_t> tokens_of(const std::string& path, const Model& model) {
  if (!model.has_tokenizer()) throw Error("{}: {} has no tokenizer; give token ids with --ids", path, model.path());
  return model.tokenize(llama::read_text(path));
}

std::string stem_of(const std::string& path) { return std::filesystem::path(path).stem().string(); }

/// Sets what is recorded of a prompt with tokens and a context.
void add_plan(const QuerySpec& queries, Prompt& prompt) {
  const auto n = std::ssize(prompt.tokens);
  prompt.query_positions = query_positions(queries, n, prompt.prompt_tokens);
  prompt.batches = batch_sizes(queries, n, llama::Context::batch);
}

Prompt plan(const std::string& path, std::vector<std::int32_t> tokens, const Options& options, int training_context) {
  cut(tokens, path, options, training_context);
  Prompt prompt{stem_of(path), std::move(tokens), 0, {}, {}};
  const auto n = std::ssize(prompt.tokens);
  prompt.prompt_tokens = options.prompt_tokens.value_or(default_prompt_tokens(options.queries, n));
  if (prompt.prompt_tokens > n) {
    throw Error("{}: --prompt-tokens {} exceeds the {} tokens that are used of it; give at most {}", path,
                prompt.prompt_tokens, n, n);
  }
  add_plan(options.queries, prompt);
  return prompt;
}

/// The last answer follows the context, in which each message is a span; what a chat template puts before a message
/// belongs to it.
Prompt plan(const std::string& path, const std::string& name, const eval::Conversation& conversation,
            const Options& options, const Model& model) {
  if (conversation.messages.size() < 2 || !conversation.messages.back().second)
    throw Error("{}: its last message must be an answer of the assistant, behind at least one other message",
                conversation.place);
  const auto [before, after, between] = llama::message_ends(model, options.chat);
  Prompt prompt{name, {}, 0, {}, {}};
  const auto append = [&](const std::vector<int>& ids) {
    prompt.tokens.insert(prompt.tokens.end(), ids.begin(), ids.end());
  };
  append(before);
  for (const auto& [content, is_answer] : conversation.messages) {
    if (options.chat && is_answer != (prompt.spans.size() % 2 == 1))
      throw Error("{}: messages and answers do not alternate, which --chat expects; leave --chat out",
                  conversation.place);
    const std::int64_t begin = std::ssize(prompt.tokens);
    if (!prompt.spans.empty()) append(is_answer ? after : between);
    prompt.prompt_tokens = std::ssize(prompt.tokens);
    append(llama::tokens_of_message(model, content.text, options.chat ? "" : "\n", content.ids, path));
    prompt.spans.push_back({content.span, begin, std::ssize(prompt.tokens)});
  }
  prompt.spans.pop_back();
  if (std::ssize(prompt.tokens) > model.training_context())
    throw Error("{}: it has {} tokens, and {} was trained on {}", conversation.place, prompt.tokens.size(),
                model.path(), model.training_context());
  add_plan(options.queries, prompt);
  return prompt;
}

}  // namespace

std::vector<Prompt> read_prompts(const Options& options, const Model& model) {
  const int training_context = model.training_context();
  if (options.ctx > training_context) {
    throw Error("--ctx {}: {} was trained on {} tokens; give at most that number", *options.ctx, model.path(),
                training_context);
  }
  std::vector<Prompt> prompts;
  for (const auto& path : options.texts)
    prompts.push_back(plan(path, tokens_of(path, model), options, training_context));
  for (const auto& path : options.ids) {
    prompts.push_back(plan(path, llama::read_ids(path, model.vocabulary_size()), options, training_context));
  }
  std::size_t number = 0;
  for (const auto& path : options.transcripts) {
    for (const eval::Conversation& one : eval::read_conversations(llama::read_text(path), path))
      prompts.push_back(plan(path, fmt::format("{}-{}", stem_of(path), number++), one, options, model));
  }
  return prompts;
}

void write_tokens(const Options& options, const Model& model) {
  AtomicFile file(options.output);
  std::ofstream out(file.temporary());
  for (const auto& path : options.texts) out << fmt::format("{}\n", fmt::join(tokens_of(path, model), " "));
  out.close();
  if (!out) throw_write_error(options.output, "writing", errno);
  file.publish();
}

}  // namespace kvbench::kvdump
