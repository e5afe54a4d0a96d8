// SPDX-License-Identifier: Apache-2.0
#include <kvbench/eval/pass_file.hpp>

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

const std::string first(64, '1'), second(64, '2'), third(64, '3');

PassResult sample_pass() {
  PassResult pass{.configuration = 7,
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
  pass.layers[1].metrics[2] = 0.75;
  return pass;
}

}  // namespace

TEST_CASE("passes and documents of an evaluation are read as they were stored") {
  const TempFolder folder;
  {
    PassFile file(folder / "e.cells", Mode::append);
    CHECK(!file.has(first));
    file.add(first, sample_pass());
    PassResult skipped;
    skipped.status = Status::skipped, skipped.reason = "the model lacks it";
    file.add(second, skipped);
    file.add(third, EvaluatedDocument{.without_distant = {{.nll = 0.5, .right = true}}, .layers = {3, 5}});
  }
  const PassFile file(folder / "e.cells", Mode::read);
  const PassResult pass = file.pass(first, 2), expected = sample_pass();
  CHECK(pass.injection == expected.injection);
  CHECK(pass.reason == expected.reason);
  CHECK(pass.tokens[0].nll == 2.5);
  CHECK(pass.tokens[0].same_top);
  CHECK(!pass.tokens[0].right_full);
  CHECK(pass.tokens[1].right_full);
  CHECK(pass.layers[0].drift == 0.5);
  CHECK(std::isnan(pass.layers[0].residual));
  CHECK(pass.layers[1].metrics[2] == 0.75);
  CHECK(pass.layers[1].layer == 9);
  CHECK(pass.bytes.full == 6);
  CHECK(pass.bytes.slow == 4);
  CHECK(pass.seconds == 1.5);
  CHECK(file.pass(second, 2).status == Status::skipped);
  CHECK(file.document(third, 1).layers == std::vector<int>{3, 5});
  CHECK(file.document(third, 1).without_distant[0].right);
}

TEST_CASE("records of another kind, or of another number of tokens, are refused") {
  const TempFolder folder;
  PassFile file(folder / "e.cells", Mode::append);
  file.add(first, sample_pass());
  file.add(third, EvaluatedDocument{.without_distant = {{.nll = 0.5}}, .layers = {5, 3}});
  CHECK(contains(message_of<Error>([&] { (void)file.pass(first, 3); }), "compute them again"));
  CHECK(contains(message_of<Error>([&] { (void)file.document(first, 2); }), "of another kind"));
  CHECK(contains(message_of<Error>([&] { (void)file.document(third, 1); }), "the number of stored scores"));
}
