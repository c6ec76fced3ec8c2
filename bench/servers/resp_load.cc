// One command of the Redis protocol over many connections, as fast as the server answers:
//
//   resp_load ADDRESS CONNECTIONS PIPELINE SECONDS KEYS WORD...   →   {"requests":…,"seconds":…}
//
// Every connection sends PIPELINE commands, then every connection reads their replies: so that the
// server is never idle, whatever this client costs. `__rand_int__` in a word becomes one of KEYS
// numbers. An error reply ends the tool with a message.
#include <sys/socket.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <random>
#include <string>
#include <string_view>
#include <vector>

#include "bench/servers/load_client.h"
#include "net/endpoint.h"

namespace weir::bench {
namespace {

constexpr std::string_view kPlaceholder = "__rand_int__";

int Connect(const net::Endpoint& endpoint) {
  const int fd = socket(endpoint.family(), SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (fd < 0 || connect(fd, endpoint.address(), endpoint.length()) < 0) Die("cannot connect");
  return fd;
}

void SendAll(int fd, std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t sent = send(fd, bytes.data(), bytes.size(), MSG_NOSIGNAL);
    if (sent <= 0) Die("the server closed the connection");
    bytes.remove_prefix(static_cast<size_t>(sent));
  }
}

// Reads until so many lines have come; with 0, what one read gives. The number of lines.
long ReadLines(int fd, long lines) {
  static char buffer[256 * 1024];
  long seen = 0;
  do {
    const ssize_t got = recv(fd, buffer, sizeof buffer, 0);
    if (got <= 0) Die("the server closed the connection");
    if (buffer[0] == '-') Die(std::string_view(buffer, static_cast<size_t>(got)));
    seen += std::count(buffer, buffer + got, '\n');
  } while (seen < lines);
  return seen;
}

std::string Command(int count, char** words) {
  std::string command = "*" + std::to_string(count) + "\r\n";
  for (int i = 0; i < count; ++i) {
    const std::string word = words[i];
    command += "$" + std::to_string(word.size()) + "\r\n" + word + "\r\n";
  }
  return command;
}

// Writes other numbers over the placeholders at these places.
void Randomize(std::string& text, const std::vector<size_t>& places, uint64_t keys,
               std::mt19937_64& random) {
  for (const size_t place : places) {
    char* const to = text.data() + place;
    std::fill_n(to, kPlaceholder.size(), '0');
    uint64_t number = random() % keys;
    for (size_t i = kPlaceholder.size(); number > 0; number /= 10)
      to[--i] = static_cast<char>('0' + number % 10);
  }
}

int Main(int argc, char** argv) {
  if (argc < 7) Die("usage: resp_load ADDRESS CONNECTIONS PIPELINE SECONDS KEYS WORD...");
  const net::Endpoint endpoint = net::Endpoint::Parse(argv[1]).value();
  const int pipeline = std::atoi(argv[3]);
  const auto keys = static_cast<uint64_t>(std::atoll(argv[5]));
  const std::string command = Command(argc - 6, argv + 6);
  std::string batch;
  for (int i = 0; i < pipeline; ++i) batch += command;
  std::vector<size_t> places;
  for (size_t at = 0; (at = batch.find(kPlaceholder, at)) != std::string::npos; ++at)
    places.push_back(at);

  std::mt19937_64 random(1);
  std::vector<int> connections(static_cast<size_t>(std::atoi(argv[2])));
  long lines = 0;  // Of a reply.
  for (int& fd : connections) {
    fd = Connect(endpoint);
    SendAll(fd, command);
    lines = ReadLines(fd, 0);
  }
  using Clock = std::chrono::steady_clock;
  const auto start = Clock::now();
  const auto end = start + std::chrono::duration<double>(std::atof(argv[4]));
  long requests = 0;
  while (Clock::now() < end) {
    for (const int fd : connections) {
      Randomize(batch, places, keys, random);
      SendAll(fd, batch);
    }
    for (const int fd : connections) ReadLines(fd, lines * pipeline);
    requests += pipeline * static_cast<long>(connections.size());
  }
  std::printf("{\"requests\":%ld,\"seconds\":%.3f}\n", requests,
              std::chrono::duration<double>(Clock::now() - start).count());
  return 0;
}

}  // namespace
}  // namespace weir::bench

int main(int argc, char** argv) { return weir::bench::Main(argc, argv); }
