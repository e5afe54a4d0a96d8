// SPDX-License-Identifier: Apache-2.0
// The method `file:PATH`: entries read by KeptFile, as a method.
#include <algorithm>
#include <map>
#include <mutex>

#include <kvbench/methods/registry.hpp>
#include <kvbench/methods/stages/kept_cache.hpp>
#include <kvbench/methods/stages/rows.hpp>
#include <kvbench/replay/kept/kept_file.hpp>
#include <kvbench/trace/reader.hpp>
#include <kvbench/trace/sha256.hpp>

namespace kvbench::replay {
namespace {

struct FileParams {
  Index cell = -1;
  bool any_trace = false;
};
void fields(methods::ParamVisitor& visitor, FileParams& params) {
  visitor.integer(
      "cell", params.cell, {.min = -1},
      "cell of the file: /heads/<h>/<cell>; -1: the cell with the budget of the row, or 0 where cells have no budgets");
  visitor.flag("any_trace", params.any_trace, "whether the entries may have been made for another trace or document");
}

/// The rows `rows`, of `width` numbers, of a table of the file: one per (query head, query) of the block.
template <class T>
std::vector<T> rows_of(const HostView<T>& all, Index width, const std::vector<Index>& rows) {
  std::vector<T> out;
  if (all.empty()) return out;
  for (const Index row : rows) out.insert(out.end(), all.begin() + row * width, all.begin() + (row + 1) * width);
  return out;
}

class FileCache : public methods::CompressedCache {
 public:
  FileCache(const methods::HeadPrompt& head, std::shared_ptr<const KeptHead> kept, Backend& backend)
      : backend_(backend), head_(head), kept_(std::move(kept)), tokens_(head.tokens()) {
    for (const KeptTable& table : kept_->tables) {
      lists_decoded_ |= std::ranges::any_of(table.entries.ids, [&](std::int32_t id) { return id >= head.tokens(); });
    }
  }

  Index append(const methods::TokenBlock& tokens) override {
    tokens_ += tokens.size();
    return tokens.size();
  }

  methods::EntryTables entries(const methods::QueryBlock& queries) const override {
    methods::EntryTables tables;
    for (const KeptTable& table : kept_->tables)
      tables.push_back(table_of(table.entries, rows_for(table.entries, queries)));
    const Index decoded = tokens_ - head_.tokens();
    if (decoded > 0 && !lists_decoded_) {
      tables.push_back({.ids = backend_.adopt(methods::token_range(head_.tokens(), decoded), 1, decoded)});
    }
    return tables;
  }

  methods::Footprint footprint() const override {
    const Index decoded = lists_decoded_ ? 0 : tokens_ - head_.tokens();
    return held_footprint(*kept_, head_.group, tokens_, decoded, head_.keys.cols(), head_.values.cols());
  }

  methods::Protected protected_tokens() const override { return {.decoded = !lists_decoded_}; }
  std::vector<methods::Note> notes() const override {
    if (tokens_ == head_.tokens()) return {};
    return {{.text = lists_decoded_ ? "decoded tokens as listed in the file" : "decoded tokens kept exactly"}};
  }

 private:
  /// Indices of the rows of the table that answer these queries.
  std::vector<Index> rows_for(const methods::HostTable& table, const methods::QueryBlock& queries) const {
    std::vector<Index> rows;
    const Index heads = table.per_head ? head_.group : 1;
    if (!table.per_query) {
      for (Index g = 0; g < heads; ++g) rows.push_back(g);
      return rows;
    }
    const Index stored = table.rows / heads;
    for (Index g = 0; g < heads; ++g) {
      for (const std::int32_t position : queries.positions) {
        const auto found = std::ranges::lower_bound(kept_->positions, position);
        const Index i = found - kept_->positions.begin() - kept_->first_query;
        if (found == kept_->positions.end() || *found != position || i < 0 || i >= stored) {
          throw methods::Unavailable(
              fmt::format("the tables by query of the file do not cover the query at position {}", position));
        }
        rows.push_back(g * stored + i);
      }
    }
    return rows;
  }

