// SPDX-License-Identifier: Apache-2.0
// Faults, interruption and threads.
#include <atomic>
#include <cmath>
#include <cstring>
#include <filesystem>
#include <limits>

#include <doctest/doctest.h>

#include <kvbench/methods/registry.hpp>

#include <support/fakes.hpp>
#include <support/small_trace.hpp>

using namespace kvbench;
using namespace kvbench::methods;
using namespace kvbench::replay;
using namespace kvbench::testing;

namespace {

MethodInfo throwing(std::string name, std::function<void()> fault) {
  return method_of(std::move(name),
                   [fault](const HeadPrompt&, Index, std::uint32_t, Backend&) -> std::unique_ptr<CompressedCache> {
                     fault();
                     return nullptr;
                   });
}

void check_status(const ReplayResults& results, std::size_t configuration, Status status, const std::string& reason) {
  for (const HeadResult& head : results.heads) {
    CHECK(head.results[configuration].status == status);
    CHECK_MESSAGE(contains(head.results[configuration].reason, reason), head.results[configuration].reason);
  }
}

bool same_bits(const std::vector<float>& a, const std::vector<float>& b) {
  return a.size() == b.size() && std::memcmp(a.data(), b.data(), a.size() * sizeof(float)) == 0;
}

std::vector<float> flat(const std::vector<MetricRow>& rows) {
  std::vector<float> values;
  for (const MetricRow& row : rows) values.insert(values.end(), row.begin(), row.end());
  return values;
}

}  // namespace

TEST_CASE("a fault of one method is the status of its configurations and does not affect others") {
  const SmallTrace trace;
  const MethodInfo good = fake_two_sets();
  const MethodInfo fails = throwing("fails", [] { throw std::runtime_error("its own sentence"); });
  const MethodInfo lacks = throwing("lacks", [] { throw Unavailable("nothing to eat"); });
  const MethodInfo cannot = throwing("cannot", [] { throw Infeasible("too little"); });
  const ReplayResults results =
      replay::replay(trace.reader(), request_of({&fails, &good, &lacks, &cannot, &good}, 5), serial);
  check_status(results, 0, Status::failed, "its own sentence");
  check_status(results, 1, Status::ok, "");
  check_status(results, 2, Status::skipped, "nothing to eat");
  check_status(results, 3, Status::infeasible, "too little");
  for (const HeadResult& head : results.heads) {
    CHECK(same_bits(flat(head.results[1].metrics), flat(head.results[4].metrics)));
    CHECK(metric(head.results[1], 0, Metric::rel_err) > 0);
  }
}

TEST_CASE("entries that break the contract fail with a message") {
  const SmallTrace trace;
  const MethodInfo twice = answering("twice", [](const QueryBlock&, Backend& b) { return ids_table(b, {3, 4, 3}); });
  const MethodInfo beyond = answering("beyond", [](const QueryBlock&, Backend& b) { return ids_table(b, {3, 40}); });
  const MethodInfo below = answering("below", [](const QueryBlock&, Backend& b) { return ids_table(b, {-2}); });
  const MethodInfo not_a_number = answering("nan", [](const QueryBlock&, Backend& b) {
    EntryTables tables = ids_table(b, {3, 4});
    tables[0].weight_num = b.adopt(std::vector<float>{1, std::numeric_limits<float>::quiet_NaN()}, 1, 2);
    return tables;
  });
  const MethodInfo good = answering("good", [](const QueryBlock&, Backend& b) { return ids_table(b, {3, 4, -1}); });
  const ReplayResults results =
      replay::replay(trace.reader(), request_of({&twice, &beyond, &below, &not_a_number, &good}, 5), serial);
  check_status(results, 0, Status::failed, "an id twice in N");
  check_status(results, 1, Status::failed, "an id out of range");
  check_status(results, 2, Status::failed, "an id out of range");
  check_status(results, 3, Status::failed, "a weight that is not finite");
  check_status(results, 4, Status::ok, "");
  CHECK(results.heads[0].results[4].kept_tokens == 2);
}

TEST_CASE("in prefill a method may not answer with tokens after its context") {
  const SmallTrace trace;
  const MethodInfo late = answering("late", [](const QueryBlock&, Backend& b) { return ids_table(b, {27, 28}); });
  ReplayRequest request = request_of({&late}, 5);
  request.protocol = Protocol::prefill;
  check_status(replay::replay(trace.reader(), request, serial), 0, Status::failed, "an id out of range");
}

