#include "wire/http1/body.h"

#include <gtest/gtest.h>
#include <rapidcheck.h>

#include <string>

namespace weir::http1 {
namespace {

struct Outcome {
  std::string payload;
  size_t consumed = 0;
  BodyReader::State state = BodyReader::State::kNeedMore;
  int status = 0;
  std::string reason;
  friend bool operator==(const Outcome&, const Outcome&) = default;
};

void FeedAll(BodyReader& reader, std::string_view input, Outcome& outcome) {
  for (;;) {
    const BodyReader::Step step = reader.Feed(input);
    outcome.payload += step.payload;
    outcome.consumed += step.consumed;
    input.remove_prefix(step.consumed);
    outcome.state = step.state;
    outcome.status = step.status;
    outcome.reason = step.reason;
    EXPECT_EQ(step.state == BodyReader::State::kPayload, !step.payload.empty());
    if (step.state != BodyReader::State::kPayload) return;
  }
}

Outcome ReadChunked(std::string_view input, const BodyLimits& limits = {}) {
  BodyReader reader;
  reader.Start(BodyKind::kChunked, 0, limits);
  Outcome outcome;
  FeedAll(reader, input, outcome);
  return outcome;
}

TEST(BodyReader, ReadsChunks) {
  const std::string text = "5\r\nhello\r\n00a;x=\"y\"\r\n, world!!!\r\n0\r\n\r\nNEXT";
  const Outcome outcome = ReadChunked(text);
  EXPECT_EQ(outcome.payload, "hello, world!!!");
  EXPECT_EQ(outcome.consumed, text.size() - 4);
  EXPECT_EQ(outcome.state, BodyReader::State::kDone);
}

TEST(BodyReader, ReadsByLengthAndUntilClose) {
  BodyReader reader;
  Outcome outcome;
  reader.Start(BodyKind::kLength, 5);
  FeedAll(reader, "hel", outcome);
  EXPECT_EQ(outcome.state, BodyReader::State::kNeedMore);
  FeedAll(reader, "loNEXT", outcome);
  EXPECT_EQ(outcome.payload, "hello");
  EXPECT_EQ(outcome.consumed, 5u);
  EXPECT_EQ(outcome.state, BodyReader::State::kDone);
  EXPECT_EQ(reader.payload_bytes(), 5);

  reader.Start(BodyKind::kUntilClose, 0);
  Outcome until_close;
  FeedAll(reader, "abc", until_close);
  EXPECT_EQ(until_close.state, BodyReader::State::kNeedMore);
  EXPECT_EQ(reader.FinishInput().state, BodyReader::State::kDone);

  reader.Start(BodyKind::kNone, 0);
  EXPECT_EQ(reader.Feed("NEXT").state, BodyReader::State::kDone);
  EXPECT_EQ(reader.Feed("NEXT").consumed, 0u);
}

TEST(BodyReader, TellsWhenABodyIsCutShort) {
  BodyReader reader;
  reader.Start(BodyKind::kLength, 5);
  reader.Feed("abc");
  EXPECT_EQ(reader.FinishInput().state, BodyReader::State::kError);
  reader.Start(BodyKind::kChunked, 0);
  reader.Feed("5\r\nhello\r\n");
  EXPECT_STREQ(reader.FinishInput().reason, "a body that was cut short");
}

TEST(BodyReader, Case86_BadChunkSize) {
  for (const char* text :
       {"x\r\n", "\r\n", "-1\r\n", "+1\r\n", "0x5\r\nhello\r\n", " 5\r\nhello\r\n",
        "5 \r\nhello\r\n", "5\t;a\r\nhello\r\n", "5\nhello\n", "5\rhello", ";a\r\n", "5h\r\n",
        "1000000000000000\r\n", "ffffffffffffffffff\r\n", "0000000000000005\r\n", "5\r\nhelloXX",
        "5\r\nhello\n0\r\n\r\n", "5\r\nhello\r\r\n", "5\r\nhello0\r\n\r\n"}) {
    const Outcome outcome = ReadChunked(text);
    EXPECT_EQ(outcome.state, BodyReader::State::kError) << text;
    EXPECT_EQ(outcome.status, 400) << text;
  }
}

TEST(BodyReader, Case86_ChunkExtensions) {
  // A line feed alone within an extension ends the line for some readers only.
  EXPECT_EQ(ReadChunked("5;a\nhello\r\n").status, 400);
  EXPECT_EQ(ReadChunked(std::string("5;a\0b\r\nhello\r\n", 14)).status, 400);
  EXPECT_EQ(ReadChunked("5;a\rb\r\nhello\r\n").status, 400);
  const Outcome large = ReadChunked("5;" + std::string(1 << 20, 'a') + "\r\nhello\r\n0\r\n\r\n");
  EXPECT_EQ(large.status, 400);
  EXPECT_EQ(large.reason, "chunk extensions that are too large");
  EXPECT_EQ(large.consumed, 2u + 16 * 1024);
  // Many small ones add up.
  std::string many;
  for (int i = 0; i < 2000; ++i) many += "1;abcdefghi\r\nx\r\n";
  EXPECT_EQ(ReadChunked(many).reason, "chunk extensions that are too large");
  EXPECT_EQ(ReadChunked("1;abc\r\nx\r\n0;d\r\n\r\n", {.extension_bytes_max = 6}).status, 0);
  EXPECT_EQ(ReadChunked("1;abc\r\nx\r\n0;d\r\n\r\n", {.extension_bytes_max = 5}).status, 400);
}

TEST(BodyReader, FiltersTrailers) {
  BodyReader reader;
  reader.Start(BodyKind::kChunked, 0);
  Outcome outcome;
  const std::string text =
      "1\r\nx\r\n0\r\nX-Sum: 1\r\nContent-Length: 5\r\nhost: b\r\nAuthorization: k\r\n"
      "Transfer-Encoding: chunked\r\nServer-Timing: a\r\nRange: b\r\n\r\n";
  FeedAll(reader, text, outcome);
  ASSERT_EQ(outcome.state, BodyReader::State::kDone) << outcome.reason;
  EXPECT_EQ(outcome.consumed, text.size());
  ASSERT_EQ(reader.trailers().size(), 2u);
  EXPECT_EQ(reader.trailers()[0].name, "X-Sum");
  EXPECT_EQ(reader.trailers()[0].value, "1");
  EXPECT_EQ(reader.trailers()[1].name, "Server-Timing");
  EXPECT_EQ(reader.dropped_trailers(), 5u);
}

TEST(BodyReader, Case86_MalformedTrailers) {
  for (const char* trailer : {"X : a\r\n", " X: a\r\n", "X: a\r\n b\r\n", "X\r\n", "X: a\nY: b\r\n",
                              "X: a\rb\r\n", ": a\r\n", "\n"}) {
    EXPECT_EQ(ReadChunked("0\r\n" + std::string(trailer) + "\r\n").status, 400) << trailer;
  }
  EXPECT_EQ(ReadChunked("0\r\nX: " + std::string(1 << 20, 'a')).status, 431);
  std::string many = "0\r\n";
  for (int i = 0; i < 65; ++i) many += "X: a\r\n";
  EXPECT_EQ(ReadChunked(many + "\r\n").status, 431);
}

TEST(BodyReader, HoldsTheBodyBound) {
  EXPECT_EQ(ReadChunked("5\r\nhello\r\n0\r\n\r\n", {.body_bytes_max = 5}).status, 0);
  EXPECT_EQ(ReadChunked("3\r\nhel\r\n3\r\nlo!\r\n", {.body_bytes_max = 5}).status, 413);
  EXPECT_EQ(ReadChunked("fffffffffffffff\r\n", {.body_bytes_max = 5}).status, 413);
  BodyReader reader;
  reader.Start(BodyKind::kLength, 6, {.body_bytes_max = 5});
  EXPECT_EQ(reader.Feed("x").status, 413);
  reader.Start(BodyKind::kUntilClose, 0, {.body_bytes_max = 5});
  Outcome outcome;
  FeedAll(reader, "hello!", outcome);
  EXPECT_EQ(outcome.payload, "hello");
  EXPECT_EQ(outcome.status, 413);
}

TEST(BodyReader, IsTheSameAtEverySplit) {
  const std::string texts[] = {"5\r\nhello\r\na;x=\"y\"\r\n, world!!!\r\n0\r\nA: b\r\n\r\nNEXT",
                               "5\r\nhello\r\n0\r\n\r\n",
                               "5;a\nhello\r\n",
                               "5\r\nhelloX",
                               "0\r\nX: a\r\n b\r\n\r\n",
                               "z"};
  for (const std::string& text : texts) {
    const Outcome whole = ReadChunked(text);
    for (size_t split = 0; split <= text.size(); ++split) {
      BodyReader reader;
      reader.Start(BodyKind::kChunked, 0);
      Outcome outcome;
      FeedAll(reader, std::string_view(text).substr(0, split), outcome);
      if (outcome.state == BodyReader::State::kNeedMore) {
        EXPECT_EQ(outcome.consumed, split);
        FeedAll(reader, std::string_view(text).substr(split), outcome);
      }
      EXPECT_EQ(outcome, whole) << text << " split at " << split;
    }
  }
}

TEST(ChunkedWriter, WritesWhatTheReaderReads) {
  const bool ok = rc::check("written and read again", [] {
    const auto pieces = *rc::gen::arbitrary<std::vector<std::string>>();
    wire::Buffer out;
    std::string expected;
    for (const std::string& piece : pieces) {
      ChunkedWriter::AppendChunk(out, piece);
      expected += piece;
    }
    ChunkedWriter::AppendEnd(out);
    const Outcome outcome = ReadChunked(out.View());
    RC_ASSERT(outcome.payload == expected);
    RC_ASSERT(outcome.state == BodyReader::State::kDone);
    RC_ASSERT(outcome.consumed == out.size());
  });
  EXPECT_TRUE(ok);
}

TEST(ChunkedWriter, WritesExactBytes) {
  wire::Buffer out;
  ChunkedWriter::AppendChunk(out, std::string(26, 'x'));
  ChunkedWriter::AppendChunk(out, "");
  ChunkedWriter::AppendEnd(out, {{"A", "b"}, {"Bad", "c\r\nd"}});
  EXPECT_EQ(out.View(), "1a\r\n" + std::string(26, 'x') + "\r\n0\r\nA: b\r\n\r\n");
}

}  // namespace
}  // namespace weir::http1
