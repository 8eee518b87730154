// The page's script: faster tooltips, a reading line in charts, one bucket lit on all ranks.
#include "report/page/style.hpp"

namespace syncopate::tools::report::page {

namespace {

constexpr std::string_view kScript = R"js(
(() => {
  const tip = document.createElement("div");
  tip.id = "tip"; tip.hidden = true; document.body.append(tip);
  const show = (event, text) => {
    tip.textContent = text; tip.hidden = false;
    const box = tip.getBoundingClientRect(), right = event.clientX + 14 + box.width > innerWidth;
    tip.style.left = Math.max(4, right ? event.clientX - 14 - box.width : event.clientX + 14) + "px";
    tip.style.top = Math.max(4, Math.min(innerHeight - box.height - 4, event.clientY + 14)) + "px";
  };
  for (const svg of document.querySelectorAll("svg.timeline")) {
    for (const title of svg.querySelectorAll("title")) {
      title.parentNode.dataset.tip = title.textContent; title.remove();
    }
    const dark = () => {
      tip.hidden = true; svg.classList.remove("lit");
      svg.querySelectorAll(".same").forEach(bar => bar.classList.remove("same"));
    };
    svg.addEventListener("pointermove", event => {
      const bar = event.target.closest("[data-tip]");
      dark();
      if (!bar) return;
      show(event, bar.dataset.tip);
      if (bar.dataset.bucket === undefined) return;
      svg.classList.add("lit");
      svg.querySelectorAll(`[data-bucket="${bar.dataset.bucket}"]`).forEach(same => same.classList.add("same"));
    });
    svg.addEventListener("pointerleave", dark);
  }
  const number = value => Math.abs(value) >= 100 ? value.toFixed(0) : value.toPrecision(4);
  for (const svg of document.querySelectorAll("svg.chart")) {
    const [left, right, bottom, top] = svg.dataset.plot.split(" ").map(Number);
    const [x0, x1, y0, y1] = svg.dataset.values.split(" ").map(Number);
    const lines = [...svg.querySelectorAll("polyline")].filter(line => !line.classList.contains("raw")).map(line =>
      ({label: line.dataset.label,
       points: line.getAttribute("points").trim().split(" ").map(p => p.split(",").map(Number))}));
    const cursor = svg.querySelector(".cursor");
    const hide = () => { tip.hidden = true; cursor.style.display = "none"; };
    hide();
    svg.addEventListener("pointermove", event => {
      const at = new DOMPoint(event.clientX, event.clientY).matrixTransform(svg.getScreenCTM().inverse()).x;
      if (at < left - 8 || at > right + 8 || !lines.length) return hide();
      let reading, text = "";
      for (const line of lines) {
        const point = line.points.reduce((a, b) => Math.abs(b[0] - at) < Math.abs(a[0] - at) ? b : a);
        reading ??= point[0];
        if (Math.abs(point[0] - reading) > 12) continue;
        const value = y0 + (point[1] - bottom) / (top - bottom) * (y1 - y0);
        text += `\n${line.label}: ` + (svg.dataset.percent ? (value * 100).toFixed(1) + " %" : number(value));
      }
      const step = Math.round(x0 + (reading - left) / (right - left) * (x1 - x0));
      for (const [name, value] of [["x1", reading], ["x2", reading], ["y1", top], ["y2", bottom]])
        cursor.setAttribute(name, value);
      cursor.style.display = "";
      show(event, "step " + step.toLocaleString("en") + text);
    });
    svg.addEventListener("pointerleave", hide);
  }
})();
)js";

}  // namespace

std::string_view script() noexcept { return kScript; }

}  // namespace syncopate::tools::report::page
