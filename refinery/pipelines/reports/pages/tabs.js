"use strict";
// Turns the links of pages/tabs.py into tabs (https://www.w3.org/WAI/ARIA/apg/patterns/tabs/). The address says what is
// open: a link to anything inside a panel opens its tab. What is shown now is told by the event "panelshown".
{
  const bar = document.querySelector(".tabs");
  const tabs = bar ? [...bar.querySelectorAll("a[data-panel]")] : [];
  const panelOf = (tab) => document.getElementById(tab.dataset.panel);
  if (tabs.length > 1) {
    document.documentElement.classList.add("tabbed");
    bar.setAttribute("role", "tablist");
    bar.setAttribute("aria-label", "Parts of this page");
    for (const tab of tabs) {
      tab.setAttribute("role", "tab");
      tab.setAttribute("aria-controls", tab.dataset.panel);
      panelOf(tab).setAttribute("role", "tabpanel");
      panelOf(tab).setAttribute("aria-labelledby", tab.id);
    }
    const show = (chosen) => {
      for (const tab of tabs) {
        tab.setAttribute("aria-selected", tab === chosen ? "true" : "false");
        tab.tabIndex = tab === chosen ? 0 : -1;
        panelOf(tab).classList.toggle("away", tab !== chosen);
      }
      // The bar alone scrolls, not the page.
      bar.scrollLeft = chosen.offsetLeft - (bar.clientWidth - chosen.offsetWidth) / 2;
      dispatchEvent(new Event("panelshown"));
    };
    const chosen = () => tabs.find((tab) => tab.getAttribute("aria-selected") === "true");
    const open = () => {
      let target = null;
      try { target = document.getElementById(decodeURIComponent(location.hash.slice(1))); } catch { /* no anchor */ }
      const tab = target && tabs.find((one) => panelOf(one).contains(target));
      if (!tab) return;
      if (tab !== chosen()) show(tab);
      for (let each = target; each; each = each.parentElement) {
        if (each instanceof HTMLDetailsElement) each.open = true;
      }
      if (target === panelOf(tab)) scrollTo(0, Math.min(scrollY, bar.parentElement.offsetTop));
      else target.scrollIntoView();
    };
    // Without a jump, which would take the focus from the tab.
    const choose = (tab) => {
      history.pushState(null, "", "#" + tab.dataset.panel);
      show(tab);
      tab.focus({ preventScroll: true });
      scrollTo(0, Math.min(scrollY, bar.parentElement.offsetTop));
    };
    bar.addEventListener("keydown", (event) => {
      const place = tabs.indexOf(document.activeElement);
      const steps = { ArrowRight: place + 1, ArrowLeft: place - 1, Home: 0, End: tabs.length - 1 };
      if (place < 0 || event.ctrlKey || event.metaKey || event.altKey) return;
      if (event.key === " ") { event.preventDefault(); choose(tabs[place]); }
      if (!(event.key in steps)) return;
      event.preventDefault();
      choose(tabs[(steps[event.key] + tabs.length) % tabs.length]);
    });
    show(tabs[0]);
    addEventListener("hashchange", open);
    // The same link once more: the address does not change, but what it leads to may be closed.
    document.addEventListener("click", (event) => {
      const link = event.target instanceof Element && event.target.closest("a[href^='#']");
      if (tabs.includes(link) && !event.ctrlKey && !event.metaKey && !event.shiftKey) {
        event.preventDefault();
        choose(link);
      } else if (link && link.hash === location.hash) open();
    });
    open();
  }
}
