// SPDX-License-Identifier: Apache-2.0
// Budgets that limit a cost: the search, and "realised <= requested" for every row of the registry in every protocol.
#include <doctest/doctest.h>

#include <support/rows.hpp>
#include <support/small_trace.hpp>

#include <kvbench/replay/answer/cost_budget.hpp>

using namespace kvbench;
using namespace kvbench::methods;
using namespace kvbench::replay;
using namespace kvbench::testing;

namespace {

/// What the search returns for a cost, and how often it evaluates it.
std::pair<Index, int> search(double limit, Index guess, Index most, const std::function<double(Index)>& cost) {
  int evaluations = 0;
  const Index found = largest_within(limit, guess, most, [&](Index tokens) {
    ++evaluations;
    return cost(tokens);
  });
  return {found, evaluations};
}

/// 600 tokens: the windows of all methods fit into a quarter of the context.
trace::SynthOptions long_options() {
  trace::SynthOptions options = small_options();
  options.num_tokens = 640;
  options.prompt_tokens = 600;
  options.num_queries = 80;
  options.column_queries = 32;
  return options;
}

double realised(const Bytes& bytes, CostKind cost) {
  return (cost == CostKind::memory ? bytes.kv + bytes.meta
          : cost == CostKind::fast ? bytes.fast
                                   : bytes.read) /
         bytes.full;
}

ReplayRequest limited(Protocol protocol, std::vector<std::string> budgets) {
  ReplayRequest request;
  for (const Row& row : all_rows()) request.methods.push_back({row.info, row.params});
  request.budgets.clear();
  for (const std::string& budget : budgets) request.budgets.push_back(Budget::parse(budget));
  request.seeds = {0};
  request.protocol = protocol;
  return request;
}

/// The realised cost of a configuration over all heads of a trace, relative to the full cache; NaN where no head is ok.
double total(const ReplayResults& results, std::size_t c, CostKind cost) {
  double held = 0, full = 0;
  for (const HeadResult& head : results.heads) {
    const ConfigurationResult& result = head.results[c];
    if (result.status != Status::ok) continue;
    held += realised(result.bytes, cost) * result.bytes.full, full += result.bytes.full;
  }
  return held / full;
}

ReplayResults at_costs(const SmallTrace& trace, const MethodInfo& method, const std::vector<std::string>& budgets,
                       int threads) {
  ReplayRequest request = request_of({&method}, 1);
  request.budgets.clear();
  for (const std::string& budget : budgets) request.budgets.push_back(Budget::parse(budget));
  return replay::replay(trace.reader(), request, {.threads = threads});
}

MethodInfo searched_alone(MethodInfo method) {
  method.properties.equal_bytes = Property::no("each work item searches");
  return method;
}

}  // namespace

TEST_CASE("the search finds the largest number of tokens within the limit") {
  const auto line = [](Index tokens) { return 0.1 + 0.001 * static_cast<double>(tokens); };
  CHECK(search(0.25, 250, 1000, line).first == 150);  // 0.1 + 0.15
  CHECK(search(0.2505, 10, 1000, line).first == 150);
  CHECK(search(1.1, 250, 1000, line).first == 1000);
  CHECK(search(0.25, 250, 1000, line).second <= 5);
  const auto steps = [](Index tokens) { return 0.01 * static_cast<double>((tokens + 15) / 16); };
  CHECK(search(0.25, 100, 1000, steps).first == 400);  // 25 pages of 16
  const auto square = [](Index tokens) { return 1e-6 * static_cast<double>(tokens * tokens); };
  CHECK(search(0.25, 3, 1000, square).first == 500);
}

TEST_CASE("where the cost is the same at two numbers, the search goes to the last one") {
  int evaluations = 0;
  const auto flat = [&](Index) { return ++evaluations, 0.5; };
  CHECK(search(1, 250, 1000, flat) == std::pair<Index, int>(1000, 3));  // 250, twice of it by the line through 0, 1000
  evaluations = 0;
  CHECK_THROWS_AS(search(0.25, 250, 1000, flat), Infeasible);
  CHECK(evaluations == 3);  // 250, 125, 1
}

