// What pages gain by a script: "/" goes to the search, a slider moves the number beside it. All works without it.
document.documentElement.classList.add("scripted");
document.addEventListener("keydown", (event) => {
  const at = document.activeElement;
  const typing = at && (at.matches("input, select, textarea") || at.isContentEditable);
  if (event.key !== "/" || typing || event.ctrlKey || event.metaKey || event.altKey) return;
  const search = document.getElementById("find");
  if (search) {
    event.preventDefault();
    search.focus();
  }
});
for (const slider of document.querySelectorAll("input[type=range][data-for]")) {
  const number = document.getElementById(slider.dataset.for);
  slider.addEventListener("input", () => { number.value = slider.value; });
  slider.addEventListener("change", () => { slider.form.requestSubmit(); });
  number.addEventListener("input", () => { slider.value = number.value; });
}
