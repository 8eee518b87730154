// Canvas: the frame and the style sheet of every figure.
#include "figure/canvas.hpp"

#include <fmt/format.h>

#include "svg/element.hpp"

namespace syncopate::tools::figure {

namespace {

constexpr const char* kStyle = R"(<style>
text { font: 12px system-ui, "DejaVu Sans", sans-serif; fill: #444 }
.title { font-size: 15px; font-weight: 600; fill: #1b1f24 } .axis { fill: #1b1f24 } .name { font-weight: 600 }
.end { text-anchor: end } .middle { text-anchor: middle } .grid { stroke: #e3e6ea } .lead { stroke-width: 0.7; opacity: 0.6 }
.curve { fill: none; stroke-width: 1.8; stroke-linejoin: round } .spread { stroke-width: 1.2; opacity: 0.7 }
.on { font-size: 10px; fill: #fff; text-anchor: middle } .mark { stroke: #1b1f24; stroke-width: 1.2 }
</style>
)";

}  // namespace

std::string sheet(const std::string& title, double width, double height, const std::string& drawn) {
  return fmt::format(
             "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {0} {1}\" width=\"{0}\" height=\"{1}\" "
             "role=\"img\" aria-label=\"{2}\">\n{3}<rect width=\"100%\" height=\"100%\" fill=\"#fff\"/>\n",
             width, height, svg::escaped(title), kStyle) +
         drawn + "</svg>\n";
}

}  // namespace syncopate::tools::figure
