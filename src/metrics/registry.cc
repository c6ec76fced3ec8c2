#include "metrics/registry.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdlib>
#include <set>
#include <unordered_map>
#include <utility>

namespace weir::metrics {
namespace {

constexpr size_t kMaxBounds = 60;
constexpr std::string_view kOther = "other";

uint64_t Sum(const Slot* slots, uint32_t shared_shard) {
  uint64_t sum = 0;
  for (size_t shard = 0; shard <= shared_shard; ++shard) {
    sum += slots[shard * kSlotsPerPage].load(std::memory_order_relaxed);
  }
  return sum;
}

bool IsName(std::string_view name, bool colons) {
  if (name.empty() || (name[0] >= '0' && name[0] <= '9')) return false;
  return std::ranges::all_of(name, [&](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' ||
           (colons && c == ':');
  });
}

void AppendEscaped(std::string_view text, bool quotes, std::string& out) {
  for (const char c : text) {
    if (c == '\\') {
      out += "\\\\";
    } else if (c == '\n') {
      out += "\\n";
    } else if (c == '"' && quotes) {
      out += "\\\"";
    } else {
      out += c;
    }
  }
}

void AppendNumber(double value, std::string& out) {
  if (std::isnan(value)) {
    out += "NaN";
  } else if (std::isinf(value)) {
    out += value > 0 ? "+Inf" : "-Inf";
  } else {
    char digits[32];
    out.append(digits, std::to_chars(digits, digits + sizeof(digits), value).ptr);
  }
}

template <std::integral Integer>
void AppendNumber(Integer value, std::string& out) {
  char digits[24];
  out.append(digits, std::to_chars(digits, digits + sizeof(digits), value).ptr);
}

double Seconds(uint64_t ns) { return static_cast<double>(ns) / 1e9; }

// `a="x",b="y"`, without braces.
std::string LabelText(const std::vector<std::string>& names,
                      std::span<const std::string_view> values) {
  std::string text;
  for (size_t i = 0; i < names.size(); ++i) {
    if (i > 0) text += ',';
    text += names[i];
    text += "=\"";
    AppendEscaped(values[i], /*quotes=*/true, text);
    text += '"';
  }
  return text;
}

template <typename Number>
void AppendSample(std::string_view name, std::string_view suffix, std::string_view labels,
                  Number value, std::string& out) {
  out += name;
  out += suffix;
  if (!labels.empty()) {
    out += '{';
    out += labels;
    out += '}';
  }
  out += ' ';
  AppendNumber(value, out);
  out += '\n';
}

constexpr std::string_view kTypeNames[] = {"counter", "gauge", "histogram"};

}  // namespace

struct Registry::Series {
  std::string labels;
  std::string first_value;
  Slot* slots = nullptr;
  bool hidden = false;
};

class Family {
 public:
  MetricType type = MetricType::kCounter;
  std::string name;
  std::string help;
  std::vector<std::string> labels;
  size_t max_series = 0;
  std::vector<uint64_t> bounds_ns;
  std::function<void(const SampleSink&)> collect;
  std::vector<std::unique_ptr<Registry::Series>> series;  // In the order of registration.
  std::unordered_map<std::string, Registry::Series*> by_labels;
};

uint64_t Counter::Value() const { return Sum(slots_, shared_shard_); }

int64_t Gauge::Value() const { return static_cast<int64_t>(Sum(slots_, shared_shard_)); }

uint64_t Histogram::Count() const {
  uint64_t count = 0;
  for (size_t bucket = 0; bucket <= bounds_ns_.size(); ++bucket)
    count += Sum(slots_ + bucket, shared_shard_);
  return count;
}

uint64_t Histogram::SumNs() const { return Sum(slots_ + bounds_ns_.size() + 1, shared_shard_); }

Registry::Registry(RegistryOptions options) : shards_(options.shards) {
  if (shards_ == 0) std::abort();
}

Registry::~Registry() = default;

Family& Registry::Add(MetricType type, std::string_view name, std::string_view help,
                      std::vector<std::string> labels, size_t max_series) {
  const auto place = std::ranges::lower_bound(
      families_, name, {}, [](const auto& f) { return std::string_view(f->name); });
  const bool taken = place != families_.end() && (*place)->name == name;
  const bool labels_good =
      std::ranges::all_of(labels, [](const std::string& label) { return IsName(label, false); });
  if (taken || max_series == 0 || !labels_good || !IsName(name, /*colons=*/true)) std::abort();
  auto family = std::make_unique<Family>();
  family->type = type;
  family->name = name;
  family->help = help;
  family->labels = std::move(labels);
  family->max_series = max_series;
  return **families_.insert(place, std::move(family));
}

Family& Registry::AddCounters(std::string_view name, std::string_view help,
                              std::vector<std::string> labels, size_t max_series) {
  const std::lock_guard lock(mutex_);
  return Add(MetricType::kCounter, name, help, std::move(labels), max_series);
}

Family& Registry::AddGauges(std::string_view name, std::string_view help,
                            std::vector<std::string> labels, size_t max_series) {
  const std::lock_guard lock(mutex_);
  return Add(MetricType::kGauge, name, help, std::move(labels), max_series);
}

Family& Registry::AddHistograms(std::string_view name, std::string_view help,
                                std::vector<std::string> labels, std::vector<uint64_t> bounds_ns,
                                size_t max_series) {
  const std::lock_guard lock(mutex_);
  if (bounds_ns.empty() || bounds_ns.size() > kMaxBounds || !std::ranges::is_sorted(bounds_ns))
    std::abort();
  Family& family = Add(MetricType::kHistogram, name, help, std::move(labels), max_series);
  family.bounds_ns = std::move(bounds_ns);
  return family;
}

Family& Registry::AddCollected(MetricType type, std::string_view name, std::string_view help,
                               std::vector<std::string> labels, size_t max_series,
                               std::function<void(const SampleSink&)> collect) {
  const std::lock_guard lock(mutex_);
  if (type == MetricType::kHistogram) std::abort();
  Family& family = Add(type, name, help, std::move(labels), max_series);
  family.collect = std::move(collect);
  return family;
}

Slot* Registry::TakeSlots(size_t count) {
  if (used_in_page_ + count > kSlotsPerPage) {
    pages_.push_back(std::make_unique<Page[]>(shards_ + 1));
    used_in_page_ = 0;
  }
  Slot* slots = &pages_.back()[0].slots[used_in_page_];
  used_in_page_ += count;
  return slots;
}

Registry::Series& Registry::SeriesOf(Family& family, std::span<const std::string_view> values) {
  if (values.size() != family.labels.size() || family.collect) std::abort();
  std::string text = LabelText(family.labels, values);
  if (const auto known = family.by_labels.find(text); known != family.by_labels.end()) {
    known->second->hidden = false;
    return *known->second;
  }
  const std::vector<std::string_view> others(values.size(), kOther);
  if (family.series.size() >= family.max_series && !std::ranges::equal(values, others))
    return SeriesOf(family, others);
  auto series = std::make_unique<Series>();
  series->labels = text;
  if (!values.empty()) series->first_value = values[0];
  series->slots =
      TakeSlots(family.type == MetricType::kHistogram ? family.bounds_ns.size() + 2 : 1);
  family.by_labels.emplace(std::move(text), series.get());
  family.series.push_back(std::move(series));
  return *family.series.back();
}

Counter Registry::CounterOf(Family& family, std::span<const std::string_view> values) {
  const std::lock_guard lock(mutex_);
  if (family.type != MetricType::kCounter) std::abort();
  return Counter(SeriesOf(family, values).slots, static_cast<uint32_t>(shards_));
}

Gauge Registry::GaugeOf(Family& family, std::initializer_list<std::string_view> values) {
  const std::lock_guard lock(mutex_);
  if (family.type != MetricType::kGauge) std::abort();
  return Gauge(SeriesOf(family, {values.begin(), values.size()}).slots,
               static_cast<uint32_t>(shards_));
}

Histogram Registry::HistogramOf(Family& family, std::initializer_list<std::string_view> values) {
  const std::lock_guard lock(mutex_);
  if (family.type != MetricType::kHistogram) std::abort();
  return Histogram(SeriesOf(family, {values.begin(), values.size()}).slots,
                   static_cast<uint32_t>(shards_), family.bounds_ns);
}

Counter Registry::UnlistedCounter() {
  const std::lock_guard lock(mutex_);
  return Counter(TakeSlots(1), static_cast<uint32_t>(shards_));
}

Gauge Registry::UnlistedGauge() {
  const std::lock_guard lock(mutex_);
  return Gauge(TakeSlots(1), static_cast<uint32_t>(shards_));
}

void Registry::ShowOnly(Family& family, std::span<const std::string_view> kept) {
  const std::lock_guard lock(mutex_);
  const std::set<std::string_view> shown(kept.begin(), kept.end());
  for (const auto& series : family.series) series->hidden = !shown.contains(series->first_value);
}

void Registry::Write(const Family& family, std::string& out, size_t& samples) const {
  out += "# HELP " + family.name + ' ';
  AppendEscaped(family.help, /*quotes=*/false, out);
  out += "\n# TYPE " + family.name + ' ';
  out += kTypeNames[static_cast<int>(family.type)];
  out += '\n';
  if (family.collect) {
    std::set<std::string> seen;
    family.collect([&](std::span<const std::string_view> values, double value) {
      if (seen.size() >= family.max_series || values.size() != family.labels.size()) return;
      const auto [labels, is_new] = seen.insert(LabelText(family.labels, values));
      if (is_new) AppendSample(family.name, "", *labels, value, out);
    });
    samples += seen.size();
    return;
  }
  const auto shared = static_cast<uint32_t>(shards_);
  for (const auto& series : family.series) {
    if (series->hidden) continue;
    if (family.type != MetricType::kHistogram) {
      const uint64_t value = Sum(series->slots, shared);
      ++samples;
      if (family.type == MetricType::kCounter) {
        AppendSample(family.name, "", series->labels, value, out);
      } else {
        AppendSample(family.name, "", series->labels, static_cast<int64_t>(value), out);
      }
      continue;
    }
    uint64_t count = 0;
    const std::string_view comma = series->labels.empty() ? "" : ",";
    for (size_t bucket = 0; bucket <= family.bounds_ns.size(); ++bucket) {
      count += Sum(series->slots + bucket, shared);
      std::string labels = series->labels;
      labels += comma;
      labels += "le=\"";
      AppendNumber(bucket < family.bounds_ns.size() ? Seconds(family.bounds_ns[bucket]) : HUGE_VAL,
                   labels);
      labels += '"';
      AppendSample(family.name, "_bucket", labels, count, out);
    }
    AppendSample(family.name, "_sum", series->labels,
                 Seconds(Sum(series->slots + family.bounds_ns.size() + 1, shared)), out);
    AppendSample(family.name, "_count", series->labels, count, out);
    samples += family.bounds_ns.size() + 3;
  }
}

std::string Registry::Expose() const {
  const std::lock_guard lock(mutex_);
  std::string out;
  size_t samples = 0;
  for (const auto& family : families_) Write(*family, out, samples);
  return out;
}

size_t Registry::SampleCount() const {
  const std::lock_guard lock(mutex_);
  std::string out;
  size_t samples = 0;
  for (const auto& family : families_) Write(*family, out, samples);
  return samples;
}

}  // namespace weir::metrics
