// The error that a call throws, or that a rank ends with, as text.
#pragma once

#include <gtest/gtest.h>

#include <exception>
#include <source_location>
#include <string>
#include <type_traits>
#include <vector>

#include "syncopate/error.hpp"

namespace syncopate::test {

/// Makes the call, or throws the exception that a pointer holds.
template <class Call>
void perform(const Call& call) {
  if constexpr (!std::is_same_v<Call, std::exception_ptr>) {
    static_cast<void>(call());
  } else if (call) {
    std::rethrow_exception(call);
  }
}

/// The text of the E that `call` throws; "no error" if it throws nothing. An exception of another class leaves.
template <class E = Error, class Call>
std::string thrown(const Call& call) {
  try {
    perform(call);
  } catch (const E& error) {
    return error.what();
  }
  return "no error";
}

/// As `thrown`, behind the name of the error's kind: "Misuse: …".
template <class Call>
std::string kind_thrown(const Call& call) {
  try {
    perform(call);
  } catch (const Error& error) {
    return std::string(name_of(error.kind())) + ": " + error.what();
  }
  return "no error";
}

/// `text` has each of `words`.
inline void expect_words(const std::string& text, const std::vector<std::string>& words,
                         const std::source_location& here = std::source_location::current()) {
  for (const std::string& word : words)
    if (text.find(word) == std::string::npos)
      ADD_FAILURE_AT(here.file_name(), static_cast<int>(here.line())) << "no '" << word << "' in: " << text;
}

/// `call` throws an E, and its text has each of `words`. Returns where it failed.
template <class E = Error, class Call>
Where expect_thrown(const Call& call, const std::vector<std::string>& words,
                    const std::source_location& here = std::source_location::current()) {
  const auto flaw = [&](const std::string& text) {
    ADD_FAILURE_AT(here.file_name(), static_cast<int>(here.line())) << text;
  };
  try {
    perform(call);
    flaw("no error");
  } catch (const E& error) {
    expect_words(error.what(), words, here);
    return error.where();
  } catch (const std::exception& error) {
    flaw(std::string("an error of another class: ") + error.what());
  }
  return {};
}

}  // namespace syncopate::test
