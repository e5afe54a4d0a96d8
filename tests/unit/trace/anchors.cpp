// SPDX-License-Identifier: Apache-2.0
// Anchors: how they are stored, and what is refused.
#include <cmath>
#include <limits>

#include <doctest/doctest.h>

#include <unit/trace/complaint.hpp>

namespace kvbench::trace::test {
namespace {

const std::string anchors = "/prompts/10/anchors";

/// What a reader complains of where a dataset of the two anchors of prompt 10 has this type, shape and contents.
std::string with(const char* dataset, hid_t type, std::vector<hsize_t> dims, const void* data) {
  return complaint([&](RawFile& f) { f.replace((anchors + "/" + dataset).c_str(), type, std::move(dims), data); });
}
std::string with_numbers(const char* dataset, const std::vector<double>& values) {
  return with(dataset, H5T_IEEE_F64LE, {values.size()}, values.data());
}
std::string with_layers(const std::vector<std::int64_t>& values) {
  return with("layers", H5T_STD_I64LE, {values.size()}, values.data());
}
std::string with_lines(const std::string& lines) {
  const hid_t type = H5Tcopy(H5T_C_S1);
  H5Tset_size(type, lines.size());
  H5Tset_strpad(type, H5T_STR_NULLPAD);
  const std::string message = with("configurations", type, {}, lines.data());
  H5Tclose(type);
  return message;
}

TEST_CASE("anchors are read as they were written, from strings of any kind") {
  const TempFolder folder;
  write_sample(folder / "t.h5");
  {
    RawFile file(folder / "t.h5");
    const hid_t strings = H5Tcopy(H5T_C_S1);  // of variable length, as h5py writes them
    H5Tset_size(strings, H5T_VARIABLE);
    const char* lines = "my method[a=1, b=2] 25%mem\nsink 3";
    file.replace((anchors + "/configurations").c_str(), strings, {}, &lines);
    H5Tclose(strings);
  }
  const Reader reader(folder / "t.h5");
  CHECK_FALSE(reader.info().prompts[0].anchors);
  const std::optional<Anchors>& read = reader.info().prompts[1].anchors;
  REQUIRE(read);
  CHECK(read->version == "0.1.0");
  REQUIRE(read->list.size() == 2);
  CHECK(read->list[0] == Anchor{"my method[a=1, b=2]", "25%mem", {}, 0.5, 0.25});
  CHECK(read->list[1].method == "sink");
  CHECK(read->list[1].budget == "3");
  CHECK(read->list[1].layer == 3);
  CHECK(read->list[1].kl == 2);
  CHECK(std::isnan(read->list[1].predicted));
}

TEST_CASE("anchors whose datasets contradict each other are refused") {
  const std::string good = "q4_0 100%\nh2o 25%mem";
  CHECK(with_lines(good) == "");
  CHECK(contains(with_lines(good + "\n"), "layers: has the shape [2], but dataset 'configurations' has 3 lines"));
  CHECK(contains(with_lines("q4_0 100%"), "layers: has the shape [2], but dataset 'configurations' has 1 lines"));
  CHECK(contains(with_layers({-1, 3, 4}), "layers: has the shape [3], but dataset 'configurations' has 2 lines"));
  CHECK(contains(with_numbers("kl", {1}), "kl: has the shape [1], but dataset 'configurations' has 2 lines"));
  CHECK(contains(with_numbers("predicted", {1, 1, 1}), "predicted: has the shape [3], but"));
  const std::vector<double> square(4);
  CHECK(contains(with("kl", H5T_IEEE_F64LE, {2, 2}, square.data()), "kl: has the shape [2, 2], but"));
  CHECK(contains(with("kl", H5T_IEEE_F64LE, {}, square.data()), "kl: has the shape [], but"));
  for (const char* name : {"configurations", "layers", "kl", "predicted"}) {
    CHECK(contains(complaint([&](RawFile& f) { f.remove((anchors + "/" + name).c_str()); }),
                   anchors + "/" + name + ": dataset is missing"));
  }
  CHECK(contains(complaint([](RawFile& f) { f.remove_attribute(anchors.c_str(), "version"); }),
                 "attribute 'version' is missing"));
  CHECK(complaint([](RawFile& f) { f.remove(anchors.c_str()); }) == "");
  CHECK(contains(complaint([](RawFile& f) {
                   f.remove("/prompts/10/layers/3/probes");
                   f.remove_attribute("/prompts/10", "num_probes");
                 }),
                 "anchors: attribute 'num_probes' of the prompt is missing"));
}

TEST_CASE("anchors of other types are refused") {
  const std::vector<float> floats(2);
  const std::vector<double> doubles(2);
  const std::vector<std::int64_t> integers(2);
  CHECK(contains(with("kl", H5T_IEEE_F32LE, {2}, floats.data()), "kl: its elements are not f64"));
  CHECK(contains(with("predicted", H5T_STD_I64LE, {2}, integers.data()), "predicted: its elements are not f64"));
  CHECK(contains(with("layers", H5T_IEEE_F64LE, {2}, doubles.data()), "layers: must have integer elements"));
  CHECK(contains(with("configurations", H5T_STD_I64LE, {}, integers.data()), "configurations: must be a string"));
  const hid_t type = H5Tcopy(H5T_C_S1);
  H5Tset_size(type, 9);
  CHECK(contains(with("configurations", type, {2}, "q4_0 100%q8_0 100%"), "must be one string, not an array"));
  H5Tset_size(type, std::size_t{1} << 30);  // with no byte of it in the file
  CHECK(contains(with("configurations", type, {}, nullptr), "configurations: claims 1073741824 bytes"));
  H5Tset_size(type, std::size_t{1} << 20);
  CHECK(contains(with("configurations", type, {}, nullptr), "configurations: was never written"));
  H5Tclose(type);
  CHECK(contains(complaint([](RawFile& f) {
                   f.remove(anchors.c_str());
                   H5Lcreate_soft("/prompts/0", f.id(), anchors.c_str(), H5P_DEFAULT, H5P_DEFAULT);
                 }),
                 "anchors: is a soft or external link"));
}

TEST_CASE("anchors with values that none can have are refused") {
  constexpr double nan = std::numeric_limits<double>::quiet_NaN(), inf = std::numeric_limits<double>::infinity();
  CHECK(with_numbers("kl", {0, 700}) == "");
  CHECK(contains(with_numbers("kl", {1, nan}), "anchors/kl: entry 1 is nan; a KL divergence is a finite number >= 0"));
  CHECK(contains(with_numbers("kl", {inf, 1}), "anchors/kl: entry 0 is inf"));
  CHECK(contains(with_numbers("kl", {1, -1}), "anchors/kl: entry 1 is -1"));
  CHECK(with_numbers("predicted", {-1, 0}) == "");
  CHECK(contains(with_numbers("predicted", {1, nan}), "anchors/predicted: entry 1 is nan; -1 means none"));
  CHECK(contains(with_numbers("predicted", {-0.5, 1}), "anchors/predicted: entry 0 is -0.5; a KL divergence"));
  CHECK(with_layers({-1, 4}) == "");
  CHECK(contains(with_layers({-1, 5}), "anchors/layers: entry 1 is 5; it must be a layer below 5, or -1 for all"));
  CHECK(contains(with_layers({-2, 0}), "anchors/layers: entry 0 is -2"));
  CHECK(contains(with_lines("q4_0\nh2o 25%mem"), "configurations: line 1: is 'q4_0'; it must be METHOD BUDGET"));
  CHECK(contains(with_lines("q4_0 100%\n"), "configurations: line 2: is ''; it must be METHOD BUDGET"));
  CHECK(contains(with_lines("q4_0 100%\n 25%mem"), "configurations: line 2 must be METHOD BUDGET"));
  CHECK(contains(with_lines("q4_0 100%\nh2o "), "configurations: line 2 must be METHOD BUDGET"));
  CHECK(contains(with_lines("q4_0 100%\nh2\to 25%mem"), "configurations: line 2 has a control character"));
  CHECK(contains(with_lines("q4_0 100%\nh2\x80o 25%mem"), "configurations: line 2 is not UTF-8 text"));
  CHECK(contains(with_lines("q4_0\x1b[2J\nh2o 25%mem"), "is 'q4_0\\x1b[2J'"));
  CHECK(with_lines("h2o 25%mem\nh2o 25%mem") == "");  // one of them in layer 3 alone
  CHECK(contains(complaint([](RawFile& f) { f.set(anchors.c_str(), "version", std::string("a\nb")); }),
                 "attribute 'version' has a control character"));
}

TEST_CASE("a writer refuses what no reader reads") {
  const auto complaint = [](const std::function<void(PromptInfo&)>& change) {
    const TempFolder folder;
    TraceInfo info = sample_info();
    change(info.prompts[1]);
    return message_of<Error>([&] { write_sample(folder / "t.h5", info); });
  };
  CHECK(contains(complaint([](PromptInfo& p) { p.anchors->list.clear(); }), "has 0 configurations; it must have from"));
  CHECK(contains(complaint([](PromptInfo& p) { p.anchors->list[1].budget = "2 %"; }), "line 2 must be METHOD BUDGET"));
  CHECK(contains(complaint([](PromptInfo& p) { p.anchors->list[1].method = "a\nb"; }), "has a control character"));
  CHECK(contains(complaint([](PromptInfo& p) { p.anchors->list[0] = p.anchors->list[1]; }),
                 "line 2 repeats 'h2o 25%mem' of an earlier one"));
  CHECK(contains(complaint([](PromptInfo& p) {
                   p.anchors->list.resize(most_anchors + 1, {"m", "1"});
                 }),
                 "has 131073 configurations"));
}

}  // namespace
}  // namespace kvbench::trace::test
