// Coders: the coders of several ranks in one process (laws/coders.hpp), under the names that the tests of codecs use.
#pragma once

#include <gtest/gtest.h>

#include "laws/coders.hpp"

namespace syncopate::compress::test {

using laws::Coders;
using laws::floats_of;
using laws::Payload;
using laws::Shape;
using laws::Values;
using laws::vectors_of;
using laws::with_residual;

}  // namespace syncopate::compress::test