TEST_CASE("without entries the answer is empty") {
  const SmallTrace trace;
  const MethodInfo none = answering("none", [](const QueryBlock&, Backend&) { return EntryTables{}; });
  const ReplayResults results = replay::replay(trace.reader(), request_of({&none}, 5), serial);
  check_status(results, 0, Status::ok, "");
  CHECK(metric(results.heads[0].results[0], 0, Metric::rel_err) == 1);
  CHECK(std::isnan(metric(results.heads[0].results[0], 0, Metric::log_z_err)));
  CHECK(std::isnan(metric(results.heads[0].results[0], 0, Metric::recall)));
}

TEST_CASE("a trace without a part skips the methods that need it") {
  trace::SynthOptions options = small_options();
  options.column_sums = false;
  options.num_queries = 12;
  const SmallTrace trace(options);
  MethodInfo sums = fake_two_sets(), observed = fake_two_sets(), pre_rope = fake_two_sets(),
             speculated = fake_two_sets();
  sums.needs = {Part::column_sums};
  observed.needs = {Part::observed_queries};
  pre_rope.needs = {Part::keys_pre_rope};
  speculated.needs = {Part::speculated_queries};
  const MethodInfo good = fake_two_sets();
  const ReplayResults results =
      replay::replay(trace.reader(), request_of({&sums, &observed, &pre_rope, &speculated, &good}, 5), serial);
  check_status(results, 0, Status::skipped, "--column-sums");
  check_status(results, 1, Status::skipped, "--queries");
  check_status(results, 2, Status::skipped, "--pre-rope");
  check_status(results, 3, Status::skipped, "speculated");
  check_status(results, 4, Status::ok, "");
}

TEST_CASE("an observing method is skipped where a decode step has no query") {
  trace::SynthOptions options = small_options();
  options.num_queries = 11;  // of 12 decoded tokens
  const SmallTrace trace(options);
  const MethodInfo info = fake_observer();
  check_status(replay::replay(trace.reader(), request_of({&info}, 5), serial), 0, Status::skipped, "--queries all");
}

TEST_CASE("the stop flag interrupts") {
  const SmallTrace trace;
  const MethodInfo info = fake_two_sets();
  const std::atomic<bool> stop = true;
  CHECK_THROWS_AS(replay::replay(trace.reader(), request_of({&info}, 5), serial, {.stop = &stop}), Interrupted);
}

TEST_CASE("a stop in the middle of a replay ends it at the next configuration") {
  const SmallTrace trace;
  std::atomic<bool> stop = false;
  int opened = 0;
  const MethodInfo stopping = method_of("stopping", [&](const HeadPrompt&, Index, std::uint32_t, Backend& backend) {
    ++opened;
    stop = true;
    return std::make_unique<FunctionCache>([&backend](const QueryBlock&) { return ids_table(backend, {0}); });
  });
  const ReplayRequest request = request_of({&stopping, &stopping, &stopping}, 5);
  CHECK_THROWS_AS(replay::replay(trace.reader(), request, serial, {.stop = &stop}), Interrupted);
  CHECK(opened == 1);
}

TEST_CASE("exhausted memory and input errors end the replay") {
  const SmallTrace trace;
  const MethodInfo memory = throwing("memory", [] { throw std::bad_alloc(); });
  const MethodInfo disk = throwing("disk", [] { throw IoError("the disk is gone"); });
  CHECK_THROWS_AS(replay::replay(trace.reader(), request_of({&memory}, 5), {.threads = 4}), std::bad_alloc);
  CHECK_THROWS_AS(replay::replay(trace.reader(), request_of({&disk}, 5), {.threads = 4}), IoError);
  const MethodInfo input = throwing("input", [] { throw Error("a file of the user is wrong"); });
  CHECK_THROWS_AS(replay::replay(trace.reader(), request_of({&input}, 5), {.threads = 4}), Error);
}

TEST_CASE("a trace that changes during a replay ends it") {
  const SmallTrace trace;
  const MethodInfo touching = answering("touching", [&](const QueryBlock&, Backend& backend) {
    std::filesystem::last_write_time(trace.reader().path(), std::filesystem::file_time_type::clock::now());
    return ids_table(backend, {0});
  });
  RunOptions options = serial;
  options.read_ahead_bytes = 0;
  CHECK_THROWS_WITH_AS(replay::replay(trace.reader(), request_of({&touching}, 5), options),
                       doctest::Contains("small.h5: the file was changed or replaced"), IoError);
}

TEST_CASE("progress counts every work item once, and grows while one is computed") {
  const SmallTrace trace;
  const MethodInfo info = fake_two_sets(), layer = fake_shared_layer();
  std::vector<double> seen;
  const auto progress = [&](double done, Index total) {
    seen.push_back(done);
    CHECK(total == 2 * (2 + 1));  // two layers: two heads and the layer
  };
  replay::replay(trace.reader(), request_of({&info, &layer}, 5), {.threads = 3}, {.progress = progress});
  CHECK(std::ranges::is_sorted(seen));
  CHECK(seen.back() == 6);
  CHECK(std::ranges::count_if(seen, [](double done) { return done != std::floor(done); }) >= 3);
}

