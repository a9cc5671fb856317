"use strict";
// Draws the charts that the page's data declares (pipelines/reports/pages/charts.py), in the colours of its style.
{
  const declared = JSON.parse(document.getElementById("data").textContent).charts || [];
  const root = document.documentElement;
  root.classList.add("scripted");
  const colour = (name) => getComputedStyle(root).getPropertyValue(name).trim();
  const PREFIXES = [["T", 1e12], ["G", 1e9], ["M", 1e6], ["k", 1e3]];
  const short = (value) => {
    const [prefix, factor] = PREFIXES.find((each) => Math.abs(value) >= each[1]) || ["", 1];
    return Number((value / factor).toPrecision(3)).toString() + (prefix ? " " + prefix : "");
  };
  const show = (value, unit) => {
    if (value === null || value === undefined) return "–";
    if (unit === "share") return Number((value * 100).toPrecision(3)) + " %";
    if (unit === "count") return value.toLocaleString("en");
    if (unit === "seconds") return short(value) + " s";
    return short(value) + (unit === "bytes" ? "B" : "");
  };

  // Steps begin and end on the ground: an empty place at either end.
  const padded = (each, values, empty) => (each.kind === "area" ? [empty, ...values, empty] : values);

  function dataset(each, series, place) {
    // One series alone is what is: it has the colour of what is published.
    const line = colour("--series-" + (each.series.length === 1 ? 1 : place));
    if (each.kind === "bars") return { ...series, backgroundColor: line, borderRadius: 2, maxBarThickness: 16 };
    return {
      ...series, data: padded(each, series.data, 0), borderColor: line, borderWidth: 2,
      backgroundColor: colour("--series-" + (each.series.length === 1 ? 1 : place) + "-fill"),
      stepped: "middle", fill: "origin", pointRadius: 0, pointHitRadius: 12,
    };
  }

  function options(each) {
    const lying = each.kind === "bars";
    const text = { color: colour("--soft") };
    const places = {
      title: { display: !lying, text: each.axis, ...text }, ticks: { ...text, maxRotation: 0, autoSkip: !lying },
      grid: { display: false }, border: { color: colour("--line") },
    };
    if (lying) {
      // A long name is cut on the axis alone: the table and the tooltip have all of it.
      const room = () => Math.max(10, Math.round(root.clientWidth / 30));
      places.ticks.callback = function (value) {
        const label = this.getLabelForValue(value);
        return label.length > room() ? label.slice(0, room() - 1) + "…" : label;
      };
    }
    const values = {
      beginAtZero: true, ticks: { ...text, maxTicksLimit: 6, callback: (value) => show(value, each.unit) },
      grid: { color: colour("--line") }, border: { display: false },
    };
    return {
      indexAxis: lying ? "y" : "x", animation: false, maintainAspectRatio: false, locale: "en",
      interaction: { mode: "index", axis: lying ? "y" : "x", intersect: false },
      scales: lying ? { x: values, y: places } : { x: places, y: values },
      plugins: {
        legend: { display: each.series.length > 1, position: "top", align: "end", labels: { ...text, boxWidth: 12, boxHeight: 12 } },
        tooltip: {
          filter: (item) => item.label !== "",
          callbacks: {
            label: (item) => " " + item.dataset.label + ": " + show(item.raw, each.unit),
          },
        },
      },
    };
  }

  const drawn = [];
  function draw() {
    for (const chart of drawn.splice(0)) chart.destroy();
    Chart.defaults.font.family = getComputedStyle(document.body).fontFamily;
    for (const each of declared) {
      const canvas = [...document.querySelectorAll("canvas")].find((one) => one.dataset.chart === each.name);
      drawn.push(new Chart(canvas, {
        type: each.kind === "bars" ? "bar" : "line",
        data: { labels: padded(each, each.labels, ""), datasets: each.series.map((series, place) => dataset(each, series, place)) },
        options: options(each),
      }));
    }
  }
  draw();
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", draw);
  // Paper is light: the style knows "printed", and the charts are drawn again in its colours.
  addEventListener("beforeprint", () => { root.classList.add("printed"); draw(); });
  addEventListener("afterprint", () => { root.classList.remove("printed"); draw(); });
}
