// FileWatch: tells when any of some files has a new content, by inotify: written in place, replaced
// by a rename, or reached through a symbolic link that now points elsewhere (as mounted Kubernetes
// ConfigMaps are swapped).
//
// Directories are watched, not files, because a replaced file is another file. Events are gathered
// for a tenth of a second, so that a swap of several files is one change; what then looks as before
// is no change.
//
// Thread safety: the loop's thread only.
//
//   auto watch = FileWatch::Open(loop, {"weir.yaml"}, [&] { Reload(); }).value();
//   watch->SetFiles(policy->files());       // after a reload that read other files
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "net/event_loop.h"
#include "weir/result.h"

namespace weir::cli {

class FileWatch final : private net::FdWatcher {
 public:
  // kUnavailable when the kernel gives no inotify descriptor.
  static Result<std::unique_ptr<FileWatch>> Open(net::EventLoop& loop,
                                                 std::span<const std::string> files,
                                                 std::function<void()> on_change);
  ~FileWatch();

  // Watches these files from now on, and new *.yaml and *.yml files beside them. A name may be a
  // pattern (`limits.d/*.yaml`) and a directory may come later. Directories that cannot be watched
  // are left out: a later SetFiles tries again.
  void SetFiles(std::span<const std::string> files);

 private:
  FileWatch(net::EventLoop& loop, int fd, std::function<void()> on_change);
  void OnEvents(uint32_t events) override;
  void Settle();
  // Adds the directory and name of `path`, and of every symbolic link on the way to the file.
  void Follow(const std::string& path);
  void WatchDirectories();
  // What the watched names look like now: link targets, sizes, times.
  std::string Fingerprint() const;
  bool IsOfInterest(const std::string& directory, const std::string& name) const;

  net::EventLoop& loop_;
  const int fd_;
  const std::function<void()> on_change_;
  net::Timer settle_;
  std::vector<std::string> files_;
  std::map<std::string, std::set<std::string>> names_;  // By directory.
  std::map<int, std::string> directories_;              // By watch descriptor.
  std::string seen_;                                    // The fingerprint at the last change.
};

}  // namespace weir::cli
