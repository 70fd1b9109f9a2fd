(() => {
  const root = document.documentElement;
  const id = (name) => document.getElementById(name);

  const theme = id("theme");
  const dark = () => root.dataset.theme ? root.dataset.theme === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
  const label = () => { theme.textContent = dark() ? "Light" : "Dark"; };
  theme.hidden = false;
  theme.onclick = () => { root.dataset.theme = dark() ? "light" : "dark"; label(); };
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", label);
  label();

  const steps = [...document.querySelectorAll(".step")];
  if (steps.length === 0) return;
  const links = [...document.querySelectorAll("nav a")];
  const lists = document.querySelectorAll("nav, nav ol");
  const slider = id("slider"), failing = id("failing");
  const clamp = (i) => Math.max(0, Math.min(steps.length - 1, i));
  let now = -1, started = false; // until then the address is the reader's

  const show = (i) => {
    i = clamp(i);
    if (i === now) return;
    now = i;
    steps.forEach((step, k) => { step.hidden = k !== i; });
    links.forEach((link, k) => {
      if (k === i) link.setAttribute("aria-current", "step"); else link.removeAttribute("aria-current");
    });
    const step = steps[i], call = step.querySelector("h2").textContent.trim();
    const where = `${i + 1} of ${steps.length}`;
    const verdict = step.querySelector(".verdict");
    slider.value = i;
    slider.setAttribute("aria-valuetext", `${where}: ${call}`);
    id("count").textContent = where;
    id("status").textContent = `Step ${where}: ${call}${verdict ? ". Fails: " + verdict.textContent : ""}`;
    id("first").disabled = id("back").disabled = i === 0;
    id("last").disabled = id("forward").disabled = i === steps.length - 1;
    const link = links[i].getBoundingClientRect();
    for (const list of lists) { // whichever scrolls, and not the page
      const box = list.getBoundingClientRect();
      if (link.top < box.top || link.bottom > Math.min(box.bottom, innerHeight)) list.scrollTop += link.top - box.top - list.clientHeight / 2;
    }
    if (started) history.replaceState(null, "", "#" + step.id);
  };
  const fromHash = () => steps.findIndex((step) => "#" + step.id === location.hash);

  id("first").onclick = () => show(0);
  id("back").onclick = () => show(now - 1);
  id("forward").onclick = () => show(now + 1);
  id("last").onclick = () => show(steps.length - 1);
  if (failing) failing.onclick = () => show(Number(failing.dataset.step));
  slider.oninput = () => show(Number(slider.value));
  document.addEventListener("click", (event) => {
    const link = event.target.closest('a[href^="#step-"]');
    if (!link) return;
    const i = steps.findIndex((step) => "#" + step.id === link.getAttribute("href"));
    if (i < 0) return;
    event.preventDefault();
    show(i);
    steps[i].querySelector("h2").focus({ preventScroll: true });
  });
  addEventListener("hashchange", () => { if (fromHash() >= 0) show(fromHash()); });
  addEventListener("keydown", (event) => {
    if (event.altKey || event.ctrlKey || event.metaKey) return;
    const scrolls = event.target.closest(".scroll") && event.key.startsWith("Arrow");
    if (event.target === slider || scrolls) return;
    const go = {
      ArrowLeft: now - 1, k: now - 1, ArrowRight: now + 1, j: now + 1, Home: 0, End: steps.length - 1,
      f: failing ? Number(failing.dataset.step) : now,
    }[event.key];
    if (go === undefined) return;
    event.preventDefault();
    show(go);
  });

  if (matchMedia("(max-width: 760px)").matches) document.querySelector("nav details").open = false;
  document.querySelector(".controls").hidden = false;
  root.classList.add("stepping");
  show(fromHash() >= 0 ? fromHash() : Number(slider.dataset.start));
  started = true;
})();
