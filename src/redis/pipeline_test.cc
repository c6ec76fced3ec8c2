#include "redis/pipeline.h"

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

namespace weir::redis {
namespace {

const Error kFault{ErrorCode::kUnavailable, "gone"};

class TestCall : public Call {
 public:
  explicit TestCall(std::string text)
      : Call(request_, /*deadline=*/100), text_(std::move(text)), words_{"ECHO", text_} {
    request_.words = words_;
  }
  void AskFirst() { request_.asking = true; }
  bool done() const { return done_; }

 protected:
  void Done() override { done_ = true; }

 private:
  Request request_;
  std::string text_;
  std::string_view words_[2];
  bool done_ = false;
};

std::string Wire(std::string_view text) {
  return "*2\r\n$4\r\nECHO\r\n$" + std::to_string(text.size()) + "\r\n" + std::string(text) +
         "\r\n";
}

std::vector<std::unique_ptr<TestCall>> MakeCalls(CallQueue& waiting, int count) {
  std::vector<std::unique_ptr<TestCall>> calls;
  for (int i = 0; i < count; ++i) {
    calls.push_back(std::make_unique<TestCall>(std::to_string(i)));
    waiting.PushBack(*calls.back());
  }
  return calls;
}

TEST(Pipeline, RepliesComeInTheOrderOfTheCalls) {
  CallQueue waiting;
  Pipeline pipeline(100);
  auto calls = MakeCalls(waiting, 3);
  EXPECT_EQ(pipeline.EarliestDeadlineNs(), INT64_MAX);
  EXPECT_EQ(pipeline.Send(waiting, 1 << 20), 100);
  EXPECT_EQ(pipeline.out(), Wire("0") + Wire("1") + Wire("2"));
  pipeline.Wrote(pipeline.out().size());
  EXPECT_TRUE(pipeline.out().empty());
  EXPECT_TRUE(waiting.empty());
  EXPECT_EQ(pipeline.under_way(), 3u);
  ASSERT_TRUE(pipeline.Receive("$1\r\n0\r\n-ERR 1\r\n:"));
  EXPECT_EQ(calls[0]->reply().text, "0");
  EXPECT_EQ(calls[1]->reply().text, "ERR 1");
  EXPECT_EQ(calls[1]->outcome(), Call::Outcome::kReply);
  EXPECT_FALSE(calls[2]->done());
  ASSERT_TRUE(pipeline.Receive("2\r\n"));
  EXPECT_EQ(calls[2]->reply().integer, 2);
  EXPECT_EQ(pipeline.under_way(), 0u);
  EXPECT_EQ(pipeline.replies(), 3u);
}

TEST(Pipeline, PushesAnswerNothing) {
  CallQueue waiting;
  Pipeline pipeline(100);
  auto calls = MakeCalls(waiting, 1);
  pipeline.Send(waiting, 1 << 20);
  ASSERT_TRUE(pipeline.Receive(">2\r\n+invalidate\r\n*0\r\n>1\r\n+x\r\n+yes\r\n>1\r\n+x\r\n"));
  EXPECT_EQ(calls[0]->reply().text, "yes");
}

TEST(Pipeline, BoundsBytesOfOneWriteAndCommandsUnderWay) {
  CallQueue waiting;
  Pipeline pipeline(4);
  auto calls = MakeCalls(waiting, 6);
  pipeline.Send(waiting, Wire("0").size() + 1);
  EXPECT_EQ(pipeline.under_way(), 2u);  // The second goes beyond.
  pipeline.Wrote(pipeline.out().size());
  pipeline.Send(waiting, 1 << 20);
  EXPECT_EQ(pipeline.under_way(), 4u);
  EXPECT_FALSE(pipeline.has_room());
  EXPECT_EQ(waiting.size(), 2u);
  waiting.FinishAll(Call::Outcome::kCancelled, {});
}

TEST(Pipeline, AskingTakesAReplyOfItsOwn) {
  CallQueue waiting;
  Pipeline pipeline(100);
  TestCall call("x");
  call.AskFirst();
  waiting.PushBack(call);
  pipeline.Send(waiting, 1 << 20);
  EXPECT_EQ(pipeline.out(), "*1\r\n$6\r\nASKING\r\n" + Wire("x"));
  EXPECT_EQ(pipeline.under_way(), 2u);
  ASSERT_TRUE(pipeline.Receive("+OK\r\n"));
  EXPECT_FALSE(call.done());
  ASSERT_TRUE(pipeline.Receive("+x\r\n"));
  EXPECT_EQ(call.reply().text, "x");
}

TEST(Pipeline, ACallThatGivesUpLeavesItsPlaceToItsReply) {
  CallQueue waiting;
  Pipeline pipeline(100);
  auto calls = MakeCalls(waiting, 3);
  std::string late;
  calls[0]->on_late = [&](resp::Value reply) { late = reply.text; };
  calls[1]->on_late = [&](resp::Value) { late = "an error is nothing to undo"; };
  pipeline.Send(waiting, 1 << 20);
  pipeline.Wrote(pipeline.out().size());
  calls[0]->Finish(Call::Outcome::kDeadline);
  calls[1]->Finish(Call::Outcome::kDeadline);
  EXPECT_TRUE(calls[0]->was_sent());
  calls.erase(calls.begin());  // Its caller is gone.
  EXPECT_EQ(pipeline.under_way(), 3u);
  EXPECT_EQ(pipeline.EarliestDeadlineNs(), 100);
  ASSERT_TRUE(pipeline.Receive("+zero\r\n-NOSCRIPT\r\n+two\r\n"));
  EXPECT_EQ(late, "zero");
  EXPECT_EQ(calls[1]->reply().text, "two");
  EXPECT_EQ(pipeline.late_replies(), 2u);
}

TEST(Pipeline, ACallThatGivesUpBeforeItIsSentIsNotSent) {
  CallQueue waiting;
  Pipeline pipeline(100);
  auto calls = MakeCalls(waiting, 3);
  calls[1]->Finish(Call::Outcome::kDeadline);
  EXPECT_FALSE(calls[1]->was_sent());
  pipeline.Send(waiting, 1 << 20);
  EXPECT_EQ(pipeline.out(), Wire("0") + Wire("2"));
  EXPECT_EQ(pipeline.under_way(), 2u);
}

// The connection breaks after every number of bytes written, and after every number of replies:
// what the kernel took whole is lost unless it was answered, the rest waits again, in order.
TEST(Pipeline, ABreakAtEveryByteNeitherLosesNorRepeatsACall) {
  const int kCount = 4;
  const size_t size = Wire("0").size();
  for (size_t written = 0; written <= kCount * size; ++written) {
    for (size_t answered = 0; answered <= written / size; ++answered) {
      CallQueue waiting;
      Pipeline pipeline(100);
      auto calls = MakeCalls(waiting, kCount);
      TestCall later("later");
      pipeline.Send(waiting, 1 << 20);
      waiting.PushBack(later);  // Came while the others were being written.
      for (size_t i = 0; i < answered; ++i) ASSERT_TRUE(pipeline.Receive("+ok\r\n"));
      pipeline.Wrote(written);
      pipeline.Fail(waiting, kFault);
      EXPECT_EQ(pipeline.under_way(), 0u);
      std::vector<Call*> queued;
      for (Call* call = waiting.front(); call != nullptr; call = waiting.Next(*call)) {
        queued.push_back(call);
      }
      std::vector<Call*> wanted;
      for (size_t i = 0; i < calls.size(); ++i) {
        if (i < answered) {
          EXPECT_EQ(calls[i]->outcome(), Call::Outcome::kReply);
        } else if ((i + 1) * size <= written) {
          EXPECT_EQ(calls[i]->outcome(), Call::Outcome::kLost);
          EXPECT_EQ(calls[i]->fault(), kFault);
          EXPECT_TRUE(calls[i]->was_sent());
        } else {
          EXPECT_FALSE(calls[i]->done());
          EXPECT_FALSE(calls[i]->was_sent());
          wanted.push_back(calls[i].get());
        }
      }
      wanted.push_back(&later);
      EXPECT_EQ(queued, wanted) << written << " written, " << answered << " answered";
      // A fresh connection sends exactly those.
      Pipeline next(100);
      next.Send(waiting, 1 << 20);
      EXPECT_EQ(next.under_way(), wanted.size());
    }
  }
}

TEST(Pipeline, ABreakAfterACallGaveUpTouchesItNoMore) {
  CallQueue waiting;
  Pipeline pipeline(100);
  auto calls = MakeCalls(waiting, 2);
  pipeline.Send(waiting, 1 << 20);
  calls[0]->Finish(Call::Outcome::kDeadline);
  calls.erase(calls.begin());
  pipeline.Wrote(Wire("0").size());
  pipeline.Fail(waiting, kFault);
  EXPECT_EQ(waiting.front(), calls[0].get());
  waiting.FinishAll(Call::Outcome::kCancelled, {});
}

TEST(Pipeline, SaysWhenTheStreamIsOfNoMoreUse) {
  CallQueue waiting;
  Pipeline pipeline(100);
  EXPECT_EQ(pipeline.Receive("+OK\r\n").error().message, "a reply that answers nothing");
  Pipeline full(100);
  EXPECT_EQ(full.Receive("-ERR max number of clients reached\r\n").error().message,
            "the server ended the connection with an error");
  Pipeline http(100);
  EXPECT_EQ(http.Receive("HTTP/1.1 400\r\n").error().message, "the bytes are not RESP");
}

TEST(Pipeline, WritesScriptsByDigestAndByText) {
  CallQueue waiting;
  const std::string_view keys[] = {"k1", "k2"};
  const std::string_view args[] = {"7"};
  Request request;
  request.sha1 = "abc";
  request.text = "return 1";
  request.keys = keys;
  request.args = args;
  wire::Buffer out;
  request.AppendTo(out);
  EXPECT_EQ(out.View(),
            "*6\r\n$7\r\nEVALSHA\r\n$3\r\nabc\r\n$1\r\n2\r\n$2\r\nk1\r\n$2\r\nk2\r\n$1\r\n7\r\n");
  EXPECT_GE(request.Bytes(), out.size());
  out.Clear();
  request.send_text = true;
  request.AppendTo(out);
  EXPECT_EQ(out.View(),
            "*6\r\n$4\r\nEVAL\r\n$8\r\nreturn 1\r\n$1\r\n2\r\n$2\r\nk1\r\n$2\r\nk2\r\n$1\r\n7\r\n");
  EXPECT_GE(request.Bytes(), out.size());
}

}  // namespace
}  // namespace weir::redis
