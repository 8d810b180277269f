"""Who can sit in a seat, and what each seat records."""

import asyncio
import json
import threading
import time
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from deliberation.chat import Renderer
from deliberation.config import PolicyConfig
from deliberation.episode import Generation, Message, Phase, Sampling, StopReason
from deliberation.errors import ModelError
from deliberation.modelref import parse_model
from deliberation.remote.access import is_local
from deliberation.samplers.scripted import ScriptedSampler
from deliberation.samplers.transformers import TransformersSampler
from deliberation.seats import EndpointSeat, ModelSeat, PersonSeat, open_seat
from tests.helpers.tiny import save_tiny, tiny_model
from tests.helpers.tokenizers import IM_END, byte_tokenizer

PHASE = Phase(name="negotiation", sampling=Sampling(max_tokens=8), trained=True)
CHAT = [
    Message(role="system", content="You are Ada."),
    Message(role="user", content="The matter."),
    Message(role="user", content="Hello."),
]


def speak(seat: Any, messages: list[Message] = CHAT, phase: Phase = PHASE, key: int = 1) -> Any:
    return asyncio.run(seat.speak(messages, phase, key))


# --- a model in this process ---------------------------------------------------------------------


def test_a_model_seat_records_prompt_sample_and_version() -> None:
    renderer = Renderer(byte_tokenizer())
    sampler = TransformersSampler(
        tiny_model(initializer_range=0.2), pad_id=renderer.pad_id, weights="step 3"
    )
    said = speak(ModelSeat(renderer, sampler))
    assert said.prompt_ids == renderer.render(CHAT)
    assert 1 <= len(said.ids) <= 8
    assert len(said.logprobs) == len(said.ids)
    assert (said.weights, said.sampling) == ("step 3", PHASE.sampling)
    assert (said.text, said.visible) == renderer.read(said.ids)


def test_its_weights_are_the_sampler_s() -> None:
    renderer = Renderer(byte_tokenizer())
    sampler = ScriptedSampler(["a"], renderer)
    seat = ModelSeat(renderer, sampler)
    seat.weights = "v2"
    assert (seat.weights, sampler.weights) == ("v2", "v2")


def test_a_window_without_room_gives_an_empty_generation() -> None:
    """B26"""
    renderer = Renderer(byte_tokenizer())
    sampler = TransformersSampler(
        tiny_model(), pad_id=renderer.pad_id, weights="w", context_tokens=20
    )
    said = speak(ModelSeat(renderer, sampler))
    assert (said.ids, said.stop, said.empty) == ((), StopReason.CONTEXT_FULL, True)


# --- a script ------------------------------------------------------------------------------------


def test_a_script_is_said_word_by_word_with_certain_tokens() -> None:
    renderer = Renderer(byte_tokenizer())
    seat = ModelSeat(renderer, ScriptedSampler(["Yes.", "<|im_end|>"], renderer))
    said = speak(seat)
    assert said.ids == (*b"Yes.", IM_END)
    assert said.logprobs == (0.0,) * 5
    assert said.truncated_logprobs is None
    assert (said.visible, said.stop) == ("Yes.", StopReason.END_OF_TURN)
    # Control tokens in a script are text: not one id, and cut by the limit of eight.
    cut = speak(seat)
    assert cut.ids == tuple(b"<|im_end")
    assert cut.stop is StopReason.LENGTH
    with pytest.raises(IndexError, match="2 replies, and reply 3"):
        speak(seat)


def test_a_script_may_be_a_function_and_has_a_window() -> None:
    renderer = Renderer(byte_tokenizer())
    sampler = ScriptedSampler(
        lambda request, number: f"{number}:{len(request.prompt_ids)}", renderer
    )
    length = len(renderer.render(CHAT))
    seat = ModelSeat(renderer, sampler)
    assert [speak(seat).visible, speak(seat).visible] == [f"0:{length}", f"1:{length}"]
    assert len(sampler.requests) == 2
    sampler.context_tokens = length
    phase = PHASE.model_copy(update={"sampling": Sampling(top_p=0.5)})
    full = speak(seat, phase=phase)
    assert (full.stop, full.truncated_logprobs) == (StopReason.CONTEXT_FULL, ())


# --- an endpoint ---------------------------------------------------------------------------------

Answer = Callable[[dict[str, Any]], tuple[int, Any]]


class Server:
    """An OpenAI-compatible endpoint on this machine that answers as it is told."""

    def __init__(self) -> None:
        self.answer: Answer = lambda body: (200, reply("Hello."))
        self.requests: list[tuple[str, dict[str, str], dict[str, Any]]] = []
        outer = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = json.loads(self.rfile.read(int(self.headers["content-length"])))
                outer.requests.append((self.path, dict(self.headers), body))
                status, content = outer.answer(body)
                data = json.dumps(content).encode()
                self.send_response(status)
                self.send_header("content-type", "application/json")
                self.send_header("content-length", str(len(data)))
                self.end_headers()
                self.wfile.write(data)

            def log_message(self, *args: Any) -> None:
                return

        self.http = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        threading.Thread(target=self.http.serve_forever, daemon=True).start()
        self.url = f"http://127.0.0.1:{self.http.server_port}"


