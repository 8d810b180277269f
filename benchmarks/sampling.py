"""The sampler beside `generate` of transformers, on the same prompts in one run: a ratio.

    python benchmarks/sampling.py [--prompts 8] [--tokens 48] [--repeats 3]

The prompts are those of a step: two scenarios, each asked several times. Both sample at temperature
0.5 until the end of turn or the limit; useful tokens are those up to the end of turn. The order of
the two changes with each repeat, and the median of the ratios is printed.
"""

import argparse
import asyncio
import statistics
import time

import torch

from deliberation import Phase, Sampling, load_dilemmas, load_personas
from deliberation.environments import DilemmaEnvironment, DilemmaRules
from deliberation.judging import AgreementJudge
from deliberation.models import load_model, open_renderer, parse_model
from deliberation.samplers import SampleRequest
from deliberation.samplers.transformers import TransformersSampler
from deliberation.schedule import draw_scenario

TEMPERATURE = 0.5


def opening_prompts(renderer, count: int) -> list[tuple[int, ...]]:
    """First prompts of two scenarios, each `count / 2` times."""
    phase = Phase(name="negotiation", sampling=Sampling(), trained=True)
    rules = DilemmaRules(phase, phase, max_turns=6)
    judge: AgreementJudge = None  # type: ignore[assignment]  # nothing is judged here
    prompts = []
    for slot in range(2):
        scenario = draw_scenario(
            load_dilemmas().dilemmas, load_personas().pairs, seed=0, step=1, slot=slot, slots=2
        )
        environment = DilemmaEnvironment(scenario, rules, judge, None)  # type: ignore[arg-type]
        prompts += [renderer.render(environment.observe("policy"))] * (count // 2)
    return prompts


def ours(model, renderer, prompts, tokens: int) -> tuple[float, int]:
    """Seconds and useful tokens of the sampler; a new one each time, so that nothing is warm."""
    sampler = TransformersSampler(model, pad_id=renderer.pad_id, weights="benchmark")
    sampling = Sampling(temperature=TEMPERATURE, max_tokens=tokens)

    async def all_of_them():
        requests = [
            SampleRequest(prompt, sampling, renderer.stop_ids, key)
            for key, prompt in enumerate(prompts)
        ]
        return await asyncio.gather(*(sampler.sample(request) for request in requests))

    began = time.perf_counter()
    samples = asyncio.run(all_of_them())
    return time.perf_counter() - began, sum(len(sample.ids) for sample in samples)


def theirs(model, renderer, prompts, tokens: int) -> tuple[float, int]:
    """Seconds and useful tokens of `generate` on one left-padded batch."""
    length = max(len(prompt) for prompt in prompts)
    pads = [length - len(prompt) for prompt in prompts]
    rows = [(renderer.pad_id,) * pad + prompt for pad, prompt in zip(pads, prompts, strict=True)]
    mask = [[0] * pad + [1] * (length - pad) for pad in pads]
    began = time.perf_counter()
    with torch.no_grad():
        output = model.generate(
            input_ids=torch.tensor(rows),
            attention_mask=torch.tensor(mask),
            do_sample=True,
            temperature=TEMPERATURE,
            top_k=0,
            top_p=1.0,
            max_new_tokens=tokens,
            pad_token_id=renderer.pad_id,
            eos_token_id=sorted(renderer.stop_ids),
        )
    seconds = time.perf_counter() - began
    useful = 0
    for row in output[:, length:].tolist():
        end = next((place for place, id in enumerate(row) if id in renderer.stop_ids), len(row))
        useful += min(end + 1, len(row))
    return seconds, useful


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--prompts", type=int, default=8)
    parser.add_argument("--tokens", type=int, default=48)
    parser.add_argument("--repeats", type=int, default=3)
    arguments = parser.parse_args()
    reference = parse_model("embedded")
    renderer = open_renderer(reference, thinking=False, prompt_tokens=None, chat_template=None)
    model = load_model(reference, dtype="float32", device="cpu")
    prompts = opening_prompts(renderer, arguments.prompts)
    ratios = []
    for repeat in range(arguments.repeats):
        order = (ours, theirs) if repeat % 2 == 0 else (theirs, ours)
        rates = {}
        for way in order:
            torch.manual_seed(repeat)
            seconds, useful = way(model, renderer, prompts, arguments.tokens)
            rates[way] = useful / seconds
            print(f"{way.__name__:7} {useful} tokens in {seconds:.1f} s: {rates[way]:.1f} a second")
        ratios.append(rates[ours] / rates[theirs])
    print(f"ours / theirs: {statistics.median(ratios):.2f} (median of {len(ratios)})")


if __name__ == "__main__":
    main()
