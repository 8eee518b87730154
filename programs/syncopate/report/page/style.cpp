// The page's style sheet: system fonts, one palette that stays apart for colour-blind readers, dark mode, print.
#include "report/page/style.hpp"

namespace syncopate::tools::report::page {

namespace {

constexpr std::string_view kStyleSheet = R"css(
:root {
  --ground: #ffffff; --ink: #1a1f24; --quiet: #5d6873; --rule: #e2e6ea; --panel: #f5f7f8;
  --forward: #93c5ea; --backward: #2f73b3; --optimizer: #a79ac9; --other: #b9c1c9; --input: #d8b74a;
  --copy: #d597b9;
  --hidden: #2f9377; --weights: #8fc7a2; --exposed: #d65f14; --exposed-line: #f2a76f;
  --wait: #fdf1e7; --wait-line: #d65f14;
  --on-light: #16324a; --on-dark: #ffffff; --bad: #b3261e; --bad-ground: #fdeceb; --raw: .28;
}
@media screen and (prefers-color-scheme: dark) {
  :root {
    --ground: #14181c; --ink: #e4e8ec; --quiet: #97a3ae; --rule: #2b323a; --panel: #1c2228;
    --forward: #7db4dd; --backward: #3a7fc0; --optimizer: #9789bd; --other: #5b6670; --input: #c4a23c;
    --copy: #b8739a;
    --hidden: #35a486; --weights: #a3d3b2; --exposed: #dd6a22; --exposed-line: #f6b27f;
    --wait: #2e241c; --wait-line: #dd6a22;
    --on-light: #0e2233; --on-dark: #ffffff; --bad: #ff8a80; --bad-ground: #3a1d1b; --raw: .34;
  }
}
* { box-sizing: border-box; }
html { background: var(--ground); color: var(--ink); color-scheme: light dark; -webkit-text-size-adjust: 100%; }
body { margin: 0; font: 15px/1.5 system-ui, -apple-system, "Segoe UI", Roboto, "Helvetica Neue", Arial, sans-serif;
  font-variant-numeric: tabular-nums; }
main { max-width: 1096px; margin: 0 auto; padding: 40px 28px 64px; }
h1 { font-size: 30px; line-height: 1.2; font-weight: 650; letter-spacing: -.015em; margin: 0 0 10px;
  text-wrap: balance; }
h2 { font-size: 17px; font-weight: 650; margin: 0 0 2px; }
p { margin: 0 0 12px; max-width: 76ch; }
p.name { color: var(--quiet); font-size: 13px; margin: 0 0 14px; }
p.lead { font-size: 18px; line-height: 1.5; margin: 0 0 28px; text-wrap: pretty; }
section { margin-top: 44px; }
section > p, .quiet, figcaption { color: var(--quiet); }
figure { margin: 0; min-width: 0; }
figcaption { font-size: 13px; margin: 0 0 6px; }
.buckets, figure + figure, .pair + figure { margin-top: 26px; } .pair figure + figure { margin-top: 0; }
.pair { display: grid; grid-template-columns: 1fr 1fr; gap: 40px; }
.notice { border-left: 4px solid var(--bad); background: var(--bad-ground); padding: 12px 16px; margin: 0 0 24px; }
.notice p:last-child, .notice ul { margin: 0; }
.notice ul { padding-left: 18px; }
.figures { display: grid; grid-template-columns: repeat(var(--all), minmax(0, 1fr)); gap: 18px 20px; margin: 0 0 26px;
  padding: 18px 0; border-top: 1px solid var(--rule); border-bottom: 1px solid var(--rule); }
.figures dt { font-size: 13px; color: var(--quiet); }
.figures dd { margin: 0; }
.figures b { display: block; font-size: 22px; line-height: 1.3; font-weight: 600; letter-spacing: -.01em;
  white-space: nowrap; }
.figures span { display: block; font-size: 12.5px; color: var(--quiet); }
.legend { list-style: none; display: flex; flex-wrap: wrap; gap: 2px 20px; margin: 6px 0 10px; padding: 0;
  font-size: 13px;
  color: var(--quiet); }
.legend li { white-space: nowrap; }
.legend svg { width: 12px; height: 12px; vertical-align: -1px; margin-right: 6px; }
.legend.values { margin-bottom: 0; }
.legend b { color: var(--ink); font-weight: 600; }
.wide { overflow-x: auto; }
table { border-collapse: collapse; width: 100%; table-layout: fixed; font-size: 13.5px; }
.wide table { min-width: 860px; }
th { font-weight: 500; color: var(--quiet); font-size: 12.5px; text-align: left; vertical-align: bottom; }
th, td { padding: 5px 10px 5px 0; border-bottom: 1px solid var(--rule); overflow: hidden; text-overflow: ellipsis; }
td.t { overflow-wrap: anywhere; }
th.n, td.n { text-align: right; padding-right: 16px; white-space: nowrap; }
th:last-child, td:last-child { padding-right: 0; }
details { margin-top: 8px; }
summary { cursor: pointer; color: var(--quiet); font-size: 13px; }
code, pre { font: 12.5px/1.5 ui-monospace, SFMono-Regular, Menlo, Consolas, "Liberation Mono", monospace; }
pre { background: var(--panel); padding: 12px 14px; margin: 16px 0 0; white-space: pre-wrap; overflow-wrap: anywhere; }
.configuration { display: grid; grid-template-columns: repeat(auto-fill, minmax(220px, 1fr)); gap: 10px 28px;
  margin: 10px 0 0; }
.configuration dt { font-size: 12.5px; color: var(--quiet); }
.configuration dd { margin: 0; overflow-wrap: anywhere; }
a { color: inherit; }
.bad { color: var(--bad); font-weight: 650; }
footer { margin-top: 52px; padding-top: 14px; border-top: 1px solid var(--rule); font-size: 13px; color: var(--quiet); }
svg { display: block; font: 12px system-ui, -apple-system, "Segoe UI", Roboto, "Helvetica Neue", Arial, sans-serif; }
.legend svg { display: inline-block; }
svg.chart, svg.timeline { width: 100%; height: auto; overflow: visible; }
svg.for-narrow { display: none; }
svg.bar { width: 100%; height: 18px; }
td svg.bar { height: 9px; }
svg.defs { position: absolute; }
svg text { fill: var(--ink); }
svg .tick { fill: var(--quiet); font-size: 11.5px; }
svg .rank { font-weight: 600; font-size: 12.5px; }
svg .on { font-size: 11px; text-anchor: middle; pointer-events: none; fill: var(--on-dark); }
svg .on.forward, svg .on.optimizer, svg .on.other, svg .on.input, svg .on.copy { fill: var(--on-light); }
svg .on.wait { fill: var(--ink); paint-order: stroke; stroke: var(--wait); stroke-width: 4px; }
svg .on.clear { paint-order: stroke; stroke: rgb(0 0 0 / .28); stroke-width: 2px; }
.grid { stroke: var(--rule); } .base { stroke: var(--quiet); opacity: .6; }
.cursor { stroke: var(--quiet); stroke-dasharray: 2 3; pointer-events: none; }
rect.forward { fill: var(--forward); } rect.backward { fill: var(--backward); }
rect.optimizer { fill: var(--optimizer); } rect.input { fill: var(--input); }
rect.other { fill: var(--other); } rect.copy { fill: var(--copy); } rect.hidden { fill: var(--hidden); }
rect.weights { fill: var(--weights); } rect.exposed { fill: url(#hatch); }
rect.planned { fill: transparent; stroke: var(--hidden); stroke-dasharray: 3 2; }
rect.wait { fill: url(#faint-hatch); } rect.clear { fill: transparent; } rect.edged { stroke: var(--ground); }
.hatch-ground { fill: var(--exposed); } .hatch-line { fill: var(--exposed-line); opacity: .55; }
.faint-ground { fill: var(--wait); } .faint-line { fill: var(--wait-line); opacity: .5; }
.lit rect[data-bucket]:not(.same) { opacity: .3; }
polyline { fill: none; stroke-linejoin: round; vector-effect: non-scaling-stroke; }
.raw { stroke-width: 1; opacity: var(--raw); } .smooth { stroke-width: 2; } .dots { stroke-width: 1.5; }
polyline.blue { stroke: var(--backward); } polyline.green { stroke: var(--hidden); }
polyline.orange { stroke: var(--exposed); }
circle { stroke: none; } circle.blue { fill: var(--backward); } circle.green { fill: var(--hidden); }
circle.orange { fill: var(--exposed); }
#tip { position: fixed; z-index: 1; pointer-events: none; max-width: 420px; white-space: pre-line; padding: 6px 10px;
  font-size: 12.5px; line-height: 1.45; background: var(--ink); color: var(--ground); border-radius: 4px; }
#tip[hidden] { display: none; }
@media screen and (max-width: 980px) { .figures { grid-template-columns: repeat(var(--half), minmax(0, 1fr)); } }
@media screen and (max-width: 760px) {
  .figures { grid-template-columns: 1fr 1fr; } .figures div:last-child:nth-child(odd) { grid-column: 1 / -1; }
  svg.for-wide { display: none; } svg.for-narrow { display: block; } svg.chart .tick { font-size: 14px; }
  .legend li { white-space: normal; }
  main { padding: 24px 16px 48px; } .pair { grid-template-columns: 1fr; } h1 { font-size: 24px; }
  p.lead { font-size: 16px; }
  svg.timeline { min-width: 860px; } figure { overflow-x: auto; }
}
@media print {
  * { print-color-adjust: exact; -webkit-print-color-adjust: exact; }
  @page { margin: 14mm; }
  main { max-width: none; padding: 0; } body { font-size: 11px; } section { margin-top: 26px; }
  figure, tr, .figures, .notice { break-inside: avoid; } h2, figcaption, section > p { break-after: avoid; }
  .wide table { min-width: 0; font-size: 9.5px; } th { font-size: 9px; } #tip { display: none; }
  figcaption, .legend, footer, .figures dt, .figures span, .configuration dt { font-size: 10px; }
  code, pre { font-size: 8.5px; }
  .figures { gap: 8px 12px; }
  .configuration { grid-template-columns: repeat(4, 1fr); }
  .pair { gap: 20px; } details { display: none; } .wide { overflow: visible; }
  .figures b { font-size: 17px; } p.lead { font-size: 14px; } h1 { font-size: 22px; }
}
)css";

}  // namespace

std::string_view style_sheet() noexcept { return kStyleSheet; }

}  // namespace syncopate::tools::report::page
