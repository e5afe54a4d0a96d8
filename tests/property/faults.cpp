// SPDX-License-Identifier: Apache-2.0
// Faults planted into rows of the registry: each breaks the property that it is meant to break.
// python/tests/check_test.py plants those that take a cache of its own.
#include <algorithm>
#include <memory>

#include <doctest/doctest.h>

#include <kvbench/methods/registry.hpp>
#include <kvbench/methods/stages/wrapped_cache.hpp>
#include <kvbench/testing/contract.hpp>

using namespace kvbench;
using namespace kvbench::methods;
using namespace kvbench::testing;

namespace {

/// The caches of the method for the budgets and seeds that change(budget, seed, calls) makes of those asked for.
template <class Change>
void with_caches(MethodInfo& info, Change change) {
  info.prepare = [prepare = info.prepare, change](std::span<const HeadPrompt> heads, const Params& params,
                                                  Backend& backend) -> MakeCaches {
    return [make = prepare(heads, params, backend), change, most = std::make_shared<Index>(0)](
               Index budget, std::uint32_t seed) mutable {
      change(budget, seed, *most);
      return make(budget, seed);
    };
  };
}

/// One of three caches of a layer: the one that is asked first has no entries.
class EmptyWhenFirst : public WrappedCache {
 public:
  EmptyWhenFirst(std::unique_ptr<CompressedCache> cache, std::shared_ptr<int> asked)
      : WrappedCache(std::move(cache), {}), asked_(std::move(asked)) {}
  EntryTables entries(const QueryBlock& queries) const override {
    return (*asked_)++ % 3 == 0 ? EntryTables() : WrappedCache::entries(queries);
  }

 private:
  std::shared_ptr<int> asked_;
};

struct Fault {
  const char* method;
  const char* property;
  void (*plant)(MethodInfo&);
};
const Fault faults[] = {
    {"sink", "entries", [](MethodInfo& m) { with_caches(m, [](Index& budget, auto&, auto&) { ++budget; }); }},
    {"adakv(snapkv)", "entries", [](MethodInfo& m) { with_caches(m, [](Index& budget, auto&, auto&) { ++budget; }); }},
    {"random", "entries",
     [](MethodInfo& m) { with_caches(m, [](Index&, auto&, auto&) { throw Infeasible("never"); }); }},
    {"pyramidkv", "plan",
     [](MethodInfo& m) {
       m.plan = [](const ModelContext& context, Index budget, const Params&) {
         return std::vector<Index>(context.layers.size(), budget + 2);
       };
     }},
    {"uniform", "weights", [](MethodInfo& m) { m.properties.weight_sum = WeightSum::ones; }},
    {"random", "nested budgets",
     [](MethodInfo& m) {
       with_caches(m, [](Index& budget, auto& seed, auto&) { seed = static_cast<std::uint32_t>(budget); });
     }},
    {"subgen", "equal bytes", [](MethodInfo& m) { m.properties.equal_bytes = {}; }},
    {"random", "equal bytes",
     [](MethodInfo& m) { with_caches(m, [](Index& budget, auto& seed, auto&) { budget += seed % 2; }); }},
    {"snapkv", "seeds", [](MethodInfo& m) { m.seeded = true; }},
    {"random", "seeds", [](MethodInfo& m) { m.seeded = false; }},
    {"random", "seeds",
     [](MethodInfo& m) {
       with_caches(m, [](Index&, auto& seed, auto&) { seed = static_cast<std::uint32_t>(rand()); });
     }},
    {"oracle-topk", "queries", [](MethodInfo& m) { m.kind = Kind::eviction; }},
    {"snapkv", "key shift", [](MethodInfo& m) { m.properties.key_shift = Property::no(""); }},
    {"int8", "full budget", [](MethodInfo& m) { m.properties.full_budget_exact = {}; }},
    {"int8", "key shift", [](MethodInfo& m) { m.properties.key_shift = {}; }},
    {"random", "head numbers", [](MethodInfo& m) { m.properties.head_permutation = {}; }},
    {"chelsea", "order of heads",
     [](MethodInfo& m) {
       m.prepare = [prepare = m.prepare](std::span<const HeadPrompt> heads, const Params& params,
                                         Backend& backend) -> MakeCaches {
         return [make = prepare(heads, params, backend)](Index budget, std::uint32_t seed) {
           const auto asked = std::make_shared<int>(0);
           Caches caches = make(budget, seed);
           for (auto& cache : caches) cache = std::make_unique<EmptyWhenFirst>(std::move(cache), asked);
           return caches;
         };
       };
     }},
    {"sink", "caches",
     [](MethodInfo& m) {
       with_caches(m, [](Index& budget, auto&, Index& most) { budget = most = std::max(most, budget); });
     }},
};

}  // namespace

TEST_CASE("faults planted into methods break the property that they concern") {
  const auto backend = make_cpu_backend(best_isa());
  for (const Fault& fault : faults) {
    MethodInfo info = find_method(fault.method);
    const Row sound{&find_method(fault.method), info.bind({})};
    fault.plant(info);
    const Row faulty{&info, sound.params};
    const auto tests = property_tests();
    const auto test = std::ranges::find(tests, fault.property, &PropertyTest::name);
    REQUIRE(test != tests.end());
    INFO(std::string(fault.method), ", ", std::string(fault.property));
    CHECK(run_test(*test, sound, *backend).compliance != Compliance::broken);
    const Finding finding = run_test(*test, faulty, *backend);
    CHECK(finding.compliance == Compliance::broken);
    CHECK_FALSE(finding.sentence.empty());
  }
}
