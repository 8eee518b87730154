// The tables of a synchronizer's options.
#include "base/tooling/setting_row.hpp"
#include "syncopate/synchronizer.hpp"
#include "syncopate/tooling/units.hpp"

namespace syncopate {

namespace {

using Allow = AllowedValues;
using Options = SynchronizerOptions;

template <auto kMember>
constexpr auto row = base::setting_row<Options, kMember>;

constexpr int kMostSteps = 1 << 30;

constexpr Setting<Options> kExchange[] = {
    row<&Options::exchange>("exchange", "--exchange", Allow::any(), "NAME (`syncopate info exchange`)",
                            "how ranks combine gradients; none: each rank keeps its own; `syncopate train` also takes "
                            "parameter_server: servers hold the weights"),
    row<&Options::algorithm>("algorithm", "--algorithm", Allow::any(), "NAME (`syncopate info algorithm`)",
                             "collective algorithm"),
    row<&Options::zero_missing>("zero_missing", "--zero-missing", Allow::listed(), "true, false",
                                "a parameter without a gradient counts as zero and is not an error"),
    row<&Options::clip_norm>("clip_norm", "", Allow::real(0), "0 (any) or more",
                             "largest global L2 norm of the averaged gradients; 0: any"),
    row<&Options::broadcast_every>("broadcast_every", "--broadcast-every", Allow::whole(1, kMostSteps), "1 or more",
                                   "exchange allreduce_broadcast: steps between broadcasts of rank 0's weights"),
};

constexpr Setting<Options> kPlanning[] = {
    row<&Options::policy>("policy", "--policy", Allow::any(), "NAME (`syncopate info policy`)",
                          "how gradients are grouped into buckets"),
    {"fusion_bytes", "--fusion-bytes", Allow::bytes(), "0 (by model and ranks) or more",
     "size at which the policy fusion closes a bucket",
     [](const Options& options) { return std::to_string(options.fusion_bytes); },
     [](Options& options, std::string_view text) { options.fusion_bytes = parse_bytes(text); }},
    row<&Options::check_every>("check_every", "--check-every", Allow::whole(0, kMostSteps), "0 (never) or more",
                               "policies that use times: steps between checks whether times have drifted and to plan "
                               "again"),
};

}  // namespace

std::span<const Setting<Options>> exchange_settings() { return kExchange; }
std::span<const Setting<Options>> planning_settings() { return kPlanning; }

}  // namespace syncopate
