// SPDX-License-Identifier: Apache-2.0
// Conversations in DocumentRun: their caches are compressed again and again.
#include <apps/kveval/document_pass.hpp>

#include <algorithm>

#include <kvbench/loop/conversation.hpp>
#include <kvbench/replay/run/devices.hpp>

#include <apps/common/stop_signals.hpp>

namespace kvbench::kveval {

loop::LayerAnswer DocumentRun::answer_held(std::size_t layer, const llama::LayerCapture& captured, Part& part) {
  const HeldArrays arrays = part.held->arrays(layer, captured, part.observed, part.count);
  const Index appended = part.keeps_decoded ? 0 : part.count;  // what the harness keeps is in no byte
  loop::LayerAnswer answer = loop::in_conversation(part.loop.answer(layer, {arrays.keys,
                                                                            arrays.values,
                                                                            arrays.queries,
                                                                            {},
                                                                            arrays.column_sums,
                                                                            projection_of(machine_, captured.layer)}),
                                                   part.begin, part.held->size(), appended);
  if (answer.status != replay::Status::ok) return answer;
  part.held->number(layer, answer.held);
  const bool last = part.begin + part.count == begin_ + count_;
  if (!last && !machine_.options.compressions.from_exact()) {
    if (!answer.no_tokens.empty()) throw Ended{replay::Status::skipped, answer.no_tokens};
    part.held->keep(layer, answer.held);
  }
  return answer;
}

/// The document of a part of a conversation: `held` tokens of the context and `count` more.
trace::TraceInfo DocumentRun::describe_part(const HeldContext& held, Index observed, Index count, bool sums) const {
  const Index tokens = held.size() + count;
  const std::vector<std::int32_t> ids(tokens_.begin(), tokens_.begin() + tokens);  // no method reads them
  trace::TraceInfo info = describe(machine_, machine_.injector.capture(), layers_, ids, held.size(),
                                   positions_from(held.size() - observed, observed + count));
  for (trace::LayerInfo& layer : info.prompts.front().layers) {
    layer.speculated_queries = false;
    layer.rope_theta = 0;
    if (!sums) layer.column_sums_end.reset();
  }
  return info;
}

std::vector<const llama::LayerCapture*> DocumentRun::captured() const {
  std::vector<const llama::LayerCapture*> out;
  for (const int layer : layers_) out.push_back(machine_.injector.capture().layer(layer));
  return out;
}

/// The exact cache of the tokens before `end`, in place of what the conversation left there.
void DocumentRun::read_exactly(const Pass& pass, Index end) {
  machine_.injector.capture().restore(full_layers_);
  if (pass.sequence == llama::Sequence::scored) return;  // where llama.cpp's cache answers no token
  machine_.context.remove_from(first_);
  machine_.injector.set_active(false);
  Index next = begin_;
  for (const int size : batches_of(end - begin_)) {
    decode(tokens_, next, size, pass.sequence);
    next += size;
  }
  machine_.injector.set_active(true);
}

void DocumentRun::run_conversation(Pass& pass, const loop::LoopConfiguration& configuration) {
  if (!loop::limits_conversations(configuration)) throw Ended{replay::Status::infeasible, std::string(loop::no_limit)};
  const methods::MethodInfo& method = *configuration.method.info;
  // What observes attention while tokens are decoded begins with that of the context.
  const bool sums = method.observes || std::ranges::count(method.needs, methods::Part::column_sums) > 0;
  const std::vector<Index>& points = document_.compressed_at;
  replay::ReplayRequest request = machine_.options.request;
  const bool again = machine_.options.compressions.again();
  if (again && loop::drops_decoded(method)) {
    request.decoded = replay::Decoded::keep;
    pass.note = loop::drops_at_compressions;
  }
  machine_.context.remove_from(first_);
  machine_.injector.capture().restore(full_layers_);
  pass.logits.clear(), pass.layers.clear();
  HeldContext held(captured(), begin_, sums);
  for (std::size_t k = 0; k < points.size(); ++k) {
    const Index end = k + 1 < points.size() ? points[k + 1] : begin_ + count_, count = end - points[k];
    if (k > 0 && machine_.options.compressions.from_exact()) {
      read_exactly(pass, points[k]);
      held.hold_all(points[k - 1]);
      held.add_attention(captured(), points[k] - points[k - 1], thread_count(machine_.options.how));
      held.hold_all(points[k]);
    }
    const Index observed = held.observed(observation_window);
    Part part{points[k],
              count,
              loop::LayerLoop(describe_part(held, observed, count, sums), request, machine_.options.how,
                              &app::stop_requested()),
              &held,
              observed,
              request.decoded == replay::Decoded::keep};
    part.loop.start(loop::compression_of(configuration, points[k], held.size()));
    for (Index next = 0; next < count;) {
      const Index step = machine_.options.one_at_a_time ? 1 : std::min<Index>(count - next, llama::Context::batch);
      pass_tokens(pass, part, points[k] + next, step);
      next += step;
    }
    if (k + 1 == points.size() || machine_.options.compressions.from_exact()) continue;
    held.add_attention(captured(), count, thread_count(machine_.options.how));
    const std::string why = held.advance(count);
    if (!why.empty()) throw Ended{replay::Status::skipped, why};
  }
}

}  // namespace kvbench::kveval
