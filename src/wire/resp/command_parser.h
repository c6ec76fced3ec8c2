// Splits what a Redis client sends into commands: arrays of bulk strings, and inline commands as
// typed into a terminal. The words are views of the input where they can be.
//
//   resp::CommandParser parser(limits);
//   while (parser.Next(in.View()) == resp::CommandParser::State::kCommand) {
//     Answer(parser.words());
//     in.Consume(parser.consumed());
//   }
//
// After kNeedMore call again with the same bytes and more behind them: what was looked at is not
// looked at again. Thread safety: none; one owner at a time. Views live until the input moves or
// Next is called again.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace weir::resp {

struct CommandLimits {
  size_t words_max = 1024;
  size_t word_bytes_max = 1 << 20;
  size_t command_bytes_max = 2 << 20;  // All of it, as sent.
  size_t inline_bytes_max = 64 << 10;
};

class CommandParser {
 public:
  enum class State : uint8_t { kCommand, kNeedMore, kBroken };

  CommandParser() : CommandParser(CommandLimits()) {}
  explicit CommandParser(const CommandLimits& limits) : limits_(limits) {}

  // Counts from the next command on.
  void SetLimits(const CommandLimits& limits) { limits_ = limits; }

  // The command at the front of the input. kBroken is final; fault() says why, in Redis's words.
  State Next(std::string_view input);

  // After kCommand: its words, none for an empty line, which wants no answer; and how many bytes of
  // the input are done with.
  std::span<const std::string_view> words() const { return words_; }
  size_t consumed() const { return at_; }

  std::string_view fault() const { return fault_; }
  // Whether a command has begun and not ended.
  bool in_command() const { return left_ > 0; }

 private:
  enum class Line : uint8_t { kWhole, kNeedMore, kBroken };
  struct Place {
    size_t at = 0;
    size_t size = 0;
  };

  State Break(std::string_view fault);
  // The line at at_, without its end; at_ moves behind it.
  Line TakeLine(std::string_view input, size_t bytes_max, std::string_view& line);
  State TakeInline(std::string_view input);
  bool SplitInline(std::string_view line);
  bool TakeShortWord(std::string_view input);
  State TakeWords(std::string_view input);

  CommandLimits limits_;
  bool whole_ = false;    // words_ is a command that was given.
  size_t at_ = 0;         // Into the input: what has been taken.
  size_t searched_ = 0;   // And where no line end was found.
  size_t left_ = 0;       // Words that are still to come.
  size_t word_left_ = 0;  // Bytes of the word at at_, with its CRLF; 0: its length comes first.
  std::vector<Place> places_;
  std::vector<std::string_view> words_;
  std::string unquoted_;  // The words of an inline command.
  std::string_view fault_;
};

}  // namespace weir::resp
