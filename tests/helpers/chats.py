"""Short forms for the messages of a chat."""

from collections.abc import Sequence

from deliberation.episode import Generation, Message, Sampling, StopReason


def system(text: str) -> Message:
    return Message(role="system", content=text)


def user(text: str) -> Message:
    return Message(role="user", content=text)


def assistant(text: str) -> Message:
    """An assistant message that is a text: somebody else's, or a remote model's."""
    return Message(role="assistant", content=text)


def own(ids: Sequence[int], *, content: str = "never shown: recorded ids stand here") -> Message:
    """An own earlier turn with its recorded ids."""
    generation = Generation(
        prompt_ids=(),
        ids=tuple(ids),
        logprobs=(0.0,) * len(ids),
        sampling=Sampling(),
        stop=StopReason.END_OF_TURN,
        weights="step-000000",
        text=content,
        visible=content,
    )
    return Message(role="assistant", content=content, generation=generation)
