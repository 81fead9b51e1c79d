// Charts are drawn from the tables beside them, which hold the numbers for people who cannot see a chart.
"use strict";
(() => {
  const charts = new Map();

  const colour = (name) => {
    const probe = document.createElement("span");
    probe.style.color = `var(--${name})`;
    document.body.append(probe);
    const found = getComputedStyle(probe).color;
    probe.remove();
    return found;
  };

  const read = (figure) => {
    const rows = [...figure.querySelectorAll("tbody tr")];
    return {
      heads: [...figure.querySelectorAll("thead th")].map((cell) => cell.textContent.trim()),
      // The colour of the mark before each label, so that a slice has the same one.
      marks: rows.map((row) => getComputedStyle(row.cells[0], "::before").backgroundColor),
      labels: rows.map((row) => row.cells[0].textContent.trim()),
      firsts: rows.map((row) => Number(row.cells[0].dataset.value)),
      values: (place) => rows.map((row) => Number(row.cells[place].dataset.value)),
    };
  };

  const axis = (title, more = {}) => ({
    beginAtZero: true, grid: { color: colour("line") }, ticks: { color: colour("quiet"), maxRotation: 0, maxTicksLimit: 6 },
    title: { display: Boolean(title), text: title, color: colour("quiet") }, ...more,
  });

  const bars = (data, scales) => ({
    type: "bar",
    data: { labels: data.labels, datasets: [
      { label: data.heads[1], data: data.values(1), backgroundColor: colour("accent"), xAxisID: "x" },
      { label: data.heads[2], data: data.values(2), backgroundColor: colour("warn"), xAxisID: Object.keys(scales).at(-1) },
    ] },
    options: {
      indexAxis: "y",
      plugins: { legend: { display: true, labels: { color: colour("text"), boxWidth: 12 } } },
      scales: { y: { grid: { display: false }, ticks: { color: colour("text") } }, ...scales },
    },
  });

  // Seconds between two ticks of a time axis: round ones.
  const STEPS = [60, 300, 900, 3600, 10800, 21600, 43200, 86400, 172800, 432000, 864000];
  const MARKS = 7;

  const times = (moments) => {
    // Readings within minutes get an axis of one hour.
    const spare = Math.max(0, 3600 - (moments.at(-1) - moments[0])) / 2;
    const [min, max] = [moments[0] - spare, moments.at(-1) + spare];
    const step = STEPS.find((each) => (max - min) / each <= MARKS) ?? STEPS.at(-1);
    const written = step < 86400 ? [5, 16] : [5, 10];
    return {
      type: "linear", min, max, grid: { display: false },
      ticks: { color: colour("quiet"), maxRotation: 0, autoSkip: false,
        callback: (value) => new Date(value * 1000).toISOString().slice(...written).replace("T", " ") },
      afterBuildTicks: (scale) => {
        const first = Math.ceil(min / step);
        scale.ticks = Array.from({ length: Math.floor(max / step) - first + 1 }, (_, place) => ({ value: (first + place) * step }));
      },
    };
  };

  const KINDS = {
    outcome: (data) => ({
      type: "doughnut",
      data: { labels: data.labels, datasets: [{
        data: data.values(1), borderColor: colour("back"), borderWidth: 1,
        backgroundColor: data.marks,
      }] },
      options: { cutout: "62%" },
    }),
    time: (data) => ({
      data: { labels: data.labels, datasets: [
        { type: "line", label: data.heads[2], data: data.values(2), yAxisID: "cost", borderColor: colour("warn"),
          backgroundColor: colour("warn"), borderWidth: 2, pointRadius: 0, pointHitRadius: 8 },
        { type: "bar", label: data.heads[1], data: data.values(1), yAxisID: "messages", backgroundColor: colour("accent") },
      ] },
      options: {
        interaction: { mode: "index", intersect: false },
        plugins: { legend: { display: true, labels: { color: colour("text"), boxWidth: 12 } } },
        scales: {
          x: { grid: { display: false }, ticks: { color: colour("quiet"), maxRotation: 0, autoSkipPadding: 24,
            callback(value) { return this.getLabelForValue(value).slice(11); } } },
          messages: axis(data.heads[1]), cost: axis(data.heads[2], { position: "right", grid: { display: false } }),
        },
      },
    }),
    // Messages and money have a scale each; messages and parts share one, so that they can be compared.
    priced: (data) => bars(data, { x: axis(data.heads[1]), x2: axis(data.heads[2], { position: "top", grid: { display: false } }) }),
    counted: (data) => bars(data, { x: axis("") }),
    line: (data) => ({
      type: "line",
      data: { datasets: [{
        label: data.heads[1], data: data.values(1).map((y, place) => ({ x: data.firsts[place], y })), stepped: true,
        borderColor: colour("accent"), backgroundColor: colour("accent"), borderWidth: 2, pointRadius: 2, fill: false, clip: false,
      }] },
      options: {
        plugins: { tooltip: { callbacks: { title: (items) => data.labels[items[0].dataIndex] } } },
        scales: { x: times(data.firsts), y: axis(data.heads[1]) },
      },
    }),
  };

  const draw = (figure) => {
    const place = figure.querySelector(".canvas");
    charts.get(place)?.destroy();
    const canvas = document.createElement("canvas");
    canvas.setAttribute("role", "img");
    const title = figure.closest("section")?.querySelector("h2")?.textContent ?? "";
    canvas.setAttribute("aria-label", `Chart: ${title}. The table below has its numbers.`);
    place.replaceChildren(canvas);
    const data = read(figure);
    const { options, ...chart } = KINDS[figure.dataset.chart](data);
    const plain = { responsive: true, maintainAspectRatio: false, animation: false };
    const plugins = { legend: { display: false }, ...options.plugins };
    charts.set(place, new Chart(canvas, { ...chart, options: { ...plain, ...options, plugins } }));
    place.dataset.drawn = "yes";
  };

  const drawAll = (within = document) => {
    for (const [place, chart] of charts) {
      if (!place.isConnected) {
        chart.destroy();
        charts.delete(place);
      }
    }
    for (const figure of within.querySelectorAll("figure[data-chart]")) draw(figure);
  };

  window.drawCharts = drawAll;
  document.addEventListener("themechange", () => drawAll());
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => drawAll());
  drawAll();
})();
