// Files of a rendezvous by folder.
#include "fuzz/target.hpp"
#include "transport/connect/rendezvous/folder.hpp"

namespace syncopate::fuzz::target {

using namespace transport::connect::rendezvous;

void rendezvous_folder(Input input) {
  may_refuse<Corrupt>([&] {
    const FolderText found = decode_folder_text(text_of(input), "rank-1");
    const FolderText again = decode_folder_text(encode(found), "rank-1");
    hold(again.size == found.size && again.text == found.text, "what was taken travels unchanged");
  });
}

}  // namespace syncopate::fuzz::target
