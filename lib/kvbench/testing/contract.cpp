// SPDX-License-Identifier: Apache-2.0
#include <kvbench/testing/contract.hpp>

#include <kvbench/core/error.hpp>
#include <kvbench/testing/properties.hpp>

namespace kvbench::testing {
namespace {

constexpr PropertyTest properties[] = {
    {"entries", "it runs in prefill and decode, and its entries and arrays are within the budget",
     entries_hold_the_budget},
    {"plan", "the layers of a plan hold the budget on average", plans_hold_the_budget},
    {"weights", "sums of weights are as declared", weights_are_as_declared},
    {"nested budgets", "larger budgets keep the tokens of smaller ones", budgets_are_nested},
    {"equal bytes", "caches of equal budgets and shapes take equal bytes, whatever numbers, seed and layer",
     bytes_are_equal},
    {"seeds", "the same seed gives the same results, and only configurations that draw depend on it", seeds_repeat},
    {"blocks", "blocks of decoded tokens give the entries and answers of single tokens", blocks_are_tokens},
    {"streaming", "it starts from an empty context, where it declares `streaming`", streams_start_empty},
    {"short contexts", "it runs on contexts of one, two and three tokens", short_contexts},
    {"channels", "it runs on heads of one channel, and of values that are wider than keys", few_channels},
    {"query heads", "it runs with one query head for a kv head, and with many", query_heads},
    {"equal tokens", "it runs on equal tokens and equal keys", equal_tokens},
    {"zero values", "values of zero are answered with zero", zero_values},
    {"large logits", "logits of several hundreds give finite answers", large_logits},
    {"windows", "it runs on layers with a sliding window, where it declares `windowed`", sliding_windows},
    {"queries", "evaluated queries do not affect what is kept", evaluated_queries_do_not_matter},
    {"parts", "what it needs of a trace is in `needs`, or it says that it is missing", parts_are_declared},
    {"full budget", "a budget of the whole context answers exactly", full_budget_is_exact},
    {"value scaling", "scaling the values scales the answers", values_scale},
    {"key shift", "adding one vector to all keys changes no answer", keys_shift},
    {"head numbers", "results do not depend on the indices of the heads", heads_permute},
    {"caches", "a cache does not depend on the caches made before it", caches_are_independent},
    {"heads", "a head does not affect heads that are computed after it", heads_are_independent},
    {"order of heads", "the heads of a layer may come in any order", heads_come_in_any_order},
    {"int8", "stored by int8 it has the same entries, 9/16 of the bytes, and errors within half a step",
     int8_stores_its_tokens},
    {"kivi4", "stored by kivi4 it has the same entries, and the bytes of groups and waiting rows",
     kivi4_stores_its_tokens},
    {"stored decode", "stored by kivi4 it decodes as it does alone", stored_tokens_decode},
    {"stores", "it stores the tokens that other methods choose", it_stores_tokens_of_others},
};

/// Settings whose meaning lifts a demand: a name of the table above, "budget" or "runs".
constexpr struct {
  std::string_view demand, method, setting, why;
} lifts[] = {
    {"budget", "clusterkv", "fill=pad", "the last cluster is taken whole"},
    {"budget", "subgen", "delta", "the radius is given"},
    {"budget", "vattention", "samples=beyond", "samples are added"},
    {"full budget", "exact", "numbers=f16", "numbers are rounded"},
    {"full budget", "infinigen", "fetch=dynamic", "a threshold decides too"},
    {"kivi4", "subgen", "t=", "the last key of each array may be alone"},
    {"runs", "duo", "", "it needs a table"},
    {"blocks", "oracle-error", "", "a block of queries has one set"},
    {"int8", "oracle-error", "", "it stores nothing"},
    {"kivi4", "oracle-error", "", "it stores nothing"},
    {"stored decode", "oracle-error", "", "it stores nothing"},
    {"key shift", "exact", "numbers=f16", "numbers are rounded"},
    {"value scaling", "subgen-kcenter", "values=true", "values decide the clusters"},
};

}  // namespace

std::string lifted(const Row& row, std::string_view demand) {
  for (const auto& lift : lifts) {
    if (lift.demand == demand && row.info->name.starts_with(lift.method) &&
        row.params.text().find(lift.setting) != std::string::npos)
      return fmt::format("{}{}{}", lift.setting, lift.setting.empty() ? "" : ": ", lift.why);
  }
  return {};
}

std::span<const PropertyTest> property_tests() { return properties; }

std::string describe(const Finding& finding) {
  constexpr const char* words[] = {"holds", "not asked", "refused", "BROKEN"};
  const std::string reason = finding.sentence.empty() ? "" : ": " + finding.sentence;
  return fmt::format("{:<9}  {:<14}  {}{}", words[static_cast<int>(finding.compliance)], finding.test->name,
                     finding.test->demand, reason);
}

Finding run_test(const PropertyTest& test, const Row& row, Backend& backend) {
  if (std::string reason = lifted(row, test.name); !reason.empty())
    return {&test, Compliance::not_asked, std::move(reason)};
  Trial trial(row, backend);
  const auto found = [&](Compliance compliance, const char* sentence) {
    const std::string place = trial.place();
    return Finding{&test, compliance, sentence + (place.empty() ? "" : fmt::format(" ({})", place))};
  };
  try {
    std::string excuse = test.run(trial);
    const Compliance compliance = excuse.empty() ? Compliance::holds : Compliance::not_asked;
    return {&test, compliance, std::move(excuse)};
  } catch (const Interrupted&) {
    throw;
  } catch (const methods::Infeasible& refusal) {
    return found(Compliance::refused, refusal.what());
  } catch (const methods::Unavailable& refusal) {
    return found(Compliance::refused, refusal.what());
  } catch (const std::exception& fault) {
    return found(Compliance::broken, fault.what());
  }
}

std::vector<Finding> test_contract(const Row& row, Backend& backend) {
  std::vector<Finding> findings;
  for (const PropertyTest& test : properties) {
    findings.push_back(run_test(test, row, backend));
    if (findings.front().compliance >= Compliance::refused) break;
  }
  return findings;
}

}  // namespace kvbench::testing
