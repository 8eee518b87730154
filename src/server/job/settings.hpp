// The table of what every worker of a job gives alike, for WorkerOptions and for Setup.
#pragma once

#include "base/tooling/setting_row.hpp"

namespace syncopate::server {

template <class Options>
inline constexpr Setting<Options> kJobSettings[] = {
    base::setting_row<Options, &Options::placement>("placement", "--placement", AllowedValues::any(),
                                                    "NAME (`syncopate info placement`)",
                                                    "exchange parameter_server: placement of weights on servers"),
    base::setting_row<Options, &Options::consistency>("consistency", "--consistency", AllowedValues::any(),
                                                      "NAME or NAME:PARAMETER (`syncopate info consistency`)",
                                                      "exchange parameter_server: bound on the staleness of weights"),
    base::setting_row<Options, &Options::storage>("storage", "--storage", AllowedValues::any(),
                                                  "NAME or NAME:PARAMETER (`syncopate info storage`)",
                                                  "exchange parameter_server: what workers and servers keep"),
    base::setting_row<Options, &Options::answers>("answers", "--answers", AllowedValues::any(),
                                                  "NAME or NAME:PARAMETER (`syncopate info codec`)",
                                                  "exchange parameter_server: codec of the servers' answers"),
    base::setting_row<Options, &Options::flow>("flow", "--flow", AllowedValues::listed(),
                                               "traditional, wait_free, front_first",
                                               "exchange parameter_server: order in which updates and weights travel"),
    base::setting_row<Options, &Options::optimizer>("optimizer", "", AllowedValues::any(),
                                                    "NAME (`syncopate info optimizer`)",
                                                    "the rule by which servers update weights"),
};

}  // namespace syncopate::server
