#include "cli/file_watch.h"

#include <gtest/gtest.h>
#include <stdlib.h>

#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "base/clock.h"

namespace weir::cli {
namespace {

namespace fs = std::filesystem;

// A folder of its own, a loop, and a watch of `weir.yaml` in it; each test changes something and
// lets the loop run until the change was told, or for as long as a change could take.
class FileWatchTest : public testing::Test {
 protected:
  void SetUp() override {
    std::string name = (fs::temp_directory_path() / "weir-watch-XXXXXX").string();
    ASSERT_NE(mkdtemp(name.data()), nullptr);
    folder_ = name;
    loop_ = net::EventLoop::Create(clock_).value();
  }
  void TearDown() override {
    watch_.reset();
    loop_.reset();
    fs::remove_all(folder_);
  }

  void Write(const fs::path& path, const std::string& text) { std::ofstream(path) << text; }

  void Open(const std::vector<fs::path>& files) {
    std::vector<std::string> names;
    for (const fs::path& file : files) names.push_back(file.string());
    watch_ = FileWatch::Open(*loop_, names, [this] {
               ++changes_;
               loop_->Stop();
             }).value();
  }

  // How many changes were told within that time; returns at the first.
  int ChangesWithin(int64_t wait_ns) {
    changes_ = 0;
    net::Timer bound(*loop_, [this] { loop_->Stop(); });
    bound.ArmAt(clock_.MonotonicNs() + wait_ns);
    loop_->Run();
    return changes_;
  }

  static constexpr int64_t kSoonNs = 3'000'000'000;
  static constexpr int64_t kQuietNs = 300'000'000;

  SystemClock clock_;
  fs::path folder_;
  std::unique_ptr<net::EventLoop> loop_;
  std::unique_ptr<FileWatch> watch_;
  int changes_ = 0;
};

TEST_F(FileWatchTest, WrittenInPlace) {
  Write(folder_ / "weir.yaml", "a");
  Open({folder_ / "weir.yaml"});
  Write(folder_ / "weir.yaml", "bb");
  EXPECT_EQ(ChangesWithin(kSoonNs), 1);
  Write(folder_ / "weir.yaml", "ccc");
  EXPECT_EQ(ChangesWithin(kSoonNs), 1);
}

TEST_F(FileWatchTest, ReplacedByARename) {
  Write(folder_ / "weir.yaml", "a");
  Open({folder_ / "weir.yaml"});
  Write(folder_ / "next", "bb");
  fs::rename(folder_ / "next", folder_ / "weir.yaml");
  EXPECT_EQ(ChangesWithin(kSoonNs), 1);
}

TEST_F(FileWatchTest, ASwappedLinkOfADirectory) {
  // As Kubernetes mounts a ConfigMap: weir.yaml -> ..data/weir.yaml, ..data -> ..1.
  for (const char* version : {"..1", "..2", "..3"}) {
    fs::create_directory(folder_ / version);
    Write(folder_ / version / "weir.yaml", version);
  }
  fs::create_directory_symlink("..1", folder_ / "..data");
  fs::create_symlink("..data/weir.yaml", folder_ / "weir.yaml");
  Open({folder_ / "weir.yaml"});
  for (const char* version : {"..2", "..3"}) {
    fs::create_directory_symlink(version, folder_ / "..data_tmp");
    fs::rename(folder_ / "..data_tmp", folder_ / "..data");
    EXPECT_EQ(ChangesWithin(kSoonNs), 1) << version;
  }
}

TEST_F(FileWatchTest, ANewFileBesideAnIncludedOne) {
  fs::create_directory(folder_ / "limits.d");
  Write(folder_ / "weir.yaml", "a");
  Write(folder_ / "limits.d" / "a.yaml", "a");
  Open({folder_ / "weir.yaml", folder_ / "limits.d" / "a.yaml"});
  Write(folder_ / "limits.d" / "b.yaml", "b");
  EXPECT_EQ(ChangesWithin(kSoonNs), 1);
}

TEST_F(FileWatchTest, TheFirstFileOfAPattern) {
  fs::create_directory(folder_ / "limits.d");
  Write(folder_ / "weir.yaml", "a");
  Open({folder_ / "weir.yaml", folder_ / "limits.d" / "*.conf"});
  Write(folder_ / "limits.d" / "a.conf~", "a");
  EXPECT_EQ(ChangesWithin(kQuietNs), 0);
  Write(folder_ / "limits.d" / "a.conf", "a");
  EXPECT_EQ(ChangesWithin(kSoonNs), 1);
  Write(folder_ / "limits.d" / "a.conf", "bb");
  EXPECT_EQ(ChangesWithin(kSoonNs), 1);
}

TEST_F(FileWatchTest, AFolderThatComesLater) {
  Write(folder_ / "weir.yaml", "a");
  Open({folder_ / "weir.yaml", folder_ / "conf" / "limits.d" / "*.yaml"});
  fs::create_directory(folder_ / "conf");
  EXPECT_EQ(ChangesWithin(kSoonNs), 1);
  fs::create_directory(folder_ / "conf" / "limits.d");
  EXPECT_EQ(ChangesWithin(kSoonNs), 1);
  Write(folder_ / "conf" / "limits.d" / "a.yaml", "a");
  EXPECT_EQ(ChangesWithin(kSoonNs), 1);
}

TEST_F(FileWatchTest, OtherFilesAreNoChange) {
  Write(folder_ / "weir.yaml", "a");
  Open({folder_ / "weir.yaml"});
  Write(folder_ / "weir.log", "b");
  EXPECT_EQ(ChangesWithin(kQuietNs), 0);
}

}  // namespace
}  // namespace weir::cli
