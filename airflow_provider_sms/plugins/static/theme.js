// Light or dark as Airflow is, if this page is shown inside Airflow, the only site that may; otherwise as the system is.
"use strict";
if (window.parent !== window) {
  const airflow = window.parent.document.documentElement;
  const follow = () => {
    document.documentElement.dataset.theme = airflow.classList.contains("dark") ? "dark" : "light";
  };
  follow();
  new MutationObserver(follow).observe(airflow, { attributes: true, attributeFilter: ["class"] });
}
