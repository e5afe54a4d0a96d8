// SPDX-License-Identifier: Apache-2.0
#include <cmath>
#include <functional>

#include <doctest/doctest.h>

#include <kvbench/core/error.hpp>
#include <kvbench/eval/key.hpp>
#include <kvbench/eval/pass_file.hpp>

#include <support/changed_inputs.hpp>
#include <support/messages.hpp>
#include <support/temp_folder.hpp>

using namespace kvbench;
using namespace kvbench::eval;
using namespace kvbench::replay;
using namespace kvbench::testing;

using Mode = store::FrameFile::Mode;

namespace {

const std::string first(64, '1'), second(64, '2'), third(64, '3');

const std::vector<int> layers{3, 4, 5, 9};
const ScoredDocument of_one{1, layers}, of_two{.tokens = 2, .layers = layers, .messages = 2};

PassResult sample_pass() {
  PassResult pass{.configuration = 7,
                  .document = 5,
                  .injection = {Inject::upto, 11},
                  .reason = "layer 2 stays exact",
                  .tokens = {{.kl = 0.25, .nll_full = 1, .nll = 2.5, .same_top = true, .right = true},
                             {.kl = 3, .right_full = true}},
                  .layers = {{.layer = 4, .drift = 0.5}, {.layer = 9, .residual = 0.125}},
                  .needles = {0.5, 0.25},
                  .messages = {{0.125, 0.75}, {1, 0}},
                  .budget_tokens = 12.5,
                  .kept_tokens = 11,
                  .bytes = {.kv = 1, .meta = 2, .fast = 3, .slow = 4, .read = 5, .full = 6},
                  .seconds = 1.5};
  pass.layers[1].metrics[Metric::err_bound_op] = 0.75;
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
  const PassResult pass = file.pass(first, {Inject::upto, 11}, of_two), expected = sample_pass();
  CHECK(pass.injection == expected.injection);
  CHECK(pass.reason == expected.reason);
  CHECK(pass.tokens[0].nll == 2.5);
  CHECK(pass.tokens[0].same_top);
  CHECK(!pass.tokens[0].right_full);
  CHECK(pass.tokens[1].right_full);
  CHECK(pass.layers[0].drift == 0.5);
  CHECK(std::isnan(pass.layers[0].residual));
  CHECK(pass.layers[1].metrics[Metric::err_bound_op] == 0.75);
  CHECK(pass.layers[1].layer == 9);
  CHECK((pass.needles.kept == 0.5 && pass.needles.lost == 0.25));
  CHECK((pass.messages[0].kept == 0.125 && pass.messages[0].lost == 0.75 && pass.messages[1].kept == 1));
  CHECK(pass.bytes.full == 6);
  CHECK(pass.bytes.slow == 4);
  CHECK(pass.seconds == 1.5);
  CHECK(file.pass(second, {Inject::all, -1}, of_two).status == Status::skipped);
  CHECK(file.document(third, of_one).layers == std::vector<int>{3, 5});
  CHECK(file.document(third, of_one).without_distant[0].right);
}

TEST_CASE("records of another kind, or of another number of tokens, are refused") {
  const TempFolder folder;
  PassFile file(folder / "e.cells", Mode::append);
  file.add(first, sample_pass());
  file.add(third, EvaluatedDocument{.without_distant = {{.nll = 0.5}}, .layers = {5, 3}});
  CHECK(contains(message_of<Error>([&] {
                   (void)file.pass(first, {Inject::upto, 11}, {3, layers});
                 }),
                 "compute them again"));
  CHECK(contains(message_of<Error>([&] { (void)file.document(first, of_two); }), "of another kind"));
  CHECK(contains(message_of<Error>([&] { (void)file.document(third, of_one); }), "the stored layers"));
}

TEST_CASE("a pass that cannot be right is refused, whatever its checksum") {
  const std::pair<const char*, std::function<void(PassResult&)>> changes[] = {
      {"another injection", [](PassResult& p) { p.injection.mode = Inject::all; }},
      {"another injection", [](PassResult& p) { p.injection.layer = 1LL << 40; }},
      {"another injection", [](PassResult& p) { p.injection.scale = 0.5; }},
      {"number of stored scores", [](PassResult& p) { p.tokens.emplace_back(); }},
      {"number of stored scores", [](PassResult& p) { p.tokens.clear(); }},
      {"number of stored scores", [](PassResult& p) { p.status = Status::failed; }},
      {"score", [](PassResult& p) { p.tokens[0].kl = -1; }},
      {"score", [](PassResult& p) { p.tokens[0].nll = NAN; }},
      {"score", [](PassResult& p) { p.tokens[1].nll_full = -INFINITY; }},
      {"the stored layers", [](PassResult& p) { p.layers[0].layer = -1; }},
      {"the stored layers", [](PassResult& p) { p.layers[1].layer = 1LL << 33 | 9; }},
      {"the stored layers", [](PassResult& p) { p.layers[1].layer = 4; }},
      {"the stored layers", [](PassResult& p) { std::swap(p.layers[0], p.layers[1]); }},
      {"limits", [](PassResult& p) { p.layers[1].metrics[Metric::rel_err] = -0.5; }},
      {"share of held tokens", [](PassResult& p) { p.needles.lost = 1.5; }},
      {"share of held tokens", [](PassResult& p) { p.messages[1].kept = -0.5; }},
      {"number of messages", [](PassResult& p) { p.messages.emplace_back(); }},
      {"negative", [](PassResult& p) { p.layers[0].drift = -1; }},
      {"negative", [](PassResult& p) { p.layers[1].residual = -INFINITY; }},
      {"length of a stored answer", [](PassResult& p) { p.answer = {1}; }},
      {"cost", [](PassResult& p) { p.budget_tokens = NAN; }},
      {"cost", [](PassResult& p) { p.kept_tokens = -1; }},
      {"cost", [](PassResult& p) { p.bytes.read = INFINITY; }},
      {"cost", [](PassResult& p) { p.seconds = -1; }},
      {"UTF-8", [](PassResult& p) { p.reason = "\xff"; }},
      {"control character", [](PassResult& p) { p.reason = "\x1b[2J"; }},
  };
  for (const auto& change : changes) {
    CAPTURE(change.first);
    const TempFolder folder;
    PassFile file(folder / "e.cells", Mode::append);
    PassResult pass = sample_pass();
    change.second(pass);
    file.add(first, pass);
    CHECK(contains(message_of<Error>([&] { (void)file.pass(first, {Inject::upto, 11}, of_two); }), change.first));
  }
}

TEST_CASE("answers of documents that are continued are read as they were stored") {
  const TempFolder folder;
  PassFile file(folder / "e.cells", Mode::append);
  PassResult pass = sample_pass(), skipped;
  pass.answer = {5, 6, 7}, pass.messages.clear(), skipped.status = Status::skipped;
  file.add(first, pass);
  file.add(second, skipped);
  file.add(third, EvaluatedDocument{.without_distant = {{}, {}}, .layers = {3}, .answer = {5, 6, 9}});
  const auto refusal = [&](Index generate) {
    return message_of<Error>([&] { (void)file.pass(first, {Inject::upto, 11}, {2, layers, generate}); });
  };
  CHECK(file.pass(first, {Inject::upto, 11}, {2, layers, 3}).answer == std::vector{5, 6, 7});
  CHECK(file.pass(second, {}, {2, layers, 3}).answer.empty());
  CHECK(file.document(third, {99, layers, 4}).answer == std::vector{5, 6, 9});
  CHECK(contains(refusal(2), "length of a stored answer"));
  CHECK(contains(refusal(0), "length of a stored answer"));
  CHECK(contains(message_of<Error>([&] { (void)file.document(third, {2, layers, 2}); }), "length of a stored answer"));
  pass.answer[1] = -1;
  file.add(std::string(64, '4'), pass);
  CHECK(contains(message_of<Error>([&] {
                   (void)file.pass(std::string(64, '4'), {Inject::upto, 11}, {2, layers, 3});
                 }),
                 "negative"));
}

TEST_CASE("a document that cannot be right is refused, whatever its checksum") {
  const std::pair<const char*, std::function<void(EvaluatedDocument&)>> changes[] = {
      {"number of stored scores", [](EvaluatedDocument& d) { d.without_distant.clear(); }},
      {"score", [](EvaluatedDocument& d) { d.without_distant[0].nll = NAN; }},
      {"score", [](EvaluatedDocument& d) { d.without_distant[0].nll = -3; }},
      {"the stored layers", [](EvaluatedDocument& d) { d.layers.clear(); }},
      {"the stored layers",
       [](EvaluatedDocument& d) {
         d.layers = {3, 3};
       }},
      {"the stored layers",
       [](EvaluatedDocument& d) {
         d.layers = {3, 2'000'000'000};
       }},
      {"the stored layers", [](EvaluatedDocument& d) { d.layers = {-1}; }},
  };
  for (const auto& change : changes) {
    CAPTURE(change.first);
    const TempFolder folder;
    PassFile file(folder / "e.cells", Mode::append);
    EvaluatedDocument document{.without_distant = {{.nll = 0.5}}, .layers = {3, 5}};
    change.second(document);
    file.add(third, document);
    CHECK(contains(message_of<Error>([&] { (void)file.document(third, of_one); }), change.first));
  }
}

TEST_CASE_TEMPLATE("every input of a record of an evaluation changes its key", Inputs, eval::DocumentInputs,
                   eval::PassInputs) {
  const int members = testing::number_of_members<Inputs>();
  CHECK(members >= 8);
  CHECK(static_cast<int>(testing::keys_of_changed<Inputs>().size()) == members + 1);
}
