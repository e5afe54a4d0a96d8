// SPDX-License-Identifier: Apache-2.0
#include <apps/llama/chat.hpp>

#include <algorithm>
#include <vector>

#include <kvbench/core/error.hpp>

namespace kvbench::llama {
namespace {

/// Placeholders for a message, its answer and the next message, without white space, which templates may remove.
constexpr const char* placeholders[] = {"KVBENCH-FIRST-MESSAGE", "KVBENCH-FIRST-ANSWER", "KVBENCH-SECOND-MESSAGE"};

/// The conversation of the placeholders; empty where llama.cpp does not know the template.
std::string rendered(const std::string& chat_template) {
  const llama_chat_message messages[] = {
      {"user", placeholders[0]}, {"assistant", placeholders[1]}, {"user", placeholders[2]}};
  const auto render = [&](std::string& text) {
    return llama_chat_apply_template(chat_template.c_str(), messages, std::size(messages), false, text.data(),
                                     static_cast<std::int32_t>(text.size()));
  };
  std::string text;
  text.resize(static_cast<std::size_t>(std::max(render(text), 0)));
  render(text);
  return text;
}

}  // namespace

ChatTexts chat_texts(const std::string& chat_template, const std::string& path) {
  const std::string text = rendered(chat_template);
  std::vector<std::string> pieces;  // before each placeholder
  std::size_t begin = 0;
  for (const std::string placeholder : placeholders) {
    const std::size_t at = text.find(placeholder, begin);
    if (at == text.npos) {
      throw Error(
          "{}: llama.cpp does not know its chat template; leave out --chat, or give a model with a common one such as "
          "ChatML",
          path);
    }
    pieces.push_back(text.substr(begin, at - begin));
    begin = at + placeholder.size();
  }
  return {pieces[0], pieces[1], pieces[2]};
}

ChatTexts chat_texts(const Model& model) {
  const char* const chat_template = llama_model_chat_template(model.handle(), nullptr);
  if (chat_template == nullptr) {
    throw Error("{}: has no chat template; leave out --chat, or give a model that was trained on conversations",
                model.path());
  }
  return chat_texts(chat_template, model.path());
}

MessageEnds message_ends(const Model& model, bool chat) {
  const std::vector<int> prefix = model.has_tokenizer() ? model.prefix() : std::vector<int>();
  if (!chat) return {prefix, {}, {}};
  const ChatTexts texts = chat_texts(model);
  MessageEnds out{model.tokenize_controls(texts.before), model.tokenize_controls(texts.after),
                  model.tokenize_controls(texts.between)};
  if (!prefix.empty() && (out.before.empty() || out.before.front() != prefix.front()))
    out.before.insert(out.before.begin(), prefix.begin(), prefix.end());
  return out;
}

}  // namespace kvbench::llama
