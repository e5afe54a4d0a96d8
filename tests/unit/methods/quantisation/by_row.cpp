// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>
#include <kvbench/kernels/half.hpp>

#include <support/rounding.hpp>

using namespace kvbench;
using namespace kvbench::methods;
using namespace kvbench::testing;

namespace {

/// Whether row `i` of these has the same bits where it is encoded alone.
bool alone_alike(const Codec& codec, const Buffer<const float>& rows, const std::vector<float>& together, Index i,
                 Backend& backend) {
  const std::vector<float> alone = backend.read(codec.decoded(rows.slice(i, 1), backend));
  return std::ranges::equal(alone, std::span(together).subspan(static_cast<std::size_t>(i * rows.cols()), alone.size()),
                            {}, bits_of, bits_of);
}

/// Checks the codecs of a quantiser that say so, and returns how many did.
int check_by_row(const MethodInfo& info, const std::vector<Assignment>& settings, Backend& backend) {
  constexpr Index n = 37, d = 64;
  const HeadData head = head_of(random_numbers(n * d, 1, 1), n);
  const HeadPrompt prompt = prompt_of(head, backend);
  const Params params = info.bind(settings);
  int found = 0;
  for (std::size_t level = 0; level < info.quantiser.levels(params).size(); ++level) {
    Codecs codecs;
    try {
      codecs = info.quantiser.layer_codecs(std::span(&prompt, 1), params, level, 0, backend).front();
    } catch (const Unavailable&) {  // a scale of all kv heads of the layer
      continue;
    }
    for (const auto& codec : {codecs.keys, codecs.values}) {
      if (codec == nullptr || !codec->by_row()) continue;
      ++found;
      const std::vector<float> together = backend.read(codec->decoded(prompt.keys, backend));
      for (const Index i : {Index{0}, Index{5}, n - 1}) CHECK(alone_alike(*codec, prompt.keys, together, i, backend));
    }
  }
  return found;
}

}  // namespace

TEST_CASE("codecs that say so encode each row for itself, to the bit, on every back end of this machine") {
  for (const auto make : {+[] { return make_ref_backend(); }, +[] { return make_cpu_backend(Isa::scalar); },
                          +[] { return make_cpu_backend(); }}) {
    const auto backend = make();
    int found = 0;
    for (const char* name : {"int", "int8", "q8_0", "q5_1", "q5_0", "q4_1", "q4_0", "iq4_nl", "fp8", "nvfp4"}) {
      CAPTURE(name);
      const MethodInfo& info = find_method(name);
      found += check_by_row(info, {}, *backend);
      for (const auto& variant : info.variants) found += check_by_row(info, variant, *backend);
    }
    found += check_by_row(find_method("int8"), {{"group", "0"}, {"form", "vllm-cut"}}, *backend);
    found += check_by_row(find_method("nvfp4"), {{"form", "4over6"}}, *backend);
    for (const char* form : {"vllm", "mlx"})
      found += check_by_row(find_method("int4"), {{"group", form[0] == 'v' ? "0" : "32"}, {"form", form}}, *backend);
    CHECK(found >= 35);
  }
  // Groups over tokens, or rows that wait.
  for (const char* name : {"kivi4", "kivi2"}) CHECK(check_by_row(find_method(name), {}, ref()) == 0);
}
