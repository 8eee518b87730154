// Element types and reduction operations: sizes and names.
#include "syncopate/dtype.hpp"

#include "base/named.hpp"

namespace syncopate {

namespace {
constexpr std::string_view kDTypeNames[] = {"f32", "f64", "f16", "bf16", "i32", "i64", "u8"};
constexpr std::size_t kElementSizes[] = {4, 8, 2, 2, 4, 8, 1};
constexpr std::string_view kOpNames[] = {"sum", "min", "max", "average", "product"};
}  // namespace

std::size_t size_of(DType dtype) noexcept { return kElementSizes[static_cast<int>(dtype)]; }
std::string_view name_of(DType dtype) noexcept { return kDTypeNames[static_cast<int>(dtype)]; }
std::string_view name_of(ReduceOp op) noexcept { return kOpNames[static_cast<int>(op)]; }
DType dtype_named(std::string_view name) { return base::value_named<DType>("type", name, kDTypeNames); }
ReduceOp reduce_op_named(std::string_view name) { return base::value_named<ReduceOp>("operation", name, kOpNames); }

}  // namespace syncopate
