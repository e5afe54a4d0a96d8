// SPDX-License-Identifier: Apache-2.0
#include <kvbench/eval/eval_cells.hpp>

#include <algorithm>

#include <fmt/format.h>

#include <kvbench/core/version.hpp>
#include <kvbench/store/values.hpp>
#include <kvbench/trace/sha256.hpp>

namespace kvbench::store {

template <>
inline constexpr std::uint64_t enum_size<eval::Inject> = 4;

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
void visit(A& archive, eval::EvalCell& v) {
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

enum EvalKind : std::uint32_t { eval_cell_kind = 16, eval_document_kind = 17 };  // below: those of sweeps

void require(bool whole) {
  if (!whole) throw std::out_of_range("the number of stored scores is wrong");
}

}  // namespace

void EvalCells::add(const std::string& key, EvalCell cell) { file_.append(eval_cell_kind, key, store::encode(cell)); }

void EvalCells::add(const std::string& key, EvaluatedDocument document) {
  file_.append(eval_document_kind, key, store::encode(document));
}

EvalCell EvalCells::cell(const std::string& key, std::size_t tokens) const {
  return file_.decoded(key, eval_cell_kind, [&](std::string_view bytes) {
    auto cell = store::decode<EvalCell>(bytes);
    require(cell.status != replay::Status::ok || cell.tokens.size() == tokens);
    return cell;
  });
}

EvaluatedDocument EvalCells::document(const std::string& key, std::size_t tokens) const {
  return file_.decoded(key, eval_document_kind, [&](std::string_view bytes) {
    auto document = store::decode<EvaluatedDocument>(bytes);
    require(document.without_distant.size() == tokens && std::ranges::is_sorted(document.layers));
    return document;
  });
}

std::string eval_key(const std::string& what) {
  return trace::Sha256().add(fmt::format("{} {} {}", version(), commit(), what)).hex();
}

}  // namespace kvbench::eval
