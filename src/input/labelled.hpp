// Labelled pictures: the parts of a set whose classes are folders, wherever the bytes of the pictures are.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "syncopate/files.hpp"
#include "syncopate/pipeline.hpp"

namespace syncopate::input {

/// One part of a set. Its functions may be called from several threads at a time.
struct Part {
  std::string folder;  ///< SET/train or SET/val, for messages
  std::vector<StoredFile> pictures;
  std::uint64_t version = 0;
  std::function<std::string(std::size_t record, const StoredFile&)> name;  ///< of a picture, for messages
  std::function<void(std::size_t record, const StoredFile&, std::span<std::byte> into)> read;
};

/// The set of two parts. Law: a label is the index of the picture's class (`classes_of`) among the classes of training
/// in byte order. Throws Misuse: a picture without a class, all pictures of training in one class, a class of
/// evaluation that training does not have. Throws Corrupt for a picture of 4 GiB or more.
[[nodiscard]] Dataset labelled_set(Part training, Part evaluation);

}  // namespace syncopate::input
