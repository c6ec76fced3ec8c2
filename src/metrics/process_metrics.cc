#include "metrics/process_metrics.h"

#include <dirent.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <fstream>
#include <iterator>
#include <sstream>
#include <string>

namespace weir::metrics {
namespace {

std::string ReadFile(const char* path) {
  std::ifstream file(path);
  return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
}

// The fields of /proc/self/stat as proc(5) numbers them, from 3 on; the command's name in front may
// hold spaces.
double StatField(int number) {
  const std::string stat = ReadFile("/proc/self/stat");
  const size_t behind = stat.rfind(')');
  if (behind == std::string::npos) return 0;
  std::istringstream fields(stat.substr(behind + 1));
  std::string field;
  for (int i = 3; i <= number; ++i) fields >> field;
  return std::strtod(field.c_str(), nullptr);
}

double Ticks() { return static_cast<double>(sysconf(_SC_CLK_TCK)); }

double CpuSeconds() { return (StatField(14) + StatField(15)) / Ticks(); }

double StartSeconds() {
  std::istringstream stat(ReadFile("/proc/stat"));
  double boot_s = 0;
  for (std::string word; stat >> word;) {
    if (word == "btime" && stat >> boot_s) break;
  }
  return boot_s + StatField(22) / Ticks();
}

double OpenDescriptors() {
  struct stat info{};
  // Linux 6.2 and later give the count as the directory's size; reading 20,000 entries would hold a
  // loop up.
  if (stat("/proc/self/fd", &info) == 0 && info.st_size > 0)
    return static_cast<double>(info.st_size);
  DIR* directory = opendir("/proc/self/fd");
  if (directory == nullptr) return 0;
  int count = 0;
  while (const dirent* entry = readdir(directory)) count += entry->d_name[0] != '.';
  closedir(directory);
  return count - 1;  // Without the directory's own.
}

double MaxDescriptors() {
  rlimit limit{};
  getrlimit(RLIMIT_NOFILE, &limit);
  return static_cast<double>(limit.rlim_cur);
}

void AddOne(Registry& registry, MetricType type, const char* name, const char* help,
            double (*read)()) {
  registry.AddCollected(type, name, help, {}, 1,
                        [read](const SampleSink& sink) { sink({}, read()); });
}

}  // namespace

void AddProcessMetrics(Registry& registry) {
  AddOne(registry, MetricType::kCounter, "process_cpu_seconds_total",
         "User and system CPU time spent, in seconds.", CpuSeconds);
  AddOne(registry, MetricType::kGauge, "process_resident_memory_bytes",
         "Resident memory, in bytes.",
         [] { return StatField(24) * static_cast<double>(sysconf(_SC_PAGESIZE)); });
  AddOne(registry, MetricType::kGauge, "process_virtual_memory_bytes", "Virtual memory, in bytes.",
         [] { return StatField(23); });
  AddOne(registry, MetricType::kGauge, "process_open_fds", "Open file descriptors.",
         OpenDescriptors);
  AddOne(registry, MetricType::kGauge, "process_max_fds",
         "The most file descriptors that may be open.", MaxDescriptors);
  AddOne(registry, MetricType::kGauge, "process_start_time_seconds",
         "When the process started, in Unix seconds.", StartSeconds);
  AddOne(registry, MetricType::kGauge, "process_threads", "Threads of the process.",
         [] { return StatField(20); });
}

}  // namespace weir::metrics
