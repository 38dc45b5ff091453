// What a page does by itself: it holds what was typed and tried, asks the server, and shows its
// answers. Nothing is worked out here. A link holds what was tried in its fragment, which never
// leaves the browser; history entries hold everything, so that going back is undoing.
"use strict";

(() => {
  const all = (query, from = document) => [...from.querySelectorAll(query)];
  const one = (query, from = document) => from.querySelector(query);
  const byName = (query, key, name) => all(query).filter((each) => each.dataset[key] === name);

  // --- asking the server: the last question counts, and it is asked until it is answered

  const away = one("#away");
  const waits = [400, 800, 1600, 3000, 3000, 3000, 5000, 5000, 5000, 5000];

  function say(text, again, words = "Try again") {
    if (away.textContent !== text) away.textContent = text;
    away.classList.toggle("shown", Boolean(text));
    if (!again) return;
    const button = document.createElement("button");
    button.type = "button";
    button.textContent = words;
    button.addEventListener("click", again);
    away.append(" ", button);
  }

  class Line {
    constructor(address, answered, stopped) {
      this.address = address;
      this.answered = answered;
      this.stopped = stopped;
      this.count = 0;
    }

    drop() {
      this.count += 1;
      clearTimeout(this.timer);
      if (this.abort) this.abort.abort();
    }

    ask(body, delay = 0) {
      this.drop();
      const mine = this.count;
      this.timer = setTimeout(() => this.send(body, mine, 0), delay);
    }

    // There will be no answer, unless somebody asks again.
    stop(text, ...offered) {
      say(text, ...offered);
      this.stopped();
    }

    async send(body, mine, failures) {
      this.abort = new AbortController();
      let text, status;
      try {
        const answer = await fetch(this.address, {
          method: "POST",
          headers: { "Content-Type": "application/json" },
          body: JSON.stringify(body),
          signal: this.abort.signal,
        });
        status = answer.status;
        text = await answer.text();
      } catch (error) {
        if (mine !== this.count) return;
        status = 0;
      }
      if (mine !== this.count) return; // a newer question is under way
      if (status === 503 && failures >= waits.length) { // it has enough to do
        this.stop("The server is busy.", () => this.ask(body));
        return;
      }
      if (status === 0 || status === 503) { // all else would go wrong again
        say(status ? "The server is busy. Trying again…" : "The server is not answering. Trying again…");
        const wait = waits[Math.min(failures, waits.length - 1)];
        this.timer = setTimeout(() => this.send(body, mine, failures + 1), wait);
        return;
      }
      const parts = new DOMParser().parseFromString(text, "text/html");
      if (status !== 200) {
        const offered = status === 409 ? [() => location.reload(), "Reload"] : [];
        this.stop(parts.body.textContent.trim() || "This could not be answered. Reload the page.", ...offered);
        return;
      }
      say("");
      this.answered(parts, body);
    }
  }

  // --- a person

  function startPerson() {
    const root = one(".person");
    const form = one("#person");
    const row = root.dataset.row === "" ? null : Number(root.dataset.row);
    const of = root.dataset.of; // what this page was made of: the model and so on, then the person
    const values = () => all("[data-value]", form);
    let preferences = {};
    let radius = null;
    const first = Object.fromEntries(values().map((each) => [each.name, each.value]));

    const now = () => ({
      values: Object.fromEntries(values().map((each) => [each.name, each.value])),
      preferences: structuredClone(preferences),
      radius,
    });
    const question = () => ({ row, ...now(), n_options: 3, of });
    const same = (a, b) => JSON.stringify(a) === JSON.stringify(b);

    // -- what is shown

    function swap(parts, id) {
      const fresh = one(`#${id}`, parts);
      const old = one(`#${id}`);
      if (!fresh || !old) return;
      const held = old.contains(document.activeElement) ? document.activeElement : null;
      old.replaceWith(document.adoptNode(fresh));
      if (!held) return;
      // what had the focus may be there again; else its part gets it, so that it is not lost
      const twin = all("button, input", fresh).find((each) => same({ ...each.dataset }, { ...held.dataset }));
      const next = twin || one("button, input", fresh) || fresh;
      if (next === fresh) fresh.tabIndex = -1;
      next.focus({ preventScroll: true });
    }

    function mark(parts) {
      const wrong = Object.fromEntries(all("#wrong li", parts).map((each) => [each.dataset.name, each.textContent]));
      for (const line of all("[data-wrong]")) {
        const text = wrong[line.dataset.wrong] || "";
        if (line.textContent !== text) line.textContent = text;
        const control = one(`[aria-describedby~="${line.id}"]`);
        if (control) {
          if (text) {
            control.setAttribute("aria-invalid", "true");
            const box = control.closest("details");
            if (box) box.open = true;
          }
          else control.removeAttribute("aria-invalid");
        }
      }
      for (const each of all("#derived li", parts)) {
        for (const output of byName("[data-derived]", "derived", each.dataset.name)) output.textContent = each.textContent;
      }
    }

    const answer = one(".answer");

    const answers = new Line("/parts/person", (parts, asked) => {
      const fresh = one("#ways", parts);
      swap(parts, "decision");
      swap(parts, "tried");
      swap(parts, "ways");
      one("#ways").classList.toggle("stale", !fresh);
      mark(parts);
      one("#said").textContent = one("#decision").dataset.said;
      const letter = one("#letter");
      letter.hidden = !one("#decision").classList.contains("can-write");
      one("#letter-changed").hidden = !one("#decision").classList.contains("changed");
      letter.elements.state.value = JSON.stringify(asked);
      const sure = one("#sure");
      if (sure && one("#decision").classList.contains("can-slide")) {
        sure.hidden = false;
        sure.classList.add("waiting");
        sureties.ask(asked);
      } else {
        sureties.drop();
        if (sure) sure.hidden = true;
        rest();
      }
    }, rest);

    const sureties = new Line("/parts/sure", (parts) => {
      swap(parts, "sure");
      const sure = one("#sure");
      sure.hidden = false;
      sure.classList.remove("waiting");
      rest();
      slid();
    }, rest);

    // What was shown before stays, and nothing is on its way.
    function rest() {
      one("#sure")?.classList.remove("waiting");
      answer.setAttribute("aria-busy", "false");
    }

    function ask(delay = 0) {
      sureties.drop();
      answer.setAttribute("aria-busy", "true");
      answers.ask(question(), delay);
    }

    // -- what is held: the fragment, the history, the controls

    function fragment(withValues) {
      const held = {};
      if (Object.keys(preferences).length) held.p = preferences;
      if (radius !== null) held.r = radius;
      if (withValues) held.v = now().values;
      return Object.keys(held).length ? `#${encodeURIComponent(JSON.stringify({ ...held, of }))}` : "";
    }

    const address = (withValues) => location.pathname + location.search + fragment(withValues);

    function readFragment() {
      if (location.hash.length < 2) return null;
      try {
        const held = JSON.parse(decodeURIComponent(location.hash.slice(1)));
        if (!isObject(held)) throw new SyntaxError("no object");
        return { state: { values: held.v, preferences: held.p, radius: held.r }, of: held.of };
      } catch {
        leaveOut("This link could not be read and was ignored.");
        return null;
      }
    }

    // -- what was held for a page that may have been another: all that is not of this one stays out

    const isObject = (value) => Boolean(value) && typeof value === "object" && !Array.isArray(value);
    const start = () => ({ values: first, preferences: {}, radius: null });
    const leaveOut = (text) => { one("#left-out").textContent = text; };

    function fitting(held) {
      if (!held || !isObject(held.state)) return null;
      const [desk, person] = of.split(".");
      const [itsDesk, itsPerson] = String(held.of ?? "").split(".");
      if (held.of !== undefined && person !== itsPerson) {
        leaveOut("What was tried before was for another person and was ignored.");
        return start();
      }
      const names = [];
      const state = {
        values: desk === itsDesk ? fittingValues(held.state.values, names) : first,
        preferences: fittingPreferences(held.state.preferences, names),
        radius: fittingRadius(held.state.radius, names),
      };
      if (desk !== itsDesk && held.state.values && !same(held.state.values, first)) names.push("the values");
      if (names.length) leaveOut(`Ignored because it does not fit this page: ${names.join(", ")}.`);
      return state;
    }

    function fittingValues(given, names) {
      if (given === undefined) return first;
      const known = isObject(given) ? Object.entries(given).filter(([name, value]) => name in first && typeof value === "string") : [];
      if (!isObject(given) || known.length < Object.keys(given).length) names.push("some of the values");
      return { ...first, ...Object.fromEntries(known) };
    }

    function fittingPreferences(given, names) {
      const kept = {};
      if (given !== undefined && !isObject(given)) names.push("what was tried");
      for (const [name, mine] of Object.entries(isObject(given) ? given : {})) {
        const known = isObject(mine) ? Object.entries(mine).filter(([key, value]) => fits(name, key, value)) : [];
        if (known.length) kept[name] = Object.fromEntries(known);
        if (!isObject(mine) || known.length < Object.keys(mine).length) names.push(`what was tried with “${name.slice(0, 60)}”`);
      }
      return kept;
    }

    function fits(name, key, value) {
      if (key === "locked") return value === true && byName(".field [data-lock]", "lock", name).length > 0;
      const controls = byName("[data-feature]", "feature", name).filter((each) => each.dataset.key === key);
      if (!controls.length) return false;
      if (key === "avoid") return Array.isArray(value) && value.every((level) => controls.some((each) => each.value === level));
      if (key === "times") return Number(value) >= 1;
      return typeof value === "string" || typeof value === "number";
    }

    function fittingRadius(given, names) {
      if (given === undefined || given === null) return null;
      if (one("#sure") && typeof given === "number" && given >= 0 && given <= 1e9) return given;
      names.push("the size");
      return null;
    }

    function commit() {
      const state = now();
      const before = history.state;
      if (before && same(before.state, state)) return;
      const depth = before ? before.depth + 1 : 1;
      leaveOut("");
      history.pushState({ state, depth, of }, "", address(false));
      showDepth();
    }

    function showDepth() {
      one("#undo").disabled = !(history.state && history.state.depth > 0);
    }

    function setPreference(name, key, value) {
      const mine = { ...preferences[name] };
      const empty = value === "" || value === false || value === null || (Array.isArray(value) && !value.length);
      if (empty) delete mine[key];
      else mine[key] = value;
      if (Object.keys(mine).length) preferences[name] = mine;
      else delete preferences[name];
    }

    function showPreferences() {
      for (const button of all("[data-lock][aria-pressed]")) {
        const locked = Boolean(preferences[button.dataset.lock]?.locked);
        button.setAttribute("aria-pressed", String(locked));
        button.closest(".field").classList.toggle("locked", locked);
      }
      for (const control of all("[data-feature]")) {
        const said = preferences[control.dataset.feature]?.[control.dataset.key];
        if (control.type === "checkbox") control.checked = Boolean(said?.includes(control.value));
        else if (control !== document.activeElement) control.value = said === undefined ? "" : String(said);
      }
      for (const box of all("[data-limits]")) {
        const mine = Object.keys(preferences[box.dataset.limits] || {}).filter((key) => key !== "locked");
        box.classList.toggle("used", mine.length > 0);
      }
    }

    function show(state) {
      for (const control of values()) {
        const value = state.values[control.name] ?? "";
        if (control.value === value) continue;
        control.value = value;
        if (control.value !== value) { // a level that the list does not have
          control.add(new Option(value, value));
          control.value = value;
        }
      }
      preferences = structuredClone(state.preferences);
      radius = state.radius;
      document.activeElement?.matches("[data-feature]") && document.activeElement.blur();
      showPreferences();
      showDepth();
    }

    function tried() {
      showPreferences();
      commit();
      ask();
    }

    // -- what people do

    function readControl(control) {
      const { feature, key } = control.dataset;
      if (key !== "avoid") return setPreference(feature, key, control.value.trim());
      const boxes = byName('[data-key="avoid"]', "feature", feature);
      return setPreference(feature, key, boxes.filter((box) => box.checked).map((box) => box.value));
    }

    form.addEventListener("submit", (event) => event.preventDefault());
    form.addEventListener("input", (event) => {
      if (event.target.dataset.feature) readControl(event.target);
      ask(event.target.matches("input:not([type=checkbox])") ? 120 : 0);
    });
    form.addEventListener("change", (event) => {
      if (event.target.dataset.feature) readControl(event.target);
      showPreferences();
      commit();
    });
    form.addEventListener("keydown", (event) => {
      if (event.key === "Enter" && event.target.matches("input:not([type=checkbox])")) {
        if (event.target.dataset.feature) readControl(event.target);
        commit();
        ask();
      }
    });

    root.addEventListener("click", (event) => {
      const button = event.target.closest("button");
      if (!button) return;
      const { lock, remove, key, level } = button.dataset;
      if (lock !== undefined) {
        setPreference(lock, "locked", !preferences[lock]?.locked);
        tried();
      } else if (remove !== undefined) {
        if (key === "radius") radius = null;
        else if (key === "") delete preferences[remove];
        else if (key === "avoid") setPreference(remove, key, preferences[remove].avoid.filter((each) => String(each) !== level));
        else setPreference(remove, key, "");
        tried();
      } else if (button.dataset.radius !== undefined) {
        radius = Number(button.dataset.radius);
        tried();
      }
    });

    one("#undo").addEventListener("click", () => history.back());
    one("#again").addEventListener("click", () => {
      show(start());
      commit();
      ask();
    });
    for (const [id, withValues] of [["copy", false], ["copy-values", true]]) {
      one(`#${id}`).addEventListener("click", () => copy(location.origin + address(withValues)));
    }

    async function copy(text) {
      const told = one("#copied");
      try {
        await navigator.clipboard.writeText(text);
        told.textContent = "Copied";
      } catch { // no clipboard without a secure connection: the address bar has it then
        history.replaceState(history.state, "", text);
        told.textContent = "The link is in the address bar";
      }
      setTimeout(() => { told.textContent = ""; }, 2500);
    }

    window.addEventListener("popstate", (event) => {
      const held = event.state || readFragment();
      show(fitting(held) || start());
      ask();
    });

    // -- how sure

    const stopAt = (slider) => one(`#stops [data-stop="${slider.value}"]`).dataset;

    function slid() {
      const slider = one("#size");
      if (!slider) return;
      const stop = stopAt(slider);
      slider.setAttribute("aria-valuetext", `size ${stop.size}: ${stop.said}`);
      one("#size-now").textContent = stop.size;
      one("#size-cost").textContent = stop.cost;
      const plain = one("#sure .plainly dd");
      const figure = one("#sure figure");
      // costs are written one way all over the page: as the server writes those of the stops
      if (plain && one(".hollow", figure)) one("text.value", figure).textContent = `plain ${plain.textContent}`;
      follow(figure, stop);
    }

    // Move the marks along the curve as it is drawn: it goes from size 0 to where it ends.
    function follow(figure, stop) {
      const lines = all(".line", figure).map((line) => ["x1", "y1", "x2", "y2"].map((name) => parseFloat(line.getAttribute(name))));
      const marker = one(".marker", figure);
      const start = parseFloat(one(".hollow", figure).getAttribute("cx"));
      const end = Math.max(start, ...lines.map((line) => line[2]));
      const share = Number(stop.radius) / Number(figure.dataset.end);
      if (!(end > start) || !Number.isFinite(share)) return;
      const x = Math.min(start + (end - start) * share, 100);
      const on = lines.filter(([x1, , x2]) => x1 <= x + 0.01 && x <= x2 + 0.01 && x2 > x1)[0];
      for (const name of ["x1", "x2"]) marker.setAttribute(name, `${x}%`);
      const dot = one(".dot", figure);
      if (dot && on) {
        dot.setAttribute("cx", `${x}%`);
        dot.setAttribute("cy", on[1] + ((on[3] - on[1]) * (x - on[0])) / (on[2] - on[0]));
      }
      const text = all("text.value", figure).at(-1);
      text.setAttribute("x", `${x}%`);
      text.setAttribute("text-anchor", x < 30 ? "start" : x > 75 ? "end" : "middle");
      text.textContent = stop.cost;
    }

    root.addEventListener("input", (event) => {
      if (event.target.id === "size") slid();
    });
    root.addEventListener("change", (event) => {
      if (event.target.id !== "size") return;
      const stop = stopAt(event.target);
      radius = stop.usual === undefined ? Number(stop.radius) : null;
      tried();
    });

    // -- the beginning

    one(".tools").hidden = false;
    // Where the fields stand on the left they come first for the keyboard, too.
    if (row !== null) {
      const wide = matchMedia("(min-width: 1000px)");
      const place = () => (wide.matches ? answer.before(form) : answer.after(form));
      wide.addEventListener("change", place);
      place();
    }
    const before = history.state || readFragment();
    const held = fitting(before) || start();
    const depth = before && before.of === of && before.depth || 0;
    show(held);
    if (!history.state || history.state.of !== of || !same(history.state.state, held)) {
      history.replaceState({ state: held, depth, of }, "");
    }
    showDepth();
    if (!same(held, start())) {
      ask();
    } else {
      if (one("#decision").classList.contains("can-slide") && one("#sure")) {
        one("#sure").hidden = false;
        one("#sure").classList.add("waiting");
        answer.setAttribute("aria-busy", "true");
        sureties.ask(question());
      }
    }
  }

  // --- people: while advice is on its way, the table follows

  function followPeople() {
    const refresh = async () => {
      const part = one("#people");
      if (!part || part.dataset.ready === "true") return;
      try {
        const form = one("#search");
        const asked = part.dataset.searched === "true"
          ? fetch(form.action, { method: "POST", body: new URLSearchParams(new FormData(form)) })
          : fetch(location.href);
        const answer = await asked;
        if (answer.ok) {
          const fresh = one("#people", new DOMParser().parseFromString(await answer.text(), "text/html"));
          const held = part.contains(document.activeElement) ? document.activeElement.id : "";
          part.replaceWith(document.adoptNode(fresh));
          if (held) document.getElementById(held)?.focus({ preventScroll: true });
        }
        say("");
      } catch {
        say("The server is not answering. Trying again…");
      }
      setTimeout(refresh, 1000);
    };
    setTimeout(refresh, 700);
  }

  one(".skip").addEventListener("click", (event) => {
    event.preventDefault(); // the fragment holds what was tried
    one("#main").focus();
  });
  if (document.body.dataset.page === "person") startPerson();
  if (document.body.dataset.page === "people") followPeople();
})();
