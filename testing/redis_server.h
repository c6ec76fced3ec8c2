// A redis-server or valkey-server of a test's own: on a free port and a unix socket, in a folder of
// its own, ended and removed with the object.
//
//   RedisServer server;                                        // or RedisServer({.program =
//   "valkey-server"}) auto client = Client::Create(loop, resolver, ParseUrl(server.url()).value());
//   server.Console().Call({"SCRIPT", "FLUSH"});
//   server.Kill();  server.Start();
//
// A program that is not installed, or does not start, throws with a sentence that says so: a test
// that needs a server fails without it.
// Thread safety: none; use it on the thread that made it (the server ends with that thread).
#pragma once

#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "testing/redis_console.h"

namespace weir::testing {

// A loopback port that was free a moment ago.
inline int FreePort() {
  const int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t length = sizeof address;
  const bool bound = bind(fd, reinterpret_cast<sockaddr*>(&address), length) == 0 &&
                     getsockname(fd, reinterpret_cast<sockaddr*>(&address), &length) == 0;
  close(fd);
  if (!bound) throw std::runtime_error("no free port");
  return ntohs(address.sin_port);
}

// Asks every few milliseconds until `holds` is true; throws after `seconds` with `what`.
template <typename Holds>
void WaitFor(const std::string& what, Holds&& holds, int seconds = 20) {
  const auto until = std::chrono::steady_clock::now() + std::chrono::seconds(seconds);
  while (!holds()) {
    if (std::chrono::steady_clock::now() > until) throw std::runtime_error("waited for: " + what);
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
}

class TemporaryFolder {
 public:
  TemporaryFolder() {
    char name[] = "/tmp/weir-redis-XXXXXX";
    if (mkdtemp(name) == nullptr) throw std::runtime_error("no temporary folder");
    path_ = name;
  }
  ~TemporaryFolder() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  TemporaryFolder(const TemporaryFolder&) = delete;
  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

class RedisServer {
 public:
  struct Options {
    std::string program = "redis-server";
    std::vector<std::string>
        arguments;              // Further ones, as on the command line: "--requirepass", "x".
    std::string configuration;  // Of a file, which the server may rewrite. "": none.
    bool is_sentinel = false;
    int tls_port = 0;  // 0: no TLS; arguments name the certificates.
  };

  RedisServer() : RedisServer(Options()) {}
  explicit RedisServer(Options options) : options_(std::move(options)), port_(FreePort()) {
    if (!options_.configuration.empty()) {
      std::ofstream(folder_.path() + "/server.conf") << options_.configuration;
    }
    Start();
  }
  ~RedisServer() { Kill(); }
  RedisServer(const RedisServer&) = delete;
  RedisServer& operator=(const RedisServer&) = delete;

  // Starts it again after Kill, on the same port and socket, without its data.
  void Start() {
    std::vector<std::string> words = {options_.program};
    if (!options_.configuration.empty()) words.push_back(folder_.path() + "/server.conf");
    const std::vector<std::string> own = {
        "--port",       std::to_string(port_), "--bind",    "127.0.0.1",   "--dir",
        folder_.path(), "--unixsocket",        unix_path(), "--daemonize", "no"};
    words.insert(words.end(), own.begin(), own.end());
    if (options_.is_sentinel) {
      words.push_back("--sentinel");
    } else {
      const std::vector<std::string> quiet = {
          "--save", "", "--appendonly", "no", "--enable-debug-command", "yes"};
      words.insert(words.end(), quiet.begin(), quiet.end());
    }
    words.insert(words.end(), options_.arguments.begin(), options_.arguments.end());
    Launch(words);
    WaitFor(options_.program + " to answer", [this] {
      if (HasEnded()) throw std::runtime_error(options_.program + " did not start; " + Log());
      try {
        // Any reply will do: one that wants a password says NOAUTH.
        return !Console().Call({"PING"}).text.starts_with("LOADING");
      } catch (const std::runtime_error&) {
        return false;
      }
    });
  }

  void Kill(int signal = SIGKILL) {
    if (pid_ <= 0) return;
    kill(pid_, signal);
    waitpid(pid_, nullptr, 0);
    pid_ = 0;
  }
  // Stops it where it is, as a machine that hangs would; and lets it go on.
  void Freeze() { kill(pid_, SIGSTOP); }
  void Thaw() { kill(pid_, SIGCONT); }

  RedisConsole Console() const { return RedisConsole("unix:" + unix_path()); }
  int port() const { return port_; }
  std::string port_text() const { return std::to_string(port_); }
  std::string unix_path() const { return folder_.path() + "/socket"; }
  const std::string& folder() const { return folder_.path(); }
  std::string url() const { return "redis://127.0.0.1:" + port_text(); }
  std::string unix_url() const { return "unix://" + unix_path(); }
  // The value of one line of INFO.
  std::string Info(const std::string& section, const std::string& field) const {
    const std::string text = Console().Call({"INFO", section}).text;
    const size_t at = text.find("\n" + field + ":");
    if (at == std::string::npos) return "";
    const size_t begin = at + field.size() + 2;
    return text.substr(begin, text.find('\r', begin) - begin);
  }
  std::string Log() const {
    std::ifstream file(folder_.path() + "/log");
    std::stringstream text;
    text << file.rdbuf();
    return "its log: " + text.str();
  }

 private:
  void Launch(const std::vector<std::string>& words) {
    const std::string log = folder_.path() + "/log";
    std::vector<char*> arguments;
    for (const std::string& word : words) arguments.push_back(const_cast<char*>(word.c_str()));
    arguments.push_back(nullptr);
    const pid_t parent = getpid();
    pid_ = fork();
    if (pid_ < 0) throw std::runtime_error("fork failed");
    if (pid_ > 0) return;
    prctl(PR_SET_PDEATHSIG, SIGKILL);  // Even when the test crashes.
    if (getppid() != parent) _exit(1);
    const int fd = open(log.c_str(), O_WRONLY | O_CREAT | O_APPEND, 0600);
    dup2(fd, 1);
    dup2(fd, 2);
    execvp(arguments[0], arguments.data());
    dprintf(2, "%s is not installed; scripts/install_packages.sh test installs it\n", arguments[0]);
    _exit(127);
  }
  bool HasEnded() {
    if (pid_ <= 0 || waitpid(pid_, nullptr, WNOHANG) == 0) return pid_ <= 0;
    pid_ = 0;
    return true;
  }

  const Options options_;
  TemporaryFolder folder_;
  const int port_;
  pid_t pid_ = 0;
};

}  // namespace weir::testing
