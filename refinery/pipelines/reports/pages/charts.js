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
    const number = each.colours ? each.colours[place] : each.series.length === 1 ? 1 : place;
    const line = colour("--series-" + number);
    if (each.kind === "bars") return { ...series, backgroundColor: line, borderRadius: 2, maxBarThickness: 16 };
    return {
      ...series, data: padded(each, series.data, 0), borderColor: line, borderWidth: 2,
      backgroundColor: colour("--series-" + number + "-fill"),
      stepped: "middle", fill: "origin", pointRadius: 0, pointHitRadius: 12,
    };
  }

  function options(each) {
    const lying = each.kind === "bars";
    const text = { color: colour("--soft") };
    const places = {
      stacked: Boolean(each.stacked), title: { display: !lying, text: each.axis, ...text }, ticks: { ...text, maxRotation: 0, autoSkip: !lying },
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
    else if (each.ticks) {
      // Round numbers alone, each at the step that holds it; the empty place at the beginning comes before all.
      const marks = new Map(each.ticks.map(([place, text]) => [place + 1, text]));
      places.ticks.autoSkip = false;
      places.ticks.callback = (value) => marks.get(value) ?? null;
    }
    const values = {
      beginAtZero: true, stacked: Boolean(each.stacked), ticks: { ...text, maxTicksLimit: 6, callback: (value) => show(value, each.unit) },
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

  // Thresholds, as dashed lines across the steps. Their places are those of the steps that hold them.
  const limitLines = (each) => ({
    id: "limits",
    afterDatasetsDraw(chart) {
      for (const [place, text] of each.limits || []) {
        const x = chart.scales.x.getPixelForValue(place + 0.5), { top, bottom, right } = chart.chartArea, pen = chart.ctx;
        pen.save();
        pen.strokeStyle = pen.fillStyle = colour("--bad");
        pen.setLineDash([4, 3]);
        pen.beginPath(); pen.moveTo(x, top); pen.lineTo(x, bottom); pen.stroke();
        pen.font = "12px " + Chart.defaults.font.family;
        pen.textAlign = x > (chart.chartArea.left + right) / 2 ? "right" : "left";
        pen.fillText(text, x + (pen.textAlign === "right" ? -4 : 4), top + 11);
        pen.restore();
      }
    },
  });

  const drawn = new Map();
  const places = new Map([...document.querySelectorAll("canvas")].map((one) => [one.dataset.chart, one]));
  // What is in a closed tab has no size: it is drawn when it is shown.
  function drawShown() {
    Chart.defaults.font.family = getComputedStyle(document.body).fontFamily;
    for (const each of declared) {
      const canvas = places.get(each.name);
      if (drawn.has(each.name) || !canvas.parentElement.offsetWidth) continue;
      drawn.set(each.name, new Chart(canvas, {
        type: each.kind === "bars" ? "bar" : "line",
        data: { labels: padded(each, each.labels, ""), datasets: each.series.map((series, place) => dataset(each, series, place)) },
        options: options(each), plugins: [limitLines(each)],
      }));
    }
  }
  function draw() {
    for (const chart of drawn.values()) chart.destroy();
    drawn.clear();
    drawShown();
  }
  draw();
  addEventListener("panelshown", drawShown);
  document.addEventListener("toggle", drawShown, true);
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", draw);
  // Paper is light: the style knows "printed", and the charts are drawn again in its colours.
  addEventListener("beforeprint", () => { root.classList.add("printed"); draw(); });
  addEventListener("afterprint", () => { root.classList.remove("printed"); draw(); });
}
