#include "cli/mock_upstream/websocket_echo.h"

#include <openssl/evp.h>

#include <array>
#include <cstdint>

namespace weir::mock {
namespace {

constexpr std::string_view kGuid = "258EAFA5-E914-47DA-95CA-C5AB0DC85B11";
constexpr uint64_t kMaxPayloadBytes = 16 << 20;
constexpr uint8_t kCloseOpcode = 8;
constexpr uint8_t kPingOpcode = 9;
constexpr uint8_t kPongOpcode = 10;

uint64_t BigEndian(std::string_view bytes) {
  uint64_t value = 0;
  for (const char byte : bytes) value = value << 8 | static_cast<uint8_t>(byte);
  return value;
}

void AppendFrameHead(wire::Buffer& out, uint8_t first, uint64_t payload_bytes) {
  out.Append(static_cast<char>(first));
  if (payload_bytes < 126) return out.Append(static_cast<char>(payload_bytes));
  const int length_bytes = payload_bytes < 65536 ? 2 : 8;
  out.Append(static_cast<char>(length_bytes == 2 ? 126 : 127));
  for (int i = length_bytes - 1; i >= 0; --i)
    out.Append(static_cast<char>(payload_bytes >> (8 * i)));
}

}  // namespace

std::string WebSocketAccept(std::string_view key) {
  const std::string text = std::string(key) + std::string(kGuid);
  std::array<unsigned char, EVP_MAX_MD_SIZE> digest;
  unsigned int digest_bytes = 0;
  EVP_Digest(text.data(), text.size(), digest.data(), &digest_bytes, EVP_sha1(), nullptr);
  std::array<unsigned char, 64> base64;
  const int length = EVP_EncodeBlock(base64.data(), digest.data(), static_cast<int>(digest_bytes));
  return {reinterpret_cast<const char*>(base64.data()), static_cast<size_t>(length)};
}

size_t EchoFrame(std::string_view input, wire::Buffer& out, bool& closing) {
  if (input.size() < 2) return 0;
  const auto first = static_cast<uint8_t>(input[0]);
  const auto second = static_cast<uint8_t>(input[1]);
  uint64_t payload_bytes = second & 0x7f;
  size_t head_bytes = 2;
  if (payload_bytes >= 126) {
    const size_t length_bytes = payload_bytes == 126 ? 2 : 8;
    if (input.size() < head_bytes + length_bytes) return 0;
    payload_bytes = BigEndian(input.substr(head_bytes, length_bytes));
    head_bytes += length_bytes;
  }
  if (payload_bytes > kMaxPayloadBytes) {
    closing = true;
    return input.size();
  }
  const bool masked = (second & 0x80) != 0;
  const size_t mask_at = head_bytes;
  if (masked) head_bytes += 4;
  if (input.size() < head_bytes + payload_bytes) return 0;

  const uint8_t opcode = first & 0x0f;
  const uint8_t echoed = opcode == kPingOpcode ? kPongOpcode : opcode;
  if (opcode == kCloseOpcode) closing = true;
  AppendFrameHead(out, static_cast<uint8_t>((first & 0xf0) | echoed), payload_bytes);
  char* const payload = out.Prepare(payload_bytes);
  for (size_t i = 0; i < payload_bytes; ++i) {
    payload[i] = masked ? static_cast<char>(input[head_bytes + i] ^ input[mask_at + i % 4])
                        : input[head_bytes + i];
  }
  out.Commit(payload_bytes);
  return head_bytes + payload_bytes;
}

}  // namespace weir::mock