def reply(content: str | None, finish: str = "stop", **message: Any) -> dict[str, Any]:
    choice = {
        "index": 0,
        "finish_reason": finish,
        "message": {"role": "assistant", "content": content, **message},
    }
    return {"id": "1", "object": "chat.completion", "created": 0, "model": "m", "choices": [choice]}


def problem(status: int, text: str, code: str | None = None) -> Answer:
    return lambda body: (status, {"error": {"message": text, "code": code, "type": "x"}})


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[Server]:
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    monkeypatch.setattr("deliberation.samplers.endpoint.TRIES", 1)
    running = Server()
    yield running
    running.http.shutdown()
    running.http.server_close()


def endpoint(server: Server, **options: Any) -> EndpointSeat:
    return EndpointSeat(parse_model(f"openai:m@{server.url}/v1"), **options)


def test_an_endpoint_s_reply_has_text_and_no_ids(server: Server) -> None:
    said: Generation = speak(endpoint(server))
    assert (said.prompt_ids, said.ids, said.logprobs) == ((), (), ())
    assert (said.text, said.visible, said.stop) == ("Hello.", "Hello.", StopReason.END_OF_TURN)
    assert said.weights == f"openai:m@{server.url}/v1"


def test_an_endpoint_is_sent_the_settings_and_alternating_messages(server: Server) -> None:
    """B02: the matter and the first turn, both the user's, become one message."""
    sampling = Sampling(temperature=0.3, top_p=0.9, top_k=5, max_tokens=7)
    speak(endpoint(server), phase=Phase(name="p", sampling=sampling, trained=False), key=2**40 + 9)
    path, headers, body = server.requests[0]
    assert path == "/v1/chat/completions"
    assert {key.lower(): value for key, value in headers.items()}["authorization"] == "Bearer none"
    assert body["messages"] == [
        {"role": "system", "content": "You are Ada."},
        {"role": "user", "content": "The matter.\n\nHello."},
    ]
    expected = {"model": "m", "temperature": 0.3, "top_p": 0.9, "top_k": 5, "max_tokens": 7}
    assert {name: body[name] for name in expected} == expected
    assert body["seed"] == 9


def test_a_vllm_server_is_named_with_or_without_its_path(server: Server) -> None:
    for tail in ("", "/v1"):
        said = speak(EndpointSeat(parse_model(f"vllm:{server.url}{tail}#org/name")))
        assert said.visible == "Hello."
    assert [path for path, _, _ in server.requests] == ["/v1/chat/completions"] * 2
    assert server.requests[0][2]["model"] == "org/name"


@pytest.mark.parametrize(
    ("content", "visible"),
    [
        ("<think>floor is 70</think>I ask 90", "I ask 90"),
        ("floor is 70</think>I ask 90", "I ask 90"),
        ("<think>cut in the middle", ""),
        ("[THINK]70[/THINK] 90", "90"),
        ("", ""),
        (None, ""),
    ],
)
def test_an_endpoint_s_thinking_is_not_visible(
    server: Server, content: str | None, visible: str
) -> None:
    """B05, B25, B29"""
    server.answer = lambda body: (200, reply(content))
    assert speak(endpoint(server)).visible == visible


def test_an_endpoint_s_cut_and_full_context_are_told_apart(server: Server) -> None:
    """B26"""
    server.answer = lambda body: (200, reply("I was", "length"))
    assert speak(endpoint(server)).stop is StopReason.LENGTH
    server.answer = problem(400, "too long", "context_length_exceeded")
    assert speak(endpoint(server)).stop is StopReason.CONTEXT_FULL
    server.answer = problem(400, "This model's maximum context length is 20 tokens.")
    assert speak(endpoint(server)).stop is StopReason.CONTEXT_FULL


@pytest.mark.parametrize(
    ("answer", "words"),
    [
        (problem(401, "bad key sk-secret"), "does not accept the key; set OPENAI_API_KEY"),
        (problem(403, "sk-secret"), "denies access"),
        (problem(404, "sk-secret"), "knows no model 'm'"),
        (problem(429, "sk-secret"), "limits the rate"),
        (problem(400, "top_p must be below 1"), r"refused the request \(.*top_p must be below 1"),
        (problem(500, "sk-secret"), "answered 500"),
        (
            lambda body: (200, reply(None, refusal="I won't.")),
            "the model refused; use another model",
        ),
        (lambda body: (200, reply("", "content_filter")), "content filter"),
        (lambda body: (200, {**reply(""), "choices": []}), "without any choice"),
    ],
)
def test_an_endpoint_s_failures_are_one_sentence(
    server: Server, answer: Answer, words: str
) -> None:
    server.answer = answer
    with pytest.raises(ModelError, match=words) as caught:
        speak(endpoint(server))
    assert str(caught.value).startswith(f"openai:m@{server.url}/v1: ")
    assert "sk-secret" not in str(caught.value)
    assert caught.value.__cause__ is None