TEST_CASE("results do not depend on the number of threads") {
  const SmallTrace trace;
  const std::vector<MethodInfo> fakes = all_fakes();
  std::vector<const MethodInfo*> methods = {&find_method("snapkv"), &find_method("random"), &find_method("subgen")};
  for (const MethodInfo& fake : fakes) methods.push_back(&fake);
  ReplayRequest request = request_of(methods, 6);
  request.methods[0].params = methods[0]->bind(std::vector<Assignment>{{"window", "3"}});
  const ReplayResults one = replay::replay(trace.reader(), request, serial);
  const ReplayResults four = replay::replay(trace.reader(), request, {.threads = 4});
  REQUIRE(one.heads.size() == four.heads.size());
  REQUIRE(one.configurations.size() == 1 + 5 + 5 + fakes.size());  // two of them with five seeds
  for (std::size_t h = 0; h < one.heads.size(); ++h) {
    CHECK(one.heads[h].place == four.heads[h].place);
    CHECK(one.heads[h].positions == four.heads[h].positions);
    for (std::size_t c = 0; c < one.configurations.size(); ++c) {
      const ConfigurationResult &a = one.heads[h].results[c], &b = four.heads[h].results[c];
      CAPTURE(methods[one.configurations[c].method]->name);
      CHECK(a.status == b.status);
      CHECK(a.reason == b.reason);
      CHECK(same_bits(flat(a.metrics), flat(b.metrics)));
      CHECK(a.kept_tokens == b.kept_tokens);
      CHECK(a.bytes.kv == b.bytes.kv);
      CHECK(a.bytes.read == b.bytes.read);
      CHECK(a.compress_flops == b.compress_flops);
    }
  }
}

// Clusters of a seed, whole merge rounds and centres are computed on first use and then shared by other budgets.
TEST_CASE("standalone configurations have the costs of each alone, and the same entries as together") {
  const SmallTrace trace;
  const auto run = [&](const MethodInfo& info, const std::vector<Assignment>& settings, std::vector<Budget> budgets,
                       std::vector<std::uint32_t> seeds, bool standalone) {
    ReplayRequest request = request_of(info, settings, 7);
    request.budgets = std::move(budgets);
    request.seeds = std::move(seeds);
    request.standalone = standalone;
    return replay::replay(trace.reader(), request, serial);
  };
  const std::vector<std::pair<const char*, std::vector<Assignment>>> methods = {
      {"clusterkv", {{"sinks", "1"}, {"clusters", "4"}}},
      {"chelsea", {{"chunk", "4"}, {"sinks", "1"}, {"recent", "2"}}},
      {"balancekv", {{"block", "4"}}},
      {"subgen-kcenter", {{"recent", "0"}}}};
  for (const auto& method : methods) {
    const auto& name = method.first;
    const auto& settings = method.second;
    CAPTURE(name);
    const MethodInfo& info = find_method(name);
    const std::vector<Budget> budgets = {Budget::tokens(8), Budget::tokens(7), Budget::tokens(9)};
    const ReplayResults together = run(info, settings, budgets, {3, 4}, false),
                        apart = run(info, settings, budgets, {3, 4}, true);
    REQUIRE(apart.configurations.size() == 3 * (info.depends_on_seed(info.bind(settings)) ? 2 : 1));
    double shared_flops = 0, own_flops = 0;
    for (std::size_t c = 0; c < apart.configurations.size(); ++c) {
      const Configuration& key = apart.configurations[c];
      const ReplayResults alone = run(info, settings, {budgets[key.budget]}, {key.seed}, false);
      REQUIRE(alone.configurations.size() == 1);
      for (std::size_t h = 0; h < apart.heads.size(); ++h) {
        const ConfigurationResult &expected = alone.heads[h].results[0], &own = apart.heads[h].results[c],
                                  &shared = together.heads[h].results[c];
        CHECK(expected.compress_flops > 0);
        CHECK(own.compress_flops == expected.compress_flops);
        CHECK(own.peak_bytes == expected.peak_bytes);
        CHECK(own.kept_tokens == expected.kept_tokens);
        CHECK(shared.kept_tokens == expected.kept_tokens);
        CHECK(shared.compress_flops <= expected.compress_flops);
        shared_flops += shared.compress_flops;
        own_flops += own.compress_flops;
      }
    }
    CHECK((shared_flops < own_flops) == (std::string(name) != "balancekv"));  // whose blocks share nothing
  }
}
