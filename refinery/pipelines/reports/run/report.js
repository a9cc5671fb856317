"use strict";
// The box that filters the sampled documents: every word must be in a sample or in the name of its reason.
{
  const box = document.getElementById("filter");
  if (box) {
    box.parentElement.hidden = false;
    const samples = [...document.querySelectorAll(".sample")];
    const texts = samples.map((one) => (one.textContent + " " + (one.dataset.words || "")).toLowerCase());
    const apply = () => {
      const words = box.value.toLowerCase().split(/\s+/).filter(Boolean);
      let shown = 0;
      samples.forEach((one, place) => {
        one.hidden = !words.every((word) => texts[place].includes(word));
        shown += one.hidden ? 0 : 1;
      });
      for (const group of document.querySelectorAll(".group")) {
        group.hidden = !group.querySelector(".sample:not([hidden])");
        if (words.length && !group.hidden) group.open = true;
      }
      document.getElementById("matches").textContent = words.length ? shown + " of " + samples.length : "";
    };
    box.addEventListener("input", apply);
    box.addEventListener("keydown", (event) => {
      if (event.key === "Escape") { box.value = ""; apply(); }
    });
    // As on many sites: "/" goes to the box, wherever one is.
    document.addEventListener("keydown", (event) => {
      if (event.key === "/" && !event.ctrlKey && !event.metaKey && !(event.target instanceof HTMLInputElement)) {
        event.preventDefault();
        if (box.checkVisibility()) box.focus();
        else {
          addEventListener("panelshown", () => box.focus(), { once: true });
          location.hash = "documents";
        }
      }
    });
    apply();
  }
}
