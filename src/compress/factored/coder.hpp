// Factored coder: sends a matrix as two factors with few columns.
#pragma once

#include "compress/codec.hpp"
#include "kernel/factor.hpp"

namespace syncopate::compress::factored {

/// Orthonormalises the vectors, each of `length` elements, in order: modified Gram-Schmidt in f32, with dot products in
/// f64 and every projection subtracted twice. A vector becomes zero if it is zero, if it is shorter than 2^-100, or if
/// the projections leave less than 2^-16 of it (rounding errors, not a direction). If a vector is not finite, it and
/// all later vectors become NaN.
void orthonormalise(const kernel::FactorInto& vectors, std::size_t length);

/// PowerSGD's two additive rounds. With V = G + R (feedback.hpp), N ranks, and Q of the last step:
///
///   P = average of V Q, made orthonormal;  Q_n = V^T P, and R' = V - P Q_n^T;  Q' = average of Q_n;  result P Q'^T
///
/// Q is kept and equal on all ranks. It is orthonormalised before use, so the scale of gradients does not matter. A
/// column that is zero (initially all) or not finite is replaced by random numbers from the gradient's key and the
/// step. If an element of a matrix is not finite, its whole average is NaN.
[[nodiscard]] std::unique_ptr<Coder> factored_coder(std::size_t rank, const Feedback& feedback);

/// For Codec::coder_alone: the factors of a rank's own V, as of one rank. A packet of a tensor, empty without elements:
///
///   4 bytes columns | P, then Q of each vector: f32
///
/// The average is the sum of fl(P Q^T / N) in rank order.
[[nodiscard]] std::unique_ptr<Coder> own_factors_coder(std::size_t rank, const Feedback& feedback);

/// For Codec::wire_bytes: both rounds, or the packets.
[[nodiscard]] std::size_t factored_bytes(std::size_t rank, std::span<const Tensor> tensors);
/// For Codec::kept_bytes: the bytes of Q.
[[nodiscard]] std::size_t q_bytes(std::size_t rank, const Tensor& tensor);

}  // namespace syncopate::compress::factored