TEST_CASE("a limit below the smallest cost is infeasible, and the reason names that cost") {
  const auto line = [](Index tokens) { return 0.5 + 0.001 * static_cast<double>(tokens); };
  CHECK(contains(message_of<Infeasible>([&] { search(0.25, 250, 1000, line); }),
                 "at least 50.1 % of the full cache, with 1 token;"));
  const auto minimum = [](Index tokens) {
    if (tokens < 13) throw Infeasible("needs 13 tokens");
    return 0.02 * static_cast<double>(tokens);
  };
  CHECK(search(0.3, 2, 100, minimum).first == 15);
  CHECK(contains(message_of<Infeasible>([&] { search(0.25, 50, 100, minimum); }),
                 "at least 26 % of the full cache, with 13 tokens"));
  CHECK(contains(message_of<Infeasible>([&] { search(0.25, 2, 12, minimum); }), "needs 13 tokens"));
}

TEST_CASE("a limit of work that ends the search below the budget is its reason") {
  const auto limited = [](Index tokens) {
    if (tokens > 40) throw Infeasible("too many pairs");
    return 0.01 * static_cast<double>(tokens);
  };
  CHECK(search(0.3, 20, 100, limited).first == 30);
  CHECK(search(0.3, 38, 100, limited).first == 30);
  for (const Index guess : {1, 20, 39, 60}) {
    CAPTURE(guess);
    CHECK(message_of<Infeasible>([&] { search(0.9, guess, 100, limited); }) == "too many pairs");
  }
}

TEST_CASE("no method costs more than the budget allows, over all layers, in any protocol") {
  const SmallTrace trace(long_options());
  const std::vector<std::pair<std::string, CostKind>> limits = {
      {"40%mem", CostKind::memory}, {"40%fast", CostKind::fast}, {"40%read", CostKind::read}};
  for (const Protocol protocol : {Protocol::prefill, Protocol::decode, Protocol::stream}) {
    const ReplayRequest request = limited(protocol, {"40%mem", "40%fast", "40%read"});
    const ReplayResults results = replay::replay(trace.reader(), request, {.threads = 1});
    int ok = 0;
    for (std::size_t c = 0; c < results.configurations.size(); ++c) {
      const Configuration& key = results.configurations[c];
      CAPTURE(name_of(protocol));
      CAPTURE(request.methods[key.method].info->name);
      CAPTURE(request.methods[key.method].params.text());
      CAPTURE(request.budgets[key.budget].text());
      CAPTURE(results.heads[0].results[c].reason);
      for (const HeadResult& head : results.heads) CHECK(head.results[c].status != Status::failed);
      const double share = total(results, c, limits[key.budget].second);
      ok += !std::isnan(share);
      CHECK_FALSE(share > 0.4 + 1e-9);
    }
    CHECK(ok > (protocol == Protocol::stream ? 10 : 40));
  }
}

TEST_CASE(
    "a method that keeps tokens comes within one token of the limit; one that holds everything does not meet it") {
  const SmallTrace trace(long_options());
  ReplayRequest request = request_of({&find_method("random"), &find_method("quest"), &find_method("pyramidkv")}, 1);
  request.budgets = {Budget::parse("25%mem"), Budget::parse("25%read")};
  request.protocol = Protocol::prefill;
  request.methods[2].params = find_method("pyramidkv").bind(std::vector<Assignment>{{"window", "4"}});
  const ReplayResults results = replay::replay(trace.reader(), request, {.threads = 1});
  const auto result = [&](std::size_t method, std::size_t budget, std::size_t head) -> const ConfigurationResult& {
    for (std::size_t c = 0; c < results.configurations.size(); ++c) {
      if (results.configurations[c].method == method && results.configurations[c].budget == budget)
        return results.heads[head].results[c];
    }
    throw std::logic_error("no such configuration");
  };
  const ConfigurationResult& random = result(0, 0, 0);
  REQUIRE(random.status == Status::ok);
  const double token = realised(random.bytes, CostKind::memory) / static_cast<double>(random.budget_tokens);
  CHECK(realised(random.bytes, CostKind::memory) <= 0.25);
  CHECK(realised(random.bytes, CostKind::memory) > 0.25 - token);
  CHECK(result(1, 0, 0).status == Status::infeasible);
  CHECK(contains(result(1, 0, 0).reason, "of the full cache"));
  CHECK(contains(result(1, 0, 0).reason, "--budget 25%read"));
  CHECK(result(1, 1, 0).status == Status::ok);
  // Layers have different budgets; their sum meets the limit, not each of them.
  const double first = realised(result(2, 0, 0).bytes, CostKind::memory),
               last = realised(result(2, 0, 3).bytes, CostKind::memory);
  CHECK(first > 0.25);
  CHECK(last < 0.25);
  CHECK(first + last <= 0.5);
  CHECK(first + last > 0.48);
}

