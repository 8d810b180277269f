"use strict";
(() => {
  const form = document.querySelector(".filters");
  const dialogues = [...document.querySelectorAll(".dialogue")];
  if (!form) return;
  form.hidden = false;

  const count = form.querySelector("output");
  const toggle = form.elements.open;
  const nothing = document.querySelector(".nothing-found");
  // Text is searched as the reader sees it, the matter of the group included.
  const words = new Map();
  const textOf = (dialogue) => {
    if (!words.has(dialogue)) {
      const matter = dialogue.closest(".group").querySelector("header").textContent;
      words.set(dialogue, (matter + " " + dialogue.textContent).toLowerCase());
    }
    return words.get(dialogue);
  };

  const apply = () => {
    const step = form.elements.step.value;
    const end = form.elements.end.value;
    const text = form.elements.text.value.trim().toLowerCase();
    let shown = 0;
    for (const dialogue of dialogues) {
      const fits =
        (!step || dialogue.closest(".group").dataset.step === step) &&
        (!end || dialogue.dataset.end === end) &&
        (!text || textOf(dialogue).includes(text));
      dialogue.hidden = !fits;
      shown += fits;
    }
    for (const group of document.querySelectorAll(".group")) {
      group.hidden = !group.querySelector(".dialogue:not([hidden])");
    }
    nothing.hidden = shown > 0;
    count.textContent =
      shown === dialogues.length ? `${shown} dialogues` : `${shown} of ${dialogues.length} dialogues`;
  };

  form.addEventListener("input", apply);
  form.addEventListener("submit", (event) => event.preventDefault());
  toggle.addEventListener("click", () => {
    const open = toggle.textContent === "Open all";
    for (const dialogue of dialogues) if (!dialogue.hidden) dialogue.open = open;
    toggle.textContent = open ? "Close all" : "Open all";
  });

  // A link to a dialogue opens it, also where a filter had hidden it.
  const follow = () => {
    const target = document.getElementById(decodeURIComponent(location.hash.slice(1)));
    if (target && target.matches(".dialogue")) {
      form.reset();
      apply();
      target.open = true;
      target.scrollIntoView();
    }
  };
  window.addEventListener("hashchange", follow);
  apply();
  follow();
})();
