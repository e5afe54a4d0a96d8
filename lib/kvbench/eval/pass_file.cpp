// SPDX-License-Identifier: Apache-2.0
#include <kvbench/eval/pass_file.hpp>

#include <algorithm>

#include <kvbench/store/values.hpp>

namespace kvbench::store {

template <class A>
void visit(A& archive, eval::TokenScore& v) {
  archive(v.kl, v.nll_full, v.nll, v.same_top, v.right_full, v.right);
}

template <class A>
void visit(A& archive, eval::ShortScore& v) {
  archive(v.nll, v.right);
}

template <class A>
void visit(A& archive, eval::LayerErrors& v) {
  archive(v.layer, v.drift, v.residual);
  for (double& metric : v.metrics) archive(metric);
}

template <class A>
void visit(A& archive, eval::PassResult& v) {
  archive(v.injection.mode, v.injection.layer, v.status, v.reason, v.tokens, v.layers, v.budget_tokens, v.kept_tokens,
          v.bytes, v.seconds);
}

template <class A>
void visit(A& archive, eval::EvaluatedDocument& v) {
  archive(v.without_distant, v.layers);
}

}  // namespace kvbench::store

namespace kvbench::eval {
namespace {

enum RecordKind : std::uint32_t { pass_kind = 16, document_kind = 17 };  // below: those of sweeps

void require(bool whole) {
  if (!whole) throw std::out_of_range("the number of stored scores is wrong");
}

}  // namespace

void PassFile::add(const std::string& key, PassResult pass) { file_.append(pass_kind, key, store::encode(pass)); }

void PassFile::add(const std::string& key, EvaluatedDocument document) {
  file_.append(document_kind, key, store::encode(document));
}

PassResult PassFile::pass(const std::string& key, std::size_t tokens) const {
  return file_.decoded(key, pass_kind, [&](std::string_view bytes) {
    auto pass = store::decode<PassResult>(bytes);
    require(pass.status != replay::Status::ok || pass.tokens.size() == tokens);
    return pass;
  });
}

EvaluatedDocument PassFile::document(const std::string& key, std::size_t tokens) const {
  return file_.decoded(key, document_kind, [&](std::string_view bytes) {
    auto document = store::decode<EvaluatedDocument>(bytes);
    require(document.without_distant.size() == tokens && std::ranges::is_sorted(document.layers));
    return document;
  });
}

}  // namespace kvbench::eval
