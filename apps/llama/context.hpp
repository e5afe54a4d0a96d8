// SPDX-License-Identifier: Apache-2.0
// A context of llama.cpp: the model's own KV cache, and the callbacks of its graph.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <vector>

#include <apps/llama/model.hpp>

namespace kvbench::llama {

/// prompt: the tokens of the prompt and what follows them. scored: a cache of its own, without the prompt. Where the
/// attention outputs of all layers are replaced, tokens go there alone, and llama.cpp does not compute attention over
/// the prompt; or the whole document goes there again.
enum class Sequence { prompt, scored };

struct ContextOptions {
  std::int64_t num_tokens = 0;
  int threads = 1;
  bool two_sequences = false;  ///< the tokens of `Sequence::scored` have a cache of their own
  std::string shorter;         ///< the flags that make the context shorter, such as "--ctx"
  ggml_backend_sched_eval_callback on_node = nullptr;
  ggml_abort_callback stop = nullptr;
  void* user_data = nullptr;  ///< of both callbacks
};

/// fp32 KV cache, no flash attention (it rounds to f16), on the host, one batch at a time; `on_node` is called for
/// every graph node.
class Context {
 public:
  static constexpr int batch = 512;

  /// Throws IoError where memory is insufficient.
  Context(const Model& model, const ContextOptions& options);

  void clear();  ///< removes all tokens from the cache
  /// Keeps the state of `Sequence::prompt`, which has read `tokens` tokens: recurrent layers cannot go back by
  /// themselves.
  void keep_state(std::int64_t tokens);
  /// Removes the tokens at the positions from `begin` on from both sequences. Of a hybrid model `begin` is 0, or what
  /// keep_state() was given.
  void remove_from(std::int64_t begin);

  /// Decodes the next tokens (at most `batch`). Throws Error where llama.cpp fails; returns false where `stop` ended
  /// the call.
  bool decode(std::vector<std::int32_t>& tokens, std::int64_t begin, int count);
  /// The same for tokens [begin, begin + count) at their positions, with logits of each, or of the last one alone.
  bool decode_scored(const std::vector<std::int32_t>& tokens, std::int64_t begin, int count,
                     Sequence sequence = Sequence::prompt, bool of_each = true);
  /// Logits of the last decode_scored(), [count, vocabulary]; valid until the next call.
  std::span<const float> logits() const;

 private:
  struct Free {
    void operator()(llama_context* context) const { llama_free(context); }
  };
  bool finished(int status, std::int64_t begin) const;

  std::unique_ptr<llama_context, Free> context_;
  std::size_t vocabulary_ = 0, scored_ = 0;
  int sequences_ = 1;
  bool hybrid_ = false;
  std::int64_t kept_tokens_ = 0;
  std::vector<std::uint8_t> kept_state_;  ///< of the recurrent layers
};

}  // namespace kvbench::llama
