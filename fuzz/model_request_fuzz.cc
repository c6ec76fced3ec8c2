// Bodies of AI calls: pieces end like the whole, and a second, plain parser agrees on the values.
#include <boost/json/parse.hpp>
#include <boost/json/value.hpp>

#include "fuzz/check.h"
#include "wire/json/model_request.h"

using namespace weir;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  std::string_view input = fuzz::Input(data, size);
  const size_t piece = 1 + fuzz::TakeByte(input);
  json::ModelRequestReader whole, pieces;
  const bool accepted = whole.Feed(input) && whole.Finish();
  bool going = true;
  for (size_t at = 0; going && at < input.size(); at += piece) {
    going = pieces.Feed(input.substr(at, piece));
  }
  fuzz::Check(accepted == (going && pieces.Finish()));
  fuzz::Check(accepted == whole.error().empty());
  if (!accepted) return 0;
  const json::ModelRequestFields& fields = whole.fields();
  fuzz::Check(fields.model == pieces.fields().model && fields.n == pieces.fields().n);
  fuzz::Check(fields.max_tokens == pieces.fields().max_tokens);
  boost::json::error_code ec;
  boost::json::parse_options options;
  options.max_depth = 64;
  const boost::json::value value =
      boost::json::parse(boost::json::string_view(input.data(), input.size()), ec, {}, options);
  fuzz::Check(!ec && value.is_object());
  const boost::json::value* model = value.get_object().if_contains("model");
  fuzz::Check(fields.model.has_value() == (model != nullptr && model->is_string()));
  if (fields.model) fuzz::Check(*fields.model == std::string_view(model->get_string()));
  return 0;
}