TEST_CASE("a budget of bytes that is searched once per shape is that which every work item finds") {
  const SmallTrace trace(long_options());
  for (const char* name : {"knorm", "pyramidkv", "adakv(snapkv)", "h2o+kivi4", "kivi4", "quest"}) {
    CAPTURE(name);
    const MethodInfo shared = find_method(name);
    REQUIRE(shared.properties.equal_bytes.holds);
    const auto rows = [&](const MethodInfo& method, int threads) {
      std::vector<std::tuple<std::string, Index, double, double>> out;
      for (const HeadResult& head : at_costs(trace, method, {"25%mem", "70%mem", "40%read"}, threads).heads) {
        for (const ConfigurationResult& r : head.results)
          out.emplace_back(r.reason, r.budget_tokens, r.bytes.kv + r.bytes.meta, r.bytes.read);
      }
      return out;
    };
    const auto expected = rows(searched_alone(shared), 1);
    CHECK(rows(shared, 1) == expected);
    CHECK(rows(shared, 3) == expected);
  }
}

// Which shows, too, that the second head does not search.
TEST_CASE("a method that declares equal bytes falsely fails, and the reason names the property") {
  const SmallTrace trace(long_options());
  MethodInfo other = find_method("knorm");
  other.prepare = [prepare = other.prepare](auto heads, const Params& params, Backend& backend) -> MakeCaches {
    return [make = prepare(heads, params, backend), more = heads[0].head.value](Index budget, std::uint32_t seed) {
      return make(budget + more, seed);  // head 1 holds a token more than head 0
    };
  };
  const ReplayResults shared = at_costs(trace, other, {"25%mem"}, 1);
  CHECK(shared.heads[0].results[0].status == Status::ok);
  CHECK(shared.heads[1].results[0].status == Status::failed);
  CHECK(contains(shared.heads[1].results[0].reason, "deny its property `equal_bytes`"));
  const ReplayResults alone = at_costs(trace, searched_alone(other), {"25%mem"}, 1);
  CHECK(alone.heads[1].results[0].status == Status::ok);
  CHECK(alone.heads[1].results[0].budget_tokens == alone.heads[0].results[0].budget_tokens - 1);
}

TEST_CASE("budgets at which a method keeps the same are computed once, unless each stands alone") {
  const SmallTrace trace(long_options());
  std::vector<Index> made;
  MethodInfo counted = find_method("knorm");
  counted.prepare = [&made, prepare = counted.prepare](auto heads, const Params& params,
                                                       Backend& backend) -> MakeCaches {
    return [&made, make = prepare(heads, params, backend)](Index budget, std::uint32_t seed) {
      made.push_back(budget);
      return make(budget, seed);
    };
  };
  ReplayRequest request = request_of({&counted}, 1);
  request.budgets = {Budget::parse("9"), Budget::parse("50%"), Budget::parse("10")};
  const auto half = replay::replay(trace.reader(), request, {.threads = 1}).heads[0].results[1].budget_tokens;
  request.budgets.push_back(Budget::parse(std::to_string(half)));
  made.clear();
  const ReplayResults results = replay::replay(trace.reader(), request, {.threads = 1});
  CHECK(std::ranges::count(made, half) == std::ssize(results.heads));
  CHECK(made.size() == 3 * results.heads.size());
  for (const HeadResult& head : results.heads) {
    const ConfigurationResult &first = head.results[1], &same = head.results[3];
    REQUIRE(first.status == Status::ok);
    CHECK(same.status == Status::ok);
    CHECK(same.budget_tokens == half);
    CHECK(same.kept_tokens == first.kept_tokens);
    CHECK(same.bytes.kv == first.bytes.kv);
    REQUIRE(same.metrics.size() == first.metrics.size());
    CHECK(same.metrics.front()[Metric::rel_err] == first.metrics.front()[Metric::rel_err]);
    CHECK(head.results[2].metrics.front()[Metric::rel_err] != first.metrics.front()[Metric::rel_err]);
  }
  request.standalone = true;
  made.clear();
  replay::replay(trace.reader(), request, {.threads = 1});
  CHECK(made.size() == 4 * results.heads.size());
}

