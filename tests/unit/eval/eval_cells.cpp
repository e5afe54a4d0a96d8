// SPDX-License-Identifier: Apache-2.0
#include <kvbench/eval/eval_cells.hpp>

#include <filesystem>

#include <doctest/doctest.h>

#include <kvbench/core/error.hpp>
#include <unit/trace/sample.hpp>

using namespace kvbench;
using namespace kvbench::eval;
using namespace kvbench::replay;
using trace::test::contains;
using trace::test::message_of;
using trace::test::TempFolder;
using Mode = store::FrameFile::Mode;

namespace {

const std::string first = eval_key("first"), second = eval_key("second"), third = eval_key("third");

EvalCell sample_cell() {
  EvalCell cell{.configuration = 7,
                .document = 5,
                .injection = {Inject::upto, 11},
                .reason = "layer 2 stays exact",
                .tokens = {{.kl = 0.25, .nll_full = 1, .nll = 2.5, .same_top = true, .right = true},
                           {.kl = 3, .right_full = true}},
                .layers = {{.layer = 4, .drift = 0.5}, {.layer = 9, .residual = 0.125}},
                .budget_tokens = 12.5,
                .kept_tokens = 11,
                .bytes = {.kv = 1, .meta = 2, .fast = 3, .slow = 4, .read = 5, .full = 6},
                .seconds = 1.5};
  cell.layers[1].metrics[2] = 0.75;
  return cell;
}

}  // namespace

TEST_CASE("cells and documents of an evaluation are read as they were stored") {
  const TempFolder folder;
  {
    EvalCells cells(folder / "e.cells", Mode::append);
    CHECK(!cells.has(first));
    cells.add(first, sample_cell());
    EvalCell skipped;
    skipped.status = Status::skipped, skipped.reason = "the model lacks it";
    cells.add(second, skipped);
    cells.add(third, EvaluatedDocument{.without_distant = {{.nll = 0.5, .right = true}}, .layers = {3, 5}});
  }
  const EvalCells cells(folder / "e.cells", Mode::read);
  const EvalCell cell = cells.cell(first, 2), expected = sample_cell();
  CHECK(cell.injection == expected.injection);
  CHECK(cell.reason == expected.reason);
  CHECK(cell.tokens[0].nll == 2.5);
  CHECK(cell.tokens[0].same_top);
  CHECK(!cell.tokens[0].right_full);
  CHECK(cell.tokens[1].right_full);
  CHECK(cell.layers[0].drift == 0.5);
  CHECK(std::isnan(cell.layers[0].residual));
  CHECK(cell.layers[1].metrics[2] == 0.75);
  CHECK(cell.layers[1].layer == 9);
  CHECK(cell.bytes.full == 6);
  CHECK(cell.bytes.slow == 4);
  CHECK(cell.seconds == 1.5);
  CHECK(cells.cell(second, 2).status == Status::skipped);
  CHECK(cells.document(third, 1).layers == std::vector<int>{3, 5});
  CHECK(cells.document(third, 1).without_distant[0].right);
}

TEST_CASE("records of another kind, or of another number of tokens, are refused") {
  const TempFolder folder;
  EvalCells cells(folder / "e.cells", Mode::append);
  cells.add(first, sample_cell());
  cells.add(third, EvaluatedDocument{.without_distant = {{.nll = 0.5}}, .layers = {5, 3}});
  CHECK(contains(message_of<Error>([&] { (void)cells.cell(first, 3); }), "compute them again"));
  CHECK(contains(message_of<Error>([&] { (void)cells.document(first, 2); }), "of another kind"));
  CHECK(contains(message_of<Error>([&] { (void)cells.document(third, 1); }), "the number of stored scores"));
}

TEST_CASE("keys depend on what is evaluated") {
  CHECK(first != second);
  CHECK(first.size() == 64);
  CHECK(eval_key("first") == first);
}
