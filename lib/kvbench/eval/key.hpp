// SPDX-License-Identifier: Apache-2.0
// What the stored records of an evaluation depend on.
#pragma once

#include <kvbench/eval/results.hpp>
#include <kvbench/store/key.hpp>

namespace kvbench::eval {

/// What all passes of a document depend on. Threads and memory change no bit.
struct DocumentInputs {
  std::string model;  ///< its digest
  bool f32 = true;
  bool one_at_a_time = false;
  std::string device, isa;
  std::vector<int> layers;  ///< that are captured
  std::string request;      ///< replay::stored_text()
  std::string protocol;     ///< EvalProtocol::text()
  std::string generate;     ///< EvalSettings::generate; if it is not empty, the scored tokens follow from the others
  std::vector<int> context, scored;
  std::vector<Index> compressed_at = {};  ///< TaskDocument::compressed_at
  std::vector<Index> message_ends = {};   ///< of TaskDocument::messages, each of which begins where another ends
};

template <class A>
void visit(A& archive, DocumentInputs& v) {
  auto& [model, f32, one_at_a_time, device, isa, layers, request, protocol, generate, context, scored, compressed_at,
         message_ends] = v;
  archive(model, f32, one_at_a_time, device, isa, layers, request, protocol, generate, context, scored, compressed_at,
          message_ends);
}

struct PassInputs {
  std::string document;  ///< its key
  store::MethodInputs method;
  std::string budget;
  std::uint32_t seed = 0;
  Injection injection;
};

template <class A>
void visit(A& archive, Injection& v) {
  auto& [mode, layer, scale] = v;
  archive(mode, layer, scale);
}

template <class A>
void visit(A& archive, PassInputs& v) {
  auto& [document, method, budget, seed, injection] = v;
  archive(document, method, budget, seed, injection);
}

}  // namespace kvbench::eval
