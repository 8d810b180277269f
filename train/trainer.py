"""The training run: play, advantages, rows, update, record; step after step, stoppable."""

import time
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from deliberation.checkpoints import whole_checkpoints
from deliberation.engine import RewardFunction
from deliberation.environments import EnvironmentSetup, ScenarioSource
from deliberation.environments.source import JudgeOfBoth
from deliberation.episode import Episode
from deliberation.errors import RunError, UserError
from deliberation.faults import fault_point
from deliberation.quiet import quiet_loading
from deliberation.run import Run
from deliberation.schedule import PlayedGroup
from deliberation.settings import check
from deliberation.store import RunStore
from deliberation.worker import EngineLoop, StopRequested, busy_seconds

from ..judge import Judge
from ..judge.probe import probe_attacks
from .advantage import episode_advantages, group_spreads
from .audit import audit_step
from .checkpoint import rotate, save_checkpoint
from .config import TrainingConfig
from .dry_run import DryRun, dry_run
from .grpo import DialogueGRPOTrainer, UpdateFigures
from .monitors import episode_figures
from .partner import open_partner
from .progress import Progress, QuietProgress
from .provenance import check_same_config, config_yaml, provenance
from .rollout import Rollout
from .rows import StepRows, step_rows
from .setup import Policy, check_models, open_policy, open_reward, open_scenarios
from .signals import StopFlag
from .summary import Summary, peak_memory_gib, summarise_steps

LEDGER = "judge/ledger-rank-000.jsonl"
"""In the run folder: what judging cost, one line a call."""
AUDIT_LEDGER = "judge/audit-ledger-rank-000.jsonl"
"""The same of the audit judge."""


class Trainer:
    """A training run, from the config to the report.

    Args:
        config: see `load_config`.
        progress: told of what happens; default is silence.
        policy, scenarios, judge, reward: parts made elsewhere, in place of those that the config
            names; for experiments and tests. A `Policy` and what opens one come from
            `deliberation.train.setup`, which is not part of the public API.
    """

    def __init__(
        self,
        config: TrainingConfig,
        *,
        progress: Progress | None = None,
        policy: Policy | None = None,
        scenarios: ScenarioSource | None = None,
        judge: JudgeOfBoth | None = None,
        reward: RewardFunction | None = None,
    ) -> None:
        check(config)
        self.config = config
        self.progress: Progress = progress or QuietProgress()
        self.judge: JudgeOfBoth = judge or Judge(config.judge)
        self.scenarios = scenarios or open_scenarios(
            config.protocol.environment,
            EnvironmentSetup(config.protocol, config.sampling, config.data, self.judge),
        )
        self.reward = reward or open_reward(config.train.reward)
        self.auditor = _auditor(config)
        self._policy = policy
        self._folder = Path(config.run.dir)

    def train(self, *, resume: bool = False, overwrite: bool = False) -> Summary:
        """Train to the last step of the config; a stop that is asked for ends it earlier.

        Args:
            resume: go on from the newest whole checkpoint in `run.dir`.
            overwrite: if `run.dir` holds a run, move all of it to `abandoned/` in there first.

        Raises:
            RunError: the folder is in use or holds another run, the disk is full, or too large a
                share of the rewards was missing. What was recorded stays, and a checkpoint of the
                last finished step is there to resume from.
        """
        if self._policy is None:
            check_models(self.config)
        store = self._open_store(resume, overwrite)
        loop = EngineLoop()
        with StopFlag(self.progress.stopping) as stop, self.progress:
            try:
                return self._train(store, loop, stop, resume)
            finally:
                loop.close()
                store.close()

    def dry_run(self) -> DryRun:
        """What the run would do: prompts, a masked row, tokens and judge calls. Loads no weights,
        writes nothing."""
        return dry_run(self.config, self._judge_description())

    def _open_store(self, resume: bool, overwrite: bool) -> RunStore:
        if resume:
            store = RunStore.open(self._folder)
            try:
                check_same_config(Run(self._folder).config, self.config, self._folder)
            except BaseException:
                store.close()
                raise
            return store
        # The folder is made before the weights load, so that one in use is seen at once; the
        # record of what the run was made with follows when that is known. Should loading fail,
        # the folder is free again.
        return RunStore.create(self._folder, config_yaml(self.config, {}), overwrite=overwrite)

    def _train(self, store: RunStore, loop: EngineLoop, stop: StopFlag, resume: bool) -> Summary:
        try:
            steps = self._load(store, loop, stop)
        except BaseException:
            store.discard_if_empty()
            raise
        first = steps.restore() + 1 if resume else 1
        stopped = steps.run(first)
        self.progress.phase("reporting")
        report = self._report()
        checkpoints = whole_checkpoints(store.checkpoints)
        return Summary(
            run_dir=str(self._folder),
            first_step=first,
            last_step=steps.done,
            steps=self.config.train.steps,
            stopped=stopped,
            checkpoint=str(checkpoints[max(checkpoints)]) if checkpoints else None,
            report=report,
            figures=summarise_steps(steps.rows),
            seconds=steps.seconds(),
            peak_memory_gib=peak_memory_gib(),
        )

    def _report(self) -> str | None:
        """Write the report; a run that is trained and saved does not fail for the lack of it."""
        try:
            return str(Run(self._folder).report())
        except RunError as error:
            self.progress.note(f"no report was written: {error}")
            return None

    def _load(self, store: RunStore, loop: EngineLoop, stop: StopFlag) -> "_Steps":
        self.progress.phase("loading")
        policy = self._policy or open_policy(self.config)
        if isinstance(self.judge, Judge):
            self.judge.keep_ledger(store.dir / LEDGER)
            loop.run(self.judge.open(), stop.requested)
            if self.auditor is not None:
                self.auditor.keep_ledger(store.dir / AUDIT_LEDGER)
                loop.run(self.auditor.open(), stop.requested)
            if self.judge.compares and self.config.judge.attack_probe:
                probe = loop.run(probe_attacks(self.judge), stop.requested)
                self.progress.note(("WARNING: " if probe.worrying else "") + probe.sentence())
        store.write_config(config_yaml(self.config, self._provenance(policy)))
        return _Steps(self, policy, store, loop, stop)

    def _provenance(self, policy: Policy) -> dict[str, Any]:
        return provenance(policy, self.scenarios, self._judge_description())

    def _judge_description(self) -> dict[str, Any]:
        if isinstance(self.judge, Judge):
            told = self.judge.describe()
            return told if self.auditor is None else {**told, "audit": self.auditor.describe()}
        return {"model": type(self.judge).__qualname__}


