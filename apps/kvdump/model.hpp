// SPDX-License-Identifier: Apache-2.0
// RAII wrappers of the handles of llama.cpp, and the properties of a model that kvdump reads.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <ggml-backend.h>
#include <llama.h>

namespace kvbench::kvdump {

/// Suppresses messages of llama.cpp except errors, which are printed on stderr.
void quiet_llama();

/// The last error of llama.cpp as a clause to append to a sentence; empty if there was none.
std::string last_llama_error();

class Model {
 public:
  /// Loads the weights. Throws Error where the file is missing or not a GGUF model, Interrupted after a signal.
  explicit Model(const std::string& path);

  /// Throws Error with the reason for unsupported models: encoders, diffusion, recurrent and hybrid models, latent attention (MLA),
  /// models without RoPE.
  void refuse_unsupported() const;

  /// A scalar of the GGUF metadata; "{arch}" in the key is replaced by the architecture.
  std::optional<std::string> metadata(std::string key) const;

  bool has_tokenizer() const;
  std::vector<std::int32_t> tokenize(const std::string& text) const;
  std::int32_t vocabulary_size() const;

  const std::string& path() const { return path_; }
  std::string arch() const { return metadata("general.architecture").value_or("unknown"); }
  std::string quantisation() const;
  int num_layers() const { return llama_model_n_layer(model_.get()); }
  int num_query_heads() const { return llama_model_n_head(model_.get()); }
  int num_kv_heads() const { return llama_model_n_head_kv(model_.get()); }
  int training_context() const { return llama_model_n_ctx_train(model_.get()); }
  llama_model* handle() const { return model_.get(); }

 private:
  struct Free {
    void operator()(llama_model* model) const { llama_model_free(model); }
  };
  std::string path_;
  std::unique_ptr<llama_model, Free> model_;
};

/// A context of llama.cpp for a dump: fp32 KV cache, no flash attention (it rounds to f16), on the host, one batch at a time;
/// `on_node` is called for every graph node.
class Context {
 public:
  static constexpr int batch = 512;

  /// Throws IoError where memory is insufficient.
  Context(const Model& model, std::int64_t num_tokens, int threads, ggml_backend_sched_eval_callback on_node, void* user_data,
          ggml_abort_callback stop);

  void clear();  ///< removes all tokens from the cache
  /// Decodes the next tokens (at most `batch`). Throws Error where llama.cpp fails; returns false where `stop` ended the call.
  bool decode(std::vector<std::int32_t>& tokens, std::int64_t begin, int count);

 private:
  struct Free {
    void operator()(llama_context* context) const { llama_free(context); }
  };
  std::unique_ptr<llama_context, Free> context_;
};

}  // namespace kvbench::kvdump
