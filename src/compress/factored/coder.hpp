// The coder of codecs that send a matrix as two factors of few columns.
#pragma once

#include "compress/codec.hpp"

namespace syncopate::compress::factored {

/// PowerSGD's two additive rounds. With V = G + R (feedback.hpp), of N ranks, and Q of the last step:
///
///   P = average of V Q, made orthonormal;  Q_n = V^T P, and R' = V - P Q_n^T;  Q' = average of Q_n;  result P Q'^T
///
/// Q is kept, equal on all ranks. It is made orthonormal before it is used, so that the size of gradients does not
/// matter; a column that is zero, as all are at first, or not finite is drawn anew, by the gradient's key and the step.
/// What is not finite in a matrix makes its whole average NaN.
[[nodiscard]] std::unique_ptr<Coder> factored_coder(std::size_t rank, const Feedback& feedback);

/// For Codec::wire_bytes: of both rounds.
[[nodiscard]] std::size_t factored_bytes(std::size_t rank, std::span<const Tensor> tensors);
/// For Codec::kept_bytes: Q.
[[nodiscard]] std::size_t q_bytes(std::size_t rank, const Tensor& tensor);

}  // namespace syncopate::compress::factored
