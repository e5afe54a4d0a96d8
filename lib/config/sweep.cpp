// SPDX-License-Identifier: Apache-2.0
#include <kvbench/config/sweep.hpp>

#include <algorithm>
#include <filesystem>

#include <kvbench/config/run_keys.hpp>

namespace kvbench::config {
namespace {

const std::string& text_of(const Member& member) {
  if (member.value.kind != Value::Kind::text) {
    fail_at(member.value.place, "'{}' takes a text, not {}", member.key, describe(member.value));
  }
  return member.value.text;
}

/// The members of a run without its name.
std::vector<Member> settings_of(const Value& table, std::string& name) {
  std::vector<Member> settings;
  for (const Member& member : table.members) {
    if (member.key == "name")
      name = text_of(member);
    else
      settings.push_back(member);
  }
  return settings;
}

void check_run(const SweepRun& run) {
  if (run.request.methods.empty() && run.measures.empty()) {
    fail_at(run.place, "run '{}' does nothing; give it methods, such as methods = [\"snapkv\"], or a measure", run.name);
  }
}

class SweepReader {
 public:
  explicit SweepReader(const std::string& path) {
    sweep_.file = path;
    sweep_.name = std::filesystem::path(path).stem().string();
  }

  Sweep read() {
    const Value root = read_toml(sweep_.file);
    const Value* runs = nullptr;
    for (const Member& member : root.members) {
      if (member.key == "name") {
        sweep_.name = text_of(member);
      } else if (member.key == "description") {
        sweep_.description = text_of(member);
      } else if (member.key == "defaults") {
        read_defaults(member);
      } else if (member.key == "run") {
        runs = &member.value;
      } else {
        reject_key(member, {"name", "description", "defaults", "run"}, "a sweep file");
      }
    }
    if (runs == nullptr) throw Error("{}: holds no run; add a block [[run]] with traces and methods", sweep_.file);
    read_runs(*runs);
    return std::move(sweep_);
  }

 private:
  void read_defaults(const Member& member) {
    if (member.value.kind != Value::Kind::table) {
      fail_at(member.place, "'defaults' is a block [defaults], not {}", describe(member.value));
    }
    set_run(member.value.members, defaults_);
  }

  void read_runs(const Value& runs) {
    const auto is_table = [](const Value& item) { return item.kind == Value::Kind::table; };
    if (runs.kind != Value::Kind::list || !std::ranges::all_of(runs.items, is_table)) {
      fail_at(runs.place, "runs are blocks [[run]], with two brackets");
    }
    if (runs.items.empty()) fail_at(runs.place, "the list of runs is empty; add a block [[run]] with traces and methods");
    for (const Value& table : runs.items) {
      SweepRun run = defaults_;
      run.place = table.place;
      run.name = std::to_string(sweep_.runs.size() + 1);
      set_run(settings_of(table, run.name), run);
      check_run(run);
      const auto twin = std::ranges::find(sweep_.runs, run.name, &SweepRun::name);
      if (twin != sweep_.runs.end()) {
        fail_at(run.place, "there is another run '{}' at {}; rows tell runs apart by name", run.name, twin->place.text());
      }
      sweep_.runs.push_back(std::move(run));
    }
  }

  Sweep sweep_;
  SweepRun defaults_;
};

}  // namespace

Sweep read_sweep(const std::string& path) { return SweepReader(path).read(); }

void use_traces(Sweep& sweep, const std::vector<std::string>& paths) {
  for (SweepRun& run : sweep.runs) {
    run.traces.clear();
    for (const std::string& path : paths) run.traces.push_back({path, {"--trace"}});
  }
}

}  // namespace kvbench::config