TEST_CASE("a search that shows a method its attention leaves no trace in the figures of the row") {
  const SmallTrace trace(long_options());
  const Metric ceiling = Metric::mass_ceiling;
  for (const char* name : {"tova", "h2o"}) {
    CAPTURE(name);
    ReplayRequest request = request_of({&find_method(name)}, 1);
    request.protocol = Protocol::decode;
    const auto at = [&](const std::string& budget) {
      request.budgets = {Budget::parse(budget)};
      return replay::replay(trace.reader(), request, {.threads = 1}).heads[0].results[0];
    };
    const ConfigurationResult searched = at("25%mem"), given = at(fmt::format("{}", searched.budget_tokens));
    REQUIRE(given.metrics.front()[ceiling] < 1);
    CHECK(searched.metrics.front()[ceiling] == given.metrics.front()[ceiling]);
  }
}

TEST_CASE("layers that a quantiser stores whole count in the mean that a budget limits") {
  trace::SynthOptions six = long_options();
  six.layers = 6, six.head_dim = six.value_dim = 64;
  const SmallTrace trace(six);
  // Whole are the first two, and the last two.
  const ReplayResults results = at_costs(trace, find_method("turboquant@vllm"), {"80%mem"}, 1);
  for (std::size_t h = 0; h < results.heads.size(); ++h) {
    const bool outer = results.heads[h].layer < 2 || results.heads[h].layer > 3;
    REQUIRE(results.heads[h].results[0].status == Status::ok);
    CHECK((realised(results.heads[h].results[0].bytes, CostKind::memory) == 1) == outer);
  }
  CHECK(total(results, 0, CostKind::memory) <= 0.8);
}

TEST_CASE("methods that drop a token at each step come within two tokens of the limit") {
  const SmallTrace trace(long_options());
  ReplayRequest request = request_of({&find_method("tova"), &find_method("h2o"), &find_method("r-kv")}, 1);
  request.budgets = {Budget::parse("25%mem")};
  request.protocol = Protocol::decode;
  const ReplayResults results = replay::replay(trace.reader(), request, {.threads = 1});
  for (std::size_t c = 0; c < results.configurations.size(); ++c) {
    CAPTURE(request.methods[results.configurations[c].method].info->name);
    const double share = total(results, c, CostKind::memory);
    CHECK(share <= 0.25);
    CHECK(share > 0.25 - 2.0 / 640);  // of 600 tokens of context and 40 decoded ones
  }
}

TEST_CASE("a quantiser that stores layers differently meets the limit with their mean") {
  const SmallTrace trace(long_options());
  ReplayRequest request = request_of({&find_method("qjl")}, 1);
  request.methods[0].params = find_method("qjl").bind(std::vector<Assignment>{
      {"sketch", "16"}, {"initial_sketch", "64"}, {"initial_layers", "1"}, {"residual", "32"}, {"outliers", "1"}});
  request.seeds = {0};
  const auto at = [&](double share) {
    request.budgets = {Budget::parse(fmt::format("{:.3f}%mem", 100 * share))};
    return replay::replay(trace.reader(), request, {.threads = 1});
  };
  const ReplayResults free = at(1);
  const double first = realised(free.heads.front().results[0].bytes, CostKind::memory),
               last = realised(free.heads.back().results[0].bytes, CostKind::memory), mean = (first + last) / 2;
  REQUIRE(first > last + 0.1);
  for (const HeadResult& head : at(mean + 0.001).heads) CHECK(head.results[0].status == Status::ok);
  for (const HeadResult& head : at(mean - 0.001).heads) CHECK(head.results[0].status == Status::infeasible);
}
