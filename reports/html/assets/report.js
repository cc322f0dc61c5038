"use strict";
(() => {
  const all = (selector, root = document) => [...root.querySelectorAll(selector)];
  const one = (selector) => document.querySelector(selector);
  const say = (words) => { one("#said").textContent = words; };

  // Theme: as the system, light, dark. Storage can be refused, for example in a sandboxed viewer.
  const themes = ["auto", "light", "dark"];
  const remembered = () => { try { return localStorage.getItem("stalefuzz-theme"); } catch { return null; } };
  const remember = (theme) => { try { localStorage.setItem("stalefuzz-theme", theme); } catch { /* stays for this page */ } };
  const button = one("#theme");
  let theme = themes.includes(remembered()) ? remembered() : "auto";
  const wear = () => {
    if (theme === "auto") delete document.documentElement.dataset.theme;
    else document.documentElement.dataset.theme = theme;
    button.textContent = `Theme: ${theme}`;
    button.setAttribute("aria-label", `Colour theme: ${theme === "auto" ? "as the system" : theme}`);
  };
  button.addEventListener("click", () => {
    theme = themes[(themes.indexOf(theme) + 1) % themes.length];
    remember(theme);
    wear();
  });
  wear();

  // A link to a finding unfolds it.
  const unfold = () => {
    const id = decodeURIComponent(location.hash.slice(1));
    const finding = id && document.getElementById(id);
    if (!finding || finding.tagName !== "DETAILS") return;
    finding.open = true;
    finding.scrollIntoView();
  };
  window.addEventListener("hashchange", unfold);
  document.addEventListener("click", (event) => {
    const link = event.target.closest && event.target.closest("a[href^='#finding-']");
    if (link && link.hash === location.hash) unfold();
  });
  unfold();

  // Filters of the findings table; a finding follows its row.
  const rows = all("#findings-table tbody tr");
  const search = one("#search");
  const selects = all("[data-filter]");
  const fits = (row) =>
    selects.every((select) => !select.value || row.dataset[select.dataset.filter] === select.value) &&
    (!search.value || row.textContent.toLowerCase().includes(search.value.toLowerCase()));
  const filter = () => {
    let shown = 0;
    for (const row of rows) {
      const keep = fits(row);
      row.hidden = !keep;
      const finding = document.getElementById(`finding-${row.dataset.id}`);
      if (finding) finding.hidden = !keep;
      if (keep) shown += 1;
    }
    one("#shown").textContent = `${shown} of ${rows.length} shown`;
  };
  if (search) {
    search.addEventListener("input", filter);
    search.form.addEventListener("submit", (event) => event.preventDefault());
    selects.forEach((select) => select.addEventListener("change", filter));
    filter();
  }

  // Sorting: the first click ascends, the next descends.
  const key = (row, column, kind) => {
    const value = row.cells[column].dataset.value;
    return kind === "number" ? Number(value) : value;
  };
  all("[data-sort]").forEach((sorter) => sorter.addEventListener("click", () => {
    const head = sorter.closest("th");
    const up = head.getAttribute("aria-sort") !== "ascending";
    all("th[aria-sort]", head.parentNode).forEach((other) => other.setAttribute("aria-sort", "none"));
    head.setAttribute("aria-sort", up ? "ascending" : "descending");
    const column = head.cellIndex;
    const kind = sorter.dataset.sort;
    const order = (a, b) => (a < b ? -1 : a > b ? 1 : 0) * (up ? 1 : -1);
    rows.sort((a, b) => order(key(a, column, kind), key(b, column, kind)));
    const body = one("#findings-table tbody");
    rows.forEach((row) => body.append(row));
    say(`sorted by ${sorter.textContent.trim()}, ${up ? "ascending" : "descending"}`);
  }));

  // Copying; where the clipboard is out of reach, the text is selected for the reader to copy.
  const byHand = (source) => {
    const fold = source.closest("details:not(.finding)");
    if (fold) fold.open = true;
    const range = document.createRange();
    range.selectNodeContents(source);
    const selection = getSelection();
    selection.removeAllRanges();
    selection.addRange(range);
    return document.execCommand("copy");
  };
  const copy = async (source) => {
    try { await navigator.clipboard.writeText(source.textContent); return true; } catch { return byHand(source); }
  };
  all("[data-copy]").forEach((copier) => copier.addEventListener("click", async () => {
    const done = await copy(document.getElementById(copier.dataset.copy));
    const label = copier.firstChild;
    label.textContent = done ? "Copied" : "Selected";
    copier.classList.toggle("done", done);
    say(done ? "copied" : "selected, copy it with the keyboard");
    setTimeout(() => { label.textContent = "Copy"; copier.classList.remove("done"); }, 1500);
  }));

  // Events by kind.
  all("input[data-event]").forEach((box) => box.addEventListener("change", () => {
    all("#events-table tbody tr").forEach((row) => {
      if (row.dataset.event === box.dataset.event) row.hidden = !box.checked;
    });
  }));

  // Paper has no folds.
  let folded = [];
  window.addEventListener("beforeprint", () => {
    folded = all("details.finding:not([open])");
    folded.forEach((fold) => { fold.open = true; });
  });
  window.addEventListener("afterprint", () => folded.forEach((fold) => { fold.open = false; }));
})();
