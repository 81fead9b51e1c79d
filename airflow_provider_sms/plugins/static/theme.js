// Airflow's own choice of light or dark, where this page is shown inside of it; the system's otherwise.
"use strict";
(() => {
  const mine = document.documentElement;
  let theirs = null;
  try {
    if (window.parent !== window) theirs = window.parent.document.documentElement;
  } catch {
    // Shown inside of something that is not ours: it has no say.
  }
  if (theirs === null) return;
  const follow = () => {
    const dark = theirs.classList.contains("dark") || theirs.dataset.theme === "dark" || theirs.style.colorScheme === "dark";
    const theme = dark ? "dark" : "light";
    if (mine.dataset.theme === theme) return;
    mine.dataset.theme = theme;
    document.dispatchEvent(new Event("themechange"));
  };
  follow();
  new MutationObserver(follow).observe(theirs, { attributes: true, attributeFilter: ["class", "data-theme", "style"] });
})();
