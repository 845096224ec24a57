// Part of open-torch-neuronx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Tokens of the text form, one line at a time.

#ifndef NEURON_LIB_ISA_LEXER_H
#define NEURON_LIB_ISA_LEXER_H

#include <algorithm>
#include <string_view>

namespace neuroncore::isa {

class Lexer {
public:
  /// `line` has no comment and no line end.
  explicit Lexer(std::string_view line) : rest_(line) { skipSpace(); }

  bool atEnd() const { return rest_.empty(); }
  std::string_view rest() const { return rest_; }

  bool accept(std::string_view token) {
    if (!rest_.starts_with(token))
      return false;
    // A word is not the beginning of a longer one.
    if (isWordChar(token.back()) && rest_.size() > token.size() && isWordChar(rest_[token.size()]))
      return false;
    rest_.remove_prefix(token.size());
    skipSpace();
    return true;
  }

  bool peek(std::string_view token) const { return rest_.starts_with(token); }

  /// Letters, digits and underscores, beginning with a letter; empty if there is none.
  std::string_view word() {
    if (rest_.empty() || !isLetter(rest_.front()))
      return {};
    return take(std::find_if_not(rest_.begin(), rest_.end(), isWordChar));
  }

  /// The characters of a number: digits, letters (hexadecimal, exponent), points and signs of exponents.
  std::string_view number() {
    auto end = rest_.begin();
    if (end != rest_.end() && *end == '-')
      ++end;
    for (; end != rest_.end(); ++end) {
      bool exponentSign = (*end == '-' || *end == '+') && end != rest_.begin() && (end[-1] == 'e' || end[-1] == 'E') &&
                          !rest_.starts_with("0x") && !rest_.starts_with("-0x");
      if (!isWordChar(*end) && *end != '.' && !exponentSign)
        break;
    }
    return take(end);
  }

private:
  static bool isLetter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_'; }
  static bool isWordChar(char c) { return isLetter(c) || (c >= '0' && c <= '9'); }

  std::string_view take(std::string_view::iterator end) {
    std::string_view token = rest_.substr(0, size_t(end - rest_.begin()));
    rest_.remove_prefix(token.size());
    skipSpace();
    return token;
  }

  void skipSpace() {
    while (!rest_.empty() && (rest_.front() == ' ' || rest_.front() == '\t'))
      rest_.remove_prefix(1);
  }

  std::string_view rest_;
};

} // namespace neuroncore::isa

#endif // NEURON_LIB_ISA_LEXER_H
