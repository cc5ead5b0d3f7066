"use strict";
// Draws every plot of the page in the colours of its style sheet, and again when these change.
(function () {
  const dark = window.matchMedia("(prefers-color-scheme: dark)");
  const colours = () => {
    const style = getComputedStyle(document.documentElement);
    const read = (name) => style.getPropertyValue(name).trim();
    return { ink: read("--ink"), soft: read("--soft"), rule: read("--rule"), card: read("--card") };
  };
  const dress = (layout) => {
    const { ink, rule, card } = colours();
    const dressed = { ...layout, font: { color: ink, family: "system-ui, sans-serif", size: 13 } };
    dressed.hoverlabel = { ...layout.hoverlabel, bgcolor: card, bordercolor: rule, font: { color: ink } };
    for (const key of Object.keys(layout)) {
      if (/^[xy]axis\d*$/.test(key)) dressed[key] = { ...layout[key], gridcolor: rule, linecolor: rule };
    }
    return dressed;
  };
  const draw = () => {
    for (const figure of document.querySelectorAll("figure")) {
      const { data, layout } = JSON.parse(figure.querySelector("script").textContent);
      const options = { responsive: true, displaylogo: false, displayModeBar: false };
      Plotly.react(figure.querySelector(".plot"), data, dress(layout), options);
    }
  };
  draw();
  dark.addEventListener("change", draw);
})();
