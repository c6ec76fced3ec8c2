#include "wire/resp/value.h"

namespace weir::resp {

const Value* Value::Find(std::string_view key) const {
  for (size_t i = 0; i + 1 < items.size(); i += 2) {
    if (items[i].IsString() && items[i].text == key) return &items[i + 1];
  }
  return nullptr;
}

}  // namespace weir::resp
