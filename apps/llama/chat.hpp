// SPDX-License-Identifier: Apache-2.0
// Chat templates: what a model expects around the messages of a conversation.
#pragma once

#include <string>
#include <vector>

#include <apps/llama/model.hpp>

namespace kvbench::llama {

struct ChatTexts {
  std::string before;   ///< from the beginning to the first user message
  std::string after;    ///< from the end of a user message to the beginning of the answer
  std::string between;  ///< from the end of an answer to the next user message
};

/// The texts of the model's own template as llama.cpp renders it, without a system message. Throws Error, naming the
/// flag --chat, where the model has no template or llama.cpp does not know it.
ChatTexts chat_texts(const Model& model);
/// The same for this template of the model file `path`.
ChatTexts chat_texts(const std::string& chat_template, const std::string& path);

/// What stands around the messages of a conversation.
struct MessageEnds {
  std::vector<int> before, after, between;  ///< token ids, as in ChatTexts
};

/// Those of the model's chat template, or else its prefix (such as BOS) alone. Throws as chat_texts() does.
MessageEnds message_ends(const Model& model, bool chat);

}  // namespace kvbench::llama