def _auditor(config: TrainingConfig) -> Judge | None:
    """The judge of `judge.audit`, with the settings of the other one and no panel of its own."""
    if config.judge.audit.model is None:
        return None
    return Judge(replace(config.judge, model=config.judge.audit.model, panel=[], budget_usd=None))


class _Steps:
    """The steps of one call of `train`: state that lives as long as the model is loaded."""

    def __init__(
        self,
        trainer: Trainer,
        policy: Policy,
        store: RunStore,
        loop: EngineLoop,
        stop: StopFlag,
    ) -> None:
        self.config = trainer.config
        self.progress = trainer.progress
        self.judge = trainer.judge
        self.auditor = trainer.auditor
        self.policy, self.store, self.loop, self.stop = policy, store, loop, stop
        self.rollout = Rollout(
            scenarios=trainer.scenarios,
            policy=policy.seat,
            partner_of=open_partner(
                self.config.partner,
                policy_seat=policy.seat,
                policy=self.config.policy,
                max_batch=self.config.sampling.max_batch,
                prompt_tokens=self.config.protocol.prompt_tokens,
            ),
            store=store,
            seed=self.config.run.seed,
            slots=self.config.train.scenarios_per_step,
            group_size=self.config.train.group_size,
            reward=trainer.reward,
            on_turn=self.progress.turn,
            on_episode=self.progress.episode,
        )
        self.grpo = DialogueGRPOTrainer(
            model=policy.model,
            tokenizer=policy.tokenizer,
            pad_id=policy.renderer.pad_id,
            config=self.config.train,
            temperature=self.config.sampling.negotiation.temperature,
            seed=self.config.run.seed,
            play_step=self._play_step,
            on_step_end=self._on_step_end,
            on_micro_batch=self._on_micro_batch,
        )
        self.done = 0
        """Steps whose update is in the weights."""
        self.saved = 0
        """Step of the newest checkpoint."""
        self.rows: list[dict[str, Any]] = []
        self._groups: list[PlayedGroup] = []
        """Of the step in progress."""
        self._totals: defaultdict[str, float] = defaultdict(float)
        self._episodes: Sequence[Episode] = ()
        self._audit: dict[str, Any] = {}

    # -- resume ------------------------------------------------------------------------------

    def restore(self) -> int:
        """Load the newest whole checkpoint; returns its step, 0 where there is none yet."""
        checkpoints = whole_checkpoints(self.store.checkpoints)
        step = max(checkpoints, default=0)
        if step:
            self.grpo.load_state(checkpoints[step])
        self.done = self.saved = step
        kept = self.store.recorded(step + 1)
        fingerprint = self.policy.fingerprint()
        if kept and all(episode.fingerprint == fingerprint for episode in kept):
            moved = self.store.abandon_after(step + 1)
        else:
            moved = self.store.abandon_after(step)
        self.store.rewind_metrics(step)
        for row in Run(self.store.dir).metrics():
            groups = row["group_spreads"]
            self.rollout.history.extend(PlayedGroup(step=row["step"], **group) for group in groups)
        self.progress.note(
            f"resuming after step {step}"
            + (f", {len(kept)} recorded dialogues of step {step + 1} kept" if kept else "")
            + (f", {len(moved)} later files moved to abandoned/" if moved else "")
        )
        return step

    # -- the loop ----------------------------------------------------------------------------

    def run(self, first: int) -> bool:
        """Make the steps from `first` on; returns whether a stop was asked for."""
        if first > self.config.train.steps:
            return False
        try:
            self.grpo.run_steps(first, self.config.train.steps)
        except StopRequested:
            self._save()
            return True
        except UserError:  # too many missing rewards, a spent budget, a judge that is gone
            self._save()
            raise
        return False

    def _play_step(self, step: int) -> StepRows:
        self._began = time.perf_counter()
        self._busy = self._busy_seconds()
        self.progress.step_begins(
            step, self.config.train.steps, self.rollout.slots * self.rollout.group_size
        )
        self.progress.phase("playing")
        if isinstance(self.judge, Judge):
            self.judge.begin_step(step)
        fingerprint = self.policy.fingerprint()
        self.policy.sampler.weights = f"step-{step - 1}:{fingerprint[:12]}"
        try:
            self._episodes = self.loop.run(
                self.rollout.play_step(step, fingerprint), self.stop.requested
            )
        finally:
            self._played = time.perf_counter()
        self._audit = {}
        if self.auditor is not None:
            self.progress.phase("auditing")
            share = self.config.judge.audit.share
            self._audit = self.loop.run(
                audit_step(self.auditor, self._episodes, share), self.stop.requested
            )
        advantages = episode_advantages(self._episodes)
        self._episodes = advantages.episodes
        self._groups = group_spreads(step, self._episodes)
        rows = step_rows(self._episodes)
        self._counts = {**advantages.counts.figures(), **rows.figures()}
        # What the sampler keeps of prompts is of no use once the weights change.
        self.policy.sampler.forget()
        fault_point("step.before_update")
        self.progress.phase("training")
        return rows

    def _on_micro_batch(self) -> None:
        self.progress.advance()
        if self.stop.requested():
            raise StopRequested

    def _on_step_end(self, step: int, update: UpdateFigures) -> None:
        self.done = step
        self.rollout.history.extend(self._groups)
        row = self._metrics_row(step, update, time.perf_counter())
        for name, value in row["seconds"].items():
            if name != "total":
                self._totals[name] += value
        self.store.finish_step(step, self._episodes)
        # Before the checkpoint: a step that is in a checkpoint always has its line.
        self.store.append_metrics(row)
        self.rows.append(row)
        self.progress.step_ends(row, self.config.train.steps)
        if step % self.config.train.save_every == 0 or step == self.config.train.steps:
            self._save()
        self._stop_if_too_much_is_missing(row)
        if self.stop.requested() and step < self.config.train.steps:
            raise StopRequested

    def _metrics_row(self, step: int, update: UpdateFigures, trained: float) -> dict[str, Any]:
        figures = episode_figures(self._episodes)
        playing = self._played - self._began
        sampling, judging = (
            now - before for now, before in zip(self._busy_seconds(), self._busy, strict=True)
        )
        return {
            "step": step,
            "time": datetime.now(UTC).isoformat(timespec="seconds"),
            **figures,
            **self._counts,
            "group_spreads": [group.model_dump(exclude={"step"}) for group in self._groups],
            "tokens_per_s": figures["sampled_tokens"] / playing if playing else None,
            **update.figures(),
            "judge": self.judge.figures() if isinstance(self.judge, Judge) else {},
            "audit": self._audit,
            "seconds": {
                "sampling": sampling,
                "judging": judging,
                "waiting": max(0.0, playing - sampling - judging),
                "training": trained - self._played,
                "total": trained - self._began,
            },
        }

    def _busy_seconds(self) -> tuple[float, float]:
        """Seconds spent so far on sampling and on judging."""
        judging = self.judge.seconds if isinstance(self.judge, Judge) else busy_seconds["judging"]
        return busy_seconds["sampling"], judging

    def _stop_if_too_much_is_missing(self, row: dict[str, Any]) -> None:
        share = row["reward_missing"] / row["episodes"]
        if share > self.config.train.max_missing_share:
            self._save()
            reasons = ", ".join(f"{count} {reason}" for reason, count in row["missing"].items())
            raise RunError(
                f"step {row['step']}: {row['reward_missing']} of {row['episodes']} rewards are "
                f"missing ({reasons}), more than train.max_missing_share="
                f"{self.config.train.max_missing_share}; repair the judge and continue with "
                "--resume"
            )

    def seconds(self) -> dict[str, float]:
        """Where the time of this call went."""
        return {name: round(value, 1) for name, value in self._totals.items()}

    def _save(self) -> None:
        """Save the last finished step, if that is not done yet."""
        if self.done <= self.saved:
            return
        self.progress.phase("saving")
        began = time.perf_counter()
        with quiet_loading():
            save_checkpoint(self.store.checkpoints, self.done, self.grpo.save_state)
        self._totals["saving"] += time.perf_counter() - began
        self.saved = self.done
        rotate(self.store.checkpoints, self.config.train.keep_checkpoints)