def test_a_slow_endpoint_is_given_up_after_the_deadline(server: Server) -> None:
    def slow(body: dict[str, Any]) -> tuple[int, Any]:
        time.sleep(1)
        return 200, reply("late")

    server.answer = slow
    with pytest.raises(ModelError, match=r"no reply within 0\.2 seconds|did not answer in time"):
        speak(endpoint(server, deadline_s=0.2))


def test_an_endpoint_that_is_not_there_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("deliberation.samplers.endpoint.TRIES", 1)
    with pytest.raises(ModelError, match="cannot be reached; check the URL"):
        speak(EndpointSeat(parse_model("openai:m@http://127.0.0.1:9/v1")))


def test_a_key_is_wanted_except_on_this_machine_and_its_network(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    for text in ("openai:gpt-4o-mini", "openai:m@https://example.com/v1"):
        with pytest.raises(ModelError, match="OPENAI_API_KEY"):
            EndpointSeat(parse_model(text))
    for text in (
        "openai:m@http://localhost:1/v1",
        "openai:m@http://gpu-7:1/v1",
        "vllm:http://a.b#m",
    ):
        EndpointSeat(parse_model(text))
    monkeypatch.setenv("OPENAI_API_KEY", "sk-1")
    EndpointSeat(parse_model("openai:gpt-4o-mini"))
    with pytest.raises(ModelError, match="it is not served"):
        EndpointSeat(parse_model("embedded"))


@pytest.mark.parametrize(
    ("url", "local"),
    [
        ("http://10.0.0.3:8000", True),
        ("http://[::1]:8000", True),
        ("http://8.8.8.8", False),
        ("https://api.example.com", False),
    ],
)
def test_which_hosts_are_local(url: str, local: bool) -> None:
    assert is_local(url) is local


def test_openai_itself_has_no_top_k(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-1")
    phase = Phase(name="p", sampling=Sampling(top_k=5), trained=False)
    with pytest.raises(ModelError, match=r"sampling\.\*\.top_k=0"):
        speak(EndpointSeat(parse_model("openai:gpt-4o-mini")), phase=phase)


def test_an_endpoint_seat_serves_one_loop_after_another_and_closes(server: Server) -> None:
    seat = endpoint(server)

    async def speak_and_close() -> Generation:
        said = await seat.speak(CHAT, PHASE, 1)
        await seat.close()
        return said

    assert speak(seat).visible == asyncio.run(speak_and_close()).visible == "Hello."


# --- a person ------------------------------------------------------------------------------------


def test_a_person_is_asked_without_holding_up_the_others() -> None:
    asked: list[list[Message]] = []
    moved_on = threading.Event()

    def ask(messages: list[Message]) -> str:
        asked.append(messages)
        assert moved_on.wait(5)
        return "  I agree.\n"

    async def both() -> Generation:
        answer = asyncio.create_task(PersonSeat(ask).speak(CHAT, PHASE, 1))
        await asyncio.sleep(0.01)
        moved_on.set()
        return await answer

    said = asyncio.run(both())
    assert asked == [CHAT]
    assert (said.visible, said.ids, said.weights) == ("I agree.", (), "person")


def test_what_a_person_s_prompt_raises_reaches_the_dialogue() -> None:
    def ask(messages: list[Message]) -> str:
        raise EOFError("the terminal was closed")

    with pytest.raises(EOFError, match="terminal was closed"):
        speak(PersonSeat(ask))


def test_a_person_who_never_answers_does_not_hold_up_the_end() -> None:
    release = threading.Event()
    seat = PersonSeat(lambda messages: "late" if release.wait(20) else "")

    async def give_up() -> None:
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(seat.speak(CHAT, PHASE, 1), 0.05)

    asyncio.run(give_up())
    threads = [thread for thread in threading.enumerate() if thread.name == "person"]
    assert threads
    assert all(thread.daemon for thread in threads)
    release.set()


# --- by model string -----------------------------------------------------------------------------


def test_seats_open_by_model_string(tmp_path: Path, server: Server) -> None:
    save_tiny(tmp_path)
    policy = PolicyConfig(model="embedded", context_tokens=100)
    seat = open_seat(str(tmp_path), policy=policy, max_batch=4)
    assert isinstance(seat, ModelSeat)
    assert seat.weights == f"path:{tmp_path}"
    assert seat.sampler.context_tokens == 100
    assert speak(seat).ids
    remote = open_seat(f"vllm:{server.url}#m", policy=policy, max_batch=4)
    assert isinstance(remote, EndpointSeat)
    with pytest.raises(ModelError, match="did you mean `embedded`"):
        open_seat("embeded", policy=policy, max_batch=4)


def test_opening_a_seat_without_a_chat_template_never_loads_weights(tmp_path: Path) -> None:
    """B12"""
    save_tiny(tmp_path, byte_tokenizer(None))
    (tmp_path / "model.safetensors").unlink()
    with pytest.raises(ModelError, match=r"policy\.chat_template"):
        open_seat(str(tmp_path), policy=PolicyConfig(model="embedded"), max_batch=4)