  methods::EntryTable table_of(const methods::HostTable& table, const std::vector<Index>& rows) const {
    const auto count = static_cast<Index>(rows.size());
    const auto weights = [&](const HostView<float>& all) -> Buffer<const float> {
      if (all.empty()) return {};
      return backend_.adopt(rows_of(all, table.width, rows), count, table.width);
    };
    const auto vectors = [&](const HostView<float>& all, Index dim) -> Buffer<const float> {
      if (all.empty()) return {};
      return backend_.adopt(rows_of(all, table.width * dim, rows), count * table.width, dim);
    };
    std::vector<std::int32_t> ids = rows_of(table.ids, table.width, rows);
    std::ranges::replace_if(
        ids, [&](std::int32_t id) { return id >= tokens_; }, -1);  // tokens that are not decoded yet
    return {.per_head = table.per_head,
            .per_query = table.per_query,
            .ids = backend_.adopt(std::move(ids), count, table.width),
            .weight_num = weights(table.weight_num),
            .weight_den = weights(table.weight_den),
            .own_keys = vectors(table.own_keys, head_.keys.cols()),
            .own_values = vectors(table.own_values, head_.values.cols())};
  }

  Backend& backend_;
  methods::HeadPrompt head_;
  std::shared_ptr<const KeptHead> kept_;
  Index tokens_;
  bool lists_decoded_ = false;  ///< otherwise decoded tokens are kept exactly
};

methods::MethodInfo method_of(const std::string& name, std::shared_ptr<const KeptFile> file) {
  methods::MethodInfo info{
      .name = name,
      .aliases = {"file"},
      .paper = "a file of kept entries",
      .summary = "the entries of a file in the schema of --raw",
      .notes =
          "The file determines the entries. Where its cells carry budgets, each answers the rows of its budget; "
          "otherwise the budget is a label. Decoded tokens are kept exactly unless the file lists their ids.",
      .kind = methods::Kind::eviction,
      .whole_context = true,
      .properties = {.full_budget_exact = methods::Property::no("the file determines the entries"),
                     .value_scaling = methods::Property::yes(),
                     .key_shift = methods::Property::yes(),
                     .head_permutation = methods::Property::no("entries belong to a head"),
                     .nested_budgets = methods::Property::yes(),
                     .weight_sum = methods::WeightSum::free},
  };
  info = methods::with_schema<FileParams>(std::move(info));
  info.at_budget = [file, name](const methods::Params& params, const Budget& budget) {
    const Index cell = params.as<FileParams>().cell;
    const std::string found = std::to_string(cell >= 0 ? cell : file->cell_at(budget.text()));
    return methods::bind_params<FileParams>(name, std::vector<methods::Assignment>{{"cell", found}});
  };
  info.prepare = [file](std::span<const methods::HeadPrompt> heads, const methods::Params& params, Backend& backend) {
    std::vector<methods::MakeCache> caches;
    for (const methods::HeadPrompt& head : heads) {
      const KeptShape shape{
          .tokens = head.trace_tokens, .d = head.keys.cols(), .dv = head.values.cols(), .group = head.group};
      auto kept = std::make_shared<KeptHead>(
          file->read(head.prompt_group, head.layer.value, head.head.value, params.as<FileParams>().cell, shape));
      caches.push_back([head, kept, &backend](Index /*budget*/, std::uint32_t /*seed*/) {
        return std::make_unique<FileCache>(head, kept, backend);
      });
    }
    return methods::each_head(std::move(caches));
  };
  return info;
}

/// What entries are made for.
struct Origin {
  const char* kind;      ///< "trace"
  const char* digested;  ///< "with the SHA-256"
  std::string place;     ///< what the methods run on
  std::string digest;
};

/// The file was made for `made_for`; "": it does not say. Returns a sentence for the user, or "".
std::string check_origin(const KeptFile& file, const std::string& made_for, const Origin& origin) {
  if (made_for.empty()) {
    return fmt::format("{} does not say for which {} its entries were made; kvbench.write_kept() records it",
                       file.path(), origin.kind);
  }
  if (made_for == origin.digest) return "";
  throw Error(
      "{} holds entries for a {} {} {}, but {} has {}; make entries for this {}, or replay these all the same with "
      "`settings` file.any_trace=true",
      file.path(), origin.kind, origin.digested, made_for, origin.place, origin.digest, origin.kind);
}

bool is_file(const std::string& name) { return name.starts_with("file:"); }

struct OpenFile {
  std::shared_ptr<const KeptFile> file;
  methods::MethodInfo info;
};

/// The file of the method `name`, which is opened at its first use.
const OpenFile& open_file(const std::string& name) {
  static std::mutex mutex;
  static std::map<std::string, OpenFile> files;
  const std::lock_guard lock(mutex);
  const auto known = files.find(name);
  if (known != files.end()) return known->second;
  OpenFile opened;
  opened.file = std::make_shared<const KeptFile>(name.substr(name.find(':') + 1));
  opened.info = method_of(name, opened.file);
  return files.emplace(name, std::move(opened)).first->second;
}

/// Calls use(file) for each file among the methods that is not allowed to be of another trace.
template <class F>
void for_each_file(std::span<const MethodChoice> methods, F use) {
  std::vector<const KeptFile*> seen;
  for (const MethodChoice& choice : methods) {
    if (!is_file(choice.info->name) || choice.params.as<FileParams>().any_trace) continue;
    const KeptFile* file = open_file(choice.info->name).file.get();
    if (std::ranges::count(seen, file) > 0) continue;
    seen.push_back(file);
    use(*file);
  }
}

}  // namespace

const methods::MethodInfo& kept_file_method(const std::string& name) { return open_file(name).info; }

std::vector<std::string> check_kept_trace(std::span<const MethodChoice> methods, const trace::Reader& reader) {
  std::vector<std::string> notes;
  for_each_file(methods, [&](const KeptFile& file) {
    notes.push_back(
        check_origin(file, file.trace_sha256(), {"trace", "with the SHA-256", reader.path(), reader.sha256()}));
  });
  std::erase(notes, "");
  return notes;
}

std::vector<std::string> check_kept_document(std::span<const MethodChoice> methods, const std::string& document,
                                             std::string_view prompt, std::span<const std::int32_t> tokens) {
  std::vector<std::string> notes;
  for_each_file(methods, [&](const KeptFile& file) {
    const Origin origin{"document", "whose tokens have the SHA-256", document, trace::sha256_of_tokens(tokens)};
    notes.push_back(check_origin(file, file.tokens_sha256(prompt), origin));
  });
  std::erase(notes, "");
  return notes;
}

std::string kept_file_path(const std::string& method) {
  return is_file(method) ? method.substr(method.find(':') + 1) : "";
}

std::vector<std::string> kept_budgets(const MethodChoice& choice) {
  if (!is_file(choice.info->name)) return {};
  const std::vector<std::string>& all = open_file(choice.info->name).file->budgets();
  const Index cell = choice.params.as<FileParams>().cell;
  std::vector<std::string> budgets;
  for (std::size_t c = 0; c < all.size(); ++c) {
    const bool replayed = cell < 0 || c == static_cast<std::size_t>(cell);
    if (replayed && !all[c].empty() && std::ranges::find(budgets, all[c]) == budgets.end()) budgets.push_back(all[c]);
  }
  return budgets;
}

const methods::MethodInfo& find_any_method(const std::string& name) {
  return is_file(name) ? kept_file_method(name) : methods::find_method(name);
}

}  // namespace kvbench::replay
