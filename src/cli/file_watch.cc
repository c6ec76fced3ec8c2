#include "cli/file_watch.h"

#include <fnmatch.h>
#include <sys/inotify.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <system_error>
#include <utility>

namespace weir::cli {
namespace {

namespace fs = std::filesystem;

constexpr int64_t kSettleNs = 100'000'000;
constexpr int kMaxLinks = 40;  // As the kernel has it.
constexpr uint32_t kEvents = IN_CLOSE_WRITE | IN_CREATE | IN_DELETE | IN_MOVED_TO | IN_MOVED_FROM;

bool IsYaml(const std::string& name) { return name.ends_with(".yaml") || name.ends_with(".yml"); }

bool IsPattern(const std::string& name) { return name.find_first_of("*?[") != std::string::npos; }

// Whether a file of that name counts in a directory where `names` are watched.
bool Counts(const std::set<std::string>& names, const std::string& name) {
  if (IsYaml(name) || names.contains(name)) return true;
  return std::ranges::any_of(names, [&](const std::string& pattern) {
    return IsPattern(pattern) && fnmatch(pattern.c_str(), name.c_str(), FNM_PERIOD) == 0;
  });
}

}  // namespace

Result<std::unique_ptr<FileWatch>> FileWatch::Open(net::EventLoop& loop,
                                                   std::span<const std::string> files,
                                                   std::function<void()> on_change) {
  const int fd = inotify_init1(IN_NONBLOCK | IN_CLOEXEC);
  if (fd < 0)
    return MakeError(ErrorCode::kUnavailable, std::string("inotify: ") + std::strerror(errno));
  std::unique_ptr<FileWatch> watch(new FileWatch(loop, fd, std::move(on_change)));
  if (auto watched = loop.Watch(fd, EPOLLIN, watch.get()); !watched)
    return std::unexpected(watched.error());
  watch->SetFiles(files);
  return watch;
}

FileWatch::FileWatch(net::EventLoop& loop, int fd, std::function<void()> on_change)
    : loop_(loop), fd_(fd), on_change_(std::move(on_change)), settle_(loop, [this] { Settle(); }) {}

FileWatch::~FileWatch() {
  loop_.Unwatch(fd_, this);
  close(fd_);
}

void FileWatch::SetFiles(std::span<const std::string> files) {
  files_.assign(files.begin(), files.end());
  names_.clear();
  for (const std::string& file : files_) Follow(file);
  WatchDirectories();
  seen_ = Fingerprint();
}

void FileWatch::Follow(const std::string& path) {
  std::error_code failed;
  fs::path at = fs::absolute(path, failed).lexically_normal();
  // A link can stand at any step of the path: "..data" of a ConfigMap is a directory.
  for (int links = 0; links < kMaxLinks; ++links) {
    fs::path walked;
    bool jumped = false;
    for (auto part = at.begin(); part != at.end(); ++part) {
      const fs::path directory = walked;
      walked /= *part;
      const bool last = std::next(part) == at.end();
      const fs::file_status status = fs::symlink_status(walked, failed);
      const bool is_link = fs::is_symlink(status);
      const bool is_there = fs::exists(status);
      if (is_there && !is_link && !last) continue;
      names_[directory.string()].insert(part->string());
      if (!is_there) return;  // It may come: its parent tells.
      if (!is_link) continue;
      fs::path target = fs::read_symlink(walked, failed);
      if (target.is_relative()) target = directory / target;
      for (++part; part != at.end(); ++part) target /= *part;
      at = target.lexically_normal();
      jumped = true;
      break;
    }
    if (!jumped) return;
  }
}

void FileWatch::WatchDirectories() {
  std::map<int, std::string> directories;
  for (const auto& [directory, names] : names_) {
    const int descriptor =
        inotify_add_watch(fd_, directory.c_str(), kEvents);  // The same one for the same directory.
    if (descriptor >= 0) directories.emplace(descriptor, directory);
  }
  for (const auto& [descriptor, directory] : directories_) {
    if (!directories.contains(descriptor)) inotify_rm_watch(fd_, descriptor);
  }
  directories_ = std::move(directories);
}

bool FileWatch::IsOfInterest(const std::string& directory, const std::string& name) const {
  const auto found = names_.find(directory);
  return found != names_.end() && Counts(found->second, name);
}

std::string FileWatch::Fingerprint() const {
  std::string print;
  const auto add = [&print](const fs::path& path) {
    struct stat status{};
    print += path.string();
    if (lstat(path.c_str(), &status) == 0) {
      print += ' ' + std::to_string(status.st_ino) + ' ' + std::to_string(status.st_size) + ' ' +
               std::to_string(status.st_mtim.tv_sec) + '.' + std::to_string(status.st_mtim.tv_nsec);
    }
    print += '\n';
  };
  for (const auto& [directory, names] : names_) {
    std::set<std::string> all = names;
    std::error_code failed;
    for (fs::directory_iterator entry(directory, failed), end; !failed && entry != end;
         entry.increment(failed)) {
      if (const std::string name = entry->path().filename().string(); Counts(names, name))
        all.insert(name);
    }
    for (const std::string& name : all) add(fs::path(directory) / name);
  }
  return print;
}

void FileWatch::OnEvents(uint32_t) {
  alignas(inotify_event) std::array<char, 8192> buffer;
  bool changed = false;
  for (ssize_t got; (got = read(fd_, buffer.data(), buffer.size())) > 0;) {
    for (const char* at = buffer.data(); at < buffer.data() + got;) {
      const auto* event = reinterpret_cast<const inotify_event*>(at);
      at += sizeof(inotify_event) + event->len;
      if ((event->mask & IN_Q_OVERFLOW) != 0) changed = true;
      const auto directory = directories_.find(event->wd);
      if (directory == directories_.end() || event->len == 0) continue;
      changed = changed || IsOfInterest(directory->second, event->name);
    }
  }
  if (changed && !settle_.armed()) settle_.ArmAt(loop_.now_ns() + kSettleNs);
}

void FileWatch::Settle() {
  if (Fingerprint() == seen_) return;
  on_change_();
  SetFiles(std::vector<std::string>(
      files_));  // Links may lead elsewhere now. `on_change_` may have set other files.
}

}  // namespace weir::cli
