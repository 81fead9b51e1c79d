// Light or dark as Airflow is, if this page is shown inside Airflow; otherwise as the system is.
"use strict";
(() => {
  const mine = document.documentElement;
  let theirs = null;
  try {
    if (window.parent !== window) theirs = window.parent.document.documentElement;
  } catch {
    // Shown inside another site, which does not decide.
  }
  if (theirs === null) return;
  const follow = () => {
    const dark = theirs.classList.contains("dark") || theirs.dataset.theme === "dark" || theirs.style.colorScheme === "dark";
    mine.dataset.theme = dark ? "dark" : "light";
  };
  follow();
  new MutationObserver(follow).observe(theirs, { attributes: true, attributeFilter: ["class", "data-theme", "style"] });
})();
