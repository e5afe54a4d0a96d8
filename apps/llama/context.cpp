// SPDX-License-Identifier: Apache-2.0
#include <apps/llama/context.hpp>

#include <kvbench/core/error.hpp>

namespace kvbench::llama {

Context::Context(const Model& model, const ContextOptions& options)
    : vocabulary_(static_cast<std::size_t>(model.vocabulary_size())),
      sequences_(options.two_sequences ? 2 : 1),
      hybrid_(model.is_hybrid()) {
  llama_context_params params = llama_context_default_params();
  params.n_ctx = static_cast<std::uint32_t>(options.num_tokens) * static_cast<std::uint32_t>(sequences_);
  params.n_seq_max = static_cast<std::uint32_t>(sequences_);
  params.kv_unified = false;                 // each sequence attends to the cells of its own cache only
  params.n_batch = params.n_ubatch = batch;  // one graph per decode call, because the callback does not get positions
  params.n_threads = params.n_threads_batch = options.threads;
  params.flash_attn_type = LLAMA_FLASH_ATTN_TYPE_DISABLED;
  params.type_k = params.type_v = GGML_TYPE_F32;
  params.offload_kqv = params.op_offload = false;
  params.swa_full = true;  // cell j of the cache is position j also in sliding-window layers
  params.cb_eval = options.on_node;
  params.cb_eval_user_data = options.user_data;
  params.abort_callback = options.stop;
  params.abort_callback_data = options.user_data;
  context_.reset(llama_init_from_model(model.handle(), params));
  if (!context_) {
    throw IoError("{}: a context of {} tokens could not be created, perhaps for lack of memory: give a smaller {}{}",
                  model.path(), options.num_tokens, options.shorter, first_llama_error());
  }
}

void Context::clear() { llama_memory_clear(llama_get_memory(context_.get()), true); }

void Context::keep_state(std::int64_t tokens) {
  if (!hybrid_) return;
  constexpr llama_seq_id prompt = static_cast<llama_seq_id>(Sequence::prompt);
  kept_tokens_ = tokens;
  kept_state_.resize(llama_state_seq_get_size_ext(context_.get(), prompt, LLAMA_STATE_SEQ_FLAGS_PARTIAL_ONLY));
  if (llama_state_seq_get_data_ext(context_.get(), kept_state_.data(), kept_state_.size(), prompt,
                                   LLAMA_STATE_SEQ_FLAGS_PARTIAL_ONLY) != kept_state_.size())
    throw Error("llama.cpp cannot write the state of its recurrent layers behind {} tokens{}", tokens,
                first_llama_error());
}

void Context::remove_from(std::int64_t begin) {
  if (hybrid_ && begin > 0) {
    if (begin != kept_tokens_) throw Error("the state of recurrent layers behind {} tokens was not kept", begin);
    if (llama_state_seq_set_data_ext(context_.get(), kept_state_.data(), kept_state_.size(),
                                     static_cast<llama_seq_id>(Sequence::prompt),
                                     LLAMA_STATE_SEQ_FLAGS_PARTIAL_ONLY) != kept_state_.size())
      throw Error("llama.cpp cannot read the state of its recurrent layers behind {} tokens{}", begin,
                  first_llama_error());
  }
  for (llama_seq_id sequence = 0; sequence < sequences_; ++sequence) {
    if (llama_memory_seq_rm(llama_get_memory(context_.get()), sequence, static_cast<llama_pos>(begin), -1)) continue;
    throw Error("llama.cpp cannot remove the tokens from position {} on from its cache", begin);
  }
}

bool Context::decode(std::vector<std::int32_t>& tokens, std::int64_t begin, int count) {
  return finished(llama_decode(context_.get(), llama_batch_get_one(tokens.data() + begin, count)), begin);
}

bool Context::decode_scored(const std::vector<std::int32_t>& tokens, std::int64_t begin, int count, Sequence sequence,
                            bool of_each) {
  std::vector<llama_token> ids(tokens.begin() + begin, tokens.begin() + begin + count);
  std::vector<llama_pos> positions;
  for (int i = 0; i < count; ++i) positions.push_back(static_cast<llama_pos>(begin) + i);
  std::vector<std::int8_t> wanted(static_cast<std::size_t>(count), of_each ? 1 : 0);
  wanted.back() = 1;
  llama_batch tokens_of_batch = llama_batch_get_one(ids.data(), count);
  llama_seq_id id = static_cast<llama_seq_id>(sequence);
  std::vector<std::int32_t> id_counts(static_cast<std::size_t>(count), 1);
  std::vector<llama_seq_id*> id_lists(static_cast<std::size_t>(count), &id);
  tokens_of_batch.n_seq_id = id_counts.data();
  tokens_of_batch.seq_id = id_lists.data();
  tokens_of_batch.pos = positions.data();
  tokens_of_batch.logits = wanted.data();
  scored_ = of_each ? static_cast<std::size_t>(count) : 1;
  return finished(llama_decode(context_.get(), tokens_of_batch), begin);
}

std::span<const float> Context::logits() const { return {llama_get_logits(context_.get()), scored_ * vocabulary_}; }

bool Context::finished(int status, std::int64_t begin) const {
  if (status == 2) return false;
  if (status != 0) throw Error("llama.cpp failed at token {} (status {}){}", begin, status, first_llama_error());
  return true;
}

}  // namespace kvbench::llama
