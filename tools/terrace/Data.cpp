//===- Data.cpp - `terrace data` ------------------------------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Thin: the runtime's readers do the work, so that what is measured here is
// what a model will read.
//
//===----------------------------------------------------------------------===//
#include "Spec/Words.h"
#include "StateVerb.h"

#include "runtime/core/Output.h"
#include "runtime/data/Generate.h"
#include "runtime/data/Profile.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/JSON.h"
#include "llvm/Support/Process.h"

#include <cmath>

namespace terrace::tool {

using driver::Outcome;

/// A data file that is not there is the environment's fault.
static int failData(const trc::Status &status, bool json) {
  return status.code() == TRC_NOT_FOUND
             ? fail(Outcome::Environment, status.message(), json)
             : fail(status, json);
}

/// A line that is rewritten on a terminal; nothing elsewhere.
static trc::data::Progress progressLine(const char *what, bool json) {
  if (json || !llvm::sys::Process::StandardErrIsDisplayed())
    return {};
  return [what](int64_t rows) {
    llvm::errs() << "\r\033[K" << what << " " << rows << " rows";
  };
}

static void endProgress(const trc::data::Progress &progress) {
  if (progress)
    llvm::errs() << "\r\033[K";
}

int runGenerate(const GenerateVerb &verb, bool json) {
  const std::vector<trc::data::Workload> &workloads = trc::data::workloads();
  std::vector<llvm::StringRef> names;
  for (const trc::data::Workload &workload : workloads)
    names.push_back(workload.name);
  if (verb.workload == "list") {
    llvm::json::Array list;
    for (const trc::data::Workload &workload : workloads) {
      if (!json)
        llvm::outs() << llvm::formatv("{0,-12} {1}\n", workload.name,
                                      workload.description);
      list.push_back(llvm::json::Object{{"name", workload.name},
                                        {"description", workload.description}});
    }
    if (json)
      llvm::outs() << llvm::formatv("{0:2}\n",
                                    llvm::json::Value(std::move(list)));
    return 0;
  }
  if (llvm::none_of(names, [&](llvm::StringRef name) {
        return name.equals_insensitive(verb.workload);
      }))
    return fail(Outcome::Usage,
                "no workload '" + verb.workload + "'" +
                    spec::didYouMean(verb.workload, names) +
                    " (workloads: " + spec::listOf(names) + ")",
                json);
  if (!(verb.scale > 0))
    return fail(Outcome::Usage, "--scale is a number above 0", json);
  trc::data::GenerateOptions options;
  options.workload = verb.workload;
  options.scale = verb.scale;
  options.seed = verb.seed;
  options.folder = verb.output;
  trc::data::Progress progress = progressLine("writing", json);
  auto made = trc::data::generateWorkload(options, progress);
  endProgress(progress);
  if (!made.ok())
    return failData(made.takeStatus(), json);
  if (json) {
    llvm::json::Array statistics;
    for (const trc::data::Statistic &s : made->statistics)
      statistics.push_back(llvm::json::Object{
          {"name", s.name}, {"target", s.target}, {"achieved", s.achieved}});
    llvm::outs() << llvm::formatv("{0:2}\n",
                                  llvm::json::Value(llvm::json::Object{
                                      {"ok", true},
                                      {"rows", made->rows},
                                      {"data", made->dataFile},
                                      {"spec", made->specFile},
                                      {"statistics_file", made->statisticsFile},
                                      {"statistics", std::move(statistics)}}));
    return 0;
  }
  llvm::outs() << made->rows << " rows in " << made->dataFile << "; spec "
               << made->specFile << "; statistics " << made->statisticsFile
               << "\n";
  size_t width = 0;
  for (const trc::data::Statistic &s : made->statistics)
    width = std::max(width, s.name.size());
  auto shown = [](double value) { // a count, or a share
    return value == std::floor(value)
               ? std::to_string(static_cast<int64_t>(value))
               : llvm::formatv("{0:F4}", value).str();
  };
  for (const trc::data::Statistic &s : made->statistics)
    llvm::outs() << "  " << s.name
                 << std::string(width - s.name.size() + 2, ' ')
                 << shown(s.achieved) << "  (target " << shown(s.target)
                 << ")\n";
  if (options.scale < 1 && !made->statistics.empty())
    llvm::outs() << "data this small deviate from their targets\n";
  return 0;
}

/// The columns that the spec reads, as the runtime's parser wants them.
static trc::data::ProfileInput profileInput(const spec::Spec &spec) {
  trc::data::ProfileInput input;
  input.batch = spec.batch.size;
  for (const spec::Table &table : spec.tables)
    input.tables.push_back({*table.name, table.rows,
                            table.ids.kind.value != spec::IdsKind::Index});
  input.groups = spec.dedupGroups();
  for (const spec::Feature &f : spec.features) {
    trc::data::FeatureColumn column;
    column.name = *f.name;
    column.column = *f.column;
    column.weights = f.weights ? **f.weights : "";
    column.strings = f.type == spec::IdType::String;
    column.anyId = spec.tables[f.table].ids.kind != spec::IdsKind::Index;
    input.format.features.push_back(std::move(column));
    input.featureTable.push_back(f.table);
    int group = -1;
    if (f.dedup)
      group = llvm::find(input.groups, **f.dedup) - input.groups.begin();
    input.featureGroup.push_back(group);
  }
  if (spec.data) {
    input.format.listSep = *spec.data->listSep;
    if (spec.data->session)
      input.format.session = **spec.data->session;
    input.files.skipBadRows = spec.data->onBadRow == spec::OnBadRow::Skip;
  }
  return input;
}

int runProfile(const ProfileVerb &verb, bool json) {
  spec::Diagnostics diagnostics;
  std::optional<spec::Spec> spec =
      spec::parseSpec(verb.spec.input(), diagnostics);
  if (!spec || !spec::checkPlannable(*spec, diagnostics))
    return report(diagnostics.hasEnvironmentErrors() ? Outcome::Environment
                                                     : Outcome::Error,
                  diagnostics, json);
  std::vector<std::string> patterns = verb.data;
  if (patterns.empty() && spec->data)
    for (const spec::Str &path : spec->data->paths)
      patterns.push_back(*path);
  if (patterns.empty())
    return fail(Outcome::Usage,
                "the spec names no data; give data: {path: ...} or --data FILE",
                json);
  auto paths = trc::data::expandPaths(patterns);
  if (!paths.ok())
    return failData(paths.takeStatus(), json);
  std::vector<std::string> inputs = *paths;
  inputs.insert(inputs.end(), {verb.spec.model, verb.spec.node});
  if (trc::Status free = trc::refuseInput(verb.output, inputs); !free.ok())
    return fail(Outcome::Usage, free.message(), json);
  trc::data::ProfileInput input = profileInput(*spec);
  input.files.paths = std::move(*paths);
  if (verb.rows > 0)
    input.maxRows = verb.rows;
  trc::data::Progress progress = progressLine("measuring", json);
  auto text = trc::data::measureProfile(input, progress);
  endProgress(progress);
  if (!text.ok())
    return failData(text.takeStatus(), json);
  std::string error;
  if (!writeText(verb.output.empty() ? "-" : verb.output, *text, error))
    return fail(Outcome::Environment, error, json);
  if (!verb.output.empty() && json)
    llvm::outs() << llvm::json::Value(
                        llvm::json::Object{{"ok", true}, {"file", verb.output}})
                 << "\n";
  else if (!verb.output.empty())
    llvm::outs() << "wrote " << verb.output << "\n";
  return 0;
}

int runHead(const HeadVerb &verb, bool json) {
  auto paths = trc::data::expandPaths(verb.files);
  if (!paths.ok())
    return failData(paths.takeStatus(), json);
  llvm::json::Array files;
  for (const std::string &path : *paths) {
    auto columns = trc::data::columnsOf(path, {});
    if (!columns.ok())
      return failData(columns.takeStatus(), json);
    auto source = trc::data::ByteSource::open(path);
    if (!source.ok())
      return failData(source.takeStatus(), json);
    char separator = trc::data::separatorOf(path);
    trc::data::LineReader lines(std::move(*source), separator == ',');
    std::vector<std::vector<std::string>> rows;
    std::string line;
    for (int64_t n = 0; n <= verb.rows; ++n) {
      auto more = lines.next(line);
      if (!more.ok())
        return failData(more.takeStatus(), json);
      if (!*more)
        break;
      if (n == 0)
        continue; // the header
      std::vector<std::string_view> fields;
      std::string unquoted;
      trc::Status status =
          trc::data::RowParser::split(line, separator, fields, unquoted);
      if (!status.ok())
        return fail(Outcome::Error,
                    path + ":" + std::to_string(lines.lineNumber()) + ": " +
                        status.message(),
                    json);
      rows.emplace_back(fields.begin(), fields.end());
    }
    if (json) {
      llvm::json::Array array;
      for (const auto &row : rows) {
        llvm::json::Array cells;
        for (const std::string &cell : row)
          cells.push_back(llvm::json::fixUTF8(cell));
        array.push_back(std::move(cells));
      }
      files.push_back(
          llvm::json::Object{{"file", path},
                             {"columns", llvm::json::Array(*columns)},
                             {"rows", std::move(array)}});
      continue;
    }
    // Column widths from what is shown; a long list of ids is cut.
    const size_t widest = 32;
    std::vector<size_t> widths;
    auto grow = [&](const std::vector<std::string> &row) {
      widths.resize(std::max(widths.size(), row.size()));
      for (size_t i = 0; i < row.size(); ++i)
        widths[i] = std::max(widths[i], std::min(widest, row[i].size()));
    };
    grow(*columns);
    for (const auto &row : rows)
      grow(row);
    auto show = [&](const std::vector<std::string> &row) {
      for (size_t i = 0; i < row.size(); ++i) {
        std::string cell = row[i].size() <= widest
                               ? row[i]
                               : row[i].substr(0, widest - 3) + "...";
        llvm::outs() << cell;
        if (i + 1 < row.size())
          llvm::outs().indent(widths[i] - cell.size() + 2);
      }
      llvm::outs() << "\n";
    };
    if (paths->size() > 1)
      llvm::outs() << path << "\n";
    show(*columns);
    for (const auto &row : rows)
      show(row);
  }
  if (json)
    llvm::outs() << llvm::formatv("{0:2}\n",
                                  llvm::json::Value(std::move(files)));
  return 0;
}

} // namespace terrace::tool
