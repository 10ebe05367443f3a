"""Questions about pictures and tables, from the prompt to the verdict; a server plays the model."""

from __future__ import annotations

import ast
import base64
import collections
import csv
import hashlib
import json
import re
import shutil
from pathlib import Path
from typing import Any

import pytest

import judge
from judge.errors import InferenceError, SandboxError, UsageError
from judge.files.media import image_type
from judge.sandbox import open_sandbox
from tests.conftest import Figures
from tests.inference.babel import JPEG, WEBP, png, write_suite
from tests.inference.planning import write_workbook
from tests.inference.scripted import Reply, ScriptedServer, Seen, fault

_URL = re.compile(r"data:([\w/]+);base64,(.+)", re.DOTALL)
TABLE = b"name;points\n" + b"".join(b"p%d;%d\n" % (number, number * 7) for number in range(40))
RIGHT = sum(number * 7 for number in range(40))


def say(answer: object) -> str:
    return f"Final answer:\n```json\n{json.dumps(answer)}\n```"


def text_of(message: dict[str, Any]) -> str:
    """Returns the text of a message, as the server received it, without its pictures."""
    content = message["content"]
    if isinstance(content, str):
        return content
    return "\n".join(part["text"] for part in content if part["type"] == "text")


def pictures_of(message: dict[str, Any]) -> list[tuple[str, bytes]]:
    """Returns media type and bytes of the pictures in a message, as the server received it."""
    parts = message["content"] if isinstance(message["content"], list) else []
    urls = [part["image_url"]["url"] for part in parts if part["type"] == "image_url"]
    found = [_URL.fullmatch(url) for url in urls]
    return [(match[1], base64.b64decode(match[2])) for match in found if match]


def options(server: ScriptedServer, suite: Path, out: Path, **said: Any) -> judge.InferOptions:
    more: dict[str, Any] = {"sandbox": "bubblewrap", "cache": False} | said
    return judge.InferOptions(
        model="scripted-1", base_url=server.url, dataset=suite, out=out, **more
    )


def verdicts(out: Path) -> dict[str, int]:
    (scored,) = judge.score(out, judge.ScoreOptions(sandbox="bubblewrap"))
    return dict(collections.Counter(each.verdict.value for each in scored.results))


def records(out: Path) -> dict[str, dict[str, Any]]:
    lines = (out / "submissions.jsonl").read_text().splitlines()
    return {str(each["id"]): each for each in map(json.loads, lines)}


def stored(out: Path) -> list[bytes]:
    return [path.read_bytes() for path in out.rglob("*") if path.is_file()]


@pytest.fixture
def needs_bubblewrap() -> None:
    try:
        open_sandbox("bubblewrap", jobs=1).close()
    except SandboxError as error:
        pytest.skip(f"no bubblewrap here: {error.message}")


LOAD = """
import csv
with open('/tmp/data/t.csv') as file:
    points = [int(row['points']) for row in csv.DictReader(file, delimiter=';')]
total = sum(points)
print('y' * 3000)
"""
DRAW = """
import matplotlib.pyplot as plt
plt.plot(points)
plt.show()
"""
SAVE = """
from PIL import Image
with Image.open('one.png') as seen:
    seen.resize((8, 8)).save('small.png')
print('the total is', total, seen.format)
"""
ROUNDS = [f"```python{program}```" for program in (LOAD, DRAW, SAVE)]


def explorer(seen: Seen) -> Reply:
    """Looks at data in three rounds, then answers next to a program whose output it has seen."""
    if seen.round <= len(ROUNDS):
        return ROUNDS[seen.round - 1]
    found = re.search(r"the total is (\d+) PNG", text_of(seen.messages[-1]))
    answer = {"answer": int(found[1]) if found else None}
    return f"```python\nprint('never run')\n```\n{say(answer)}"


@pytest.mark.bubblewrap
@pytest.mark.usefixtures("needs_bubblewrap")
def test_a_conversation_with_pictures_and_programs(tmp_path: Path) -> None:
    files = {"000-imgs/one.png": png(40, 30), "000-imgs/two.png": JPEG}
    files |= {"000-imgs/three.png": WEBP, "000-csvs/t.csv": TABLE}
    names = ("one.png", "two.png", "three.png")
    suite = write_suite(tmp_path, [("How many points?", names, ("t.csv",), RIGHT)], files)
    out = tmp_path / "run"
    with ScriptedServer(explorer) as server:
        asked = options(server, suite, out, mode="multi")
        assert judge.infer(asked).summary.is_complete
        assert len(server.seen) == 4
        shown = pictures_of(server.seen[0].messages[0])
        # As they are: types by content, and bytes that nobody touched.
        assert shown == [
            ("image/png", files["000-imgs/one.png"]),
            ("image/jpeg", JPEG),
            ("image/webp", WEBP),
        ]
        told = text_of(server.seen[0].messages[0])
        assert all(f"- /tmp/data/{name} (picture)" in told for name in names)
        assert "- /tmp/data/t.csv (table)" in told
        assert " 1   points  40 non-null     int64" in told
        after = [each.messages[-1] for each in server.seen[1:]]
        assert 900 < text_of(after[0]).count("y") < 1_100
        (drawn,), (saved,) = pictures_of(after[1]), pictures_of(after[2])
        assert drawn[0] == "image/png"
        assert len(drawn[1]) > 3_000
        assert saved[0] == "image/png"
        assert "small.png" in text_of(after[2])

        record = records(out)["0"]
        assert record["response"].endswith(say({"answer": RIGHT}))
        assert (record["ended"], record["rounds"], len(record["calls"])) == ("answer", 4, 4)
        assert record["tokens"]["prompt"] > 0
        assert "solution" not in record
        conversation = json.loads((out / record["conversation"]).read_text())
        assert "execution" not in conversation["rounds"][-1]
        assert [each.get("type") for each in conversation["messages"][0]["content"]] == [
            "text", "picture", "picture", "picture",
        ]  # fmt: skip
        # What programs drew is kept once by its hash, and no picture is kept as text.
        kept = {path.stem for path in (out / "pictures").iterdir()}
        assert kept == {hashlib.sha256(data).hexdigest() for _, data in (drawn, saved)}
        for _, data in [*shown, drawn, saved]:
            assert not any(base64.b64encode(data)[:60] in each for each in stored(out))

        # As after a crash before the record: everything is played again, nothing is asked.
        (out / "submissions.jsonl").unlink()
        assert judge.infer(judge.InferOptions(out=out, sandbox="bubblewrap")).summary.is_complete
        assert len(server.seen) == 4
        assert records(out)["0"]["response"] == record["response"]
    assert verdicts(out) == {"AC": 1}


@pytest.mark.bubblewrap
@pytest.mark.usefixtures("needs_bubblewrap")
def test_pictures_stitched_shrunk_few_and_none(tmp_path: Path) -> None:
    files = {f"000-imgs/{number}.png": png(200 + number, 100) for number in range(2)}
    files["000-imgs/2.png"] = WEBP
    files["000-imgs/bomb.png"] = png(1, 1, claimed=(60_000, 60_000))
    names = ("0.png", "1.png", "2.png")
    questions = [("Which?", names, (), 1), ("Why?", ("bomb.png",), (), 1)]
    suite = write_suite(tmp_path, [*questions, ("Where?", ("gone.png",), (), 1)], files)

    def asked(out: str, **more: Any) -> tuple[list[tuple[str, bytes]], str, dict[str, str]]:
        with ScriptedServer(lambda _: '{"answer": 1}') as server:
            done = judge.infer(options(server, suite, tmp_path / out, **more))
            (first,) = [
                each.messages[0] for each in server.seen if "Which?" in text_of(each.messages[0])
            ]
        return pictures_of(first), text_of(first), done.summary.failures

    def size(data: bytes) -> tuple[int, int]:
        return int.from_bytes(data[16:20]), int.from_bytes(data[20:24])

    shown, told, failures = asked("stitched", pictures="stitched", picture_side=128)
    ((media_type, data),) = shown
    assert (media_type, size(data)[0]) == ("image/png", 128)
    assert "from left to right and from top to bottom: 0.png, 1.png, 2.png" in told
    # One that would burst ends as a failed task; so does one that is not there.
    assert "60000 x 60000 pixels" in failures["1"]
    assert "000-imgs/gone.png is missing" in failures["2"]

    shown, told, _ = asked("few", max_pictures=2, picture_side=64, picture_bytes=2_000, limit=1)
    assert [max(size(data)) <= 64 or name == "image/jpeg" for name, data in shown] == [True, True]
    assert all(len(data) <= 2_000 for _, data in shown)
    assert "Not shown, because there are too many: 2.png" in told

    shown, _, _ = asked("types", picture_types=("png", "jpeg"), limit=1)
    assert [data for _, data in shown[:2]] == [files["000-imgs/0.png"], files["000-imgs/1.png"]]
    assert (shown[2][0], size(shown[2][1])) == ("image/png", (1, 1))
    shown, told, failures = asked("none", pictures="none")
    assert (shown, failures) == ([], {})
    assert "cannot be shown to you: 0.png, 1.png, 2.png" in told


def test_a_model_that_takes_no_pictures(tmp_path: Path) -> None:
    suite = write_suite(tmp_path, [("Which?", ("0.png",), (), 1)], {"000-imgs/0.png": png(2, 2)})

    def refuse(seen: Seen) -> Reply:
        if pictures_of(seen.messages[0]):
            return fault(500, "image input is not supported - hint: provide the mmproj")
        return '{"answer": 1}'

    with ScriptedServer(refuse) as server:
        with pytest.raises(InferenceError, match=r"takes no pictures: .* mmproj") as caught:
            judge.infer(options(server, suite, tmp_path / "pictures"))
        assert len(server.seen) == 1
        assert "--pictures none" in str(caught.value.hint)
        out = tmp_path / "text"
        assert judge.infer(options(server, suite, out, pictures="none")).summary.is_complete
        workbooks = options(server, suite, tmp_path / "x", mode="multi", feedback="row-exec")
        with pytest.raises(UsageError, match="--feedback"):
            judge.infer(workbooks)
    assert verdicts(out) == {"AC": 1}


def test_a_suite_of_both_kinds(tmp_path: Path) -> None:
    """Each task is asked in its own way, and both are in the same run."""
    write_workbook(tmp_path / "in.xlsx", 1)
    (tmp_path / "t.csv").write_bytes(TABLE)
    shared = {"instruction": "What is the sum?", "kind": "Sum"}
    ranges = {"name": "cell_range", "options": {"answer_position": "B12"}}
    values = {"name": "typed_answer", "options": {"variables": {"answer": {"type": "int"}}}}
    right = {"value": {"answer": RIGHT}}
    book: dict[str, object] = {"id": "book", "checker": ranges}
    book |= {"cases": [{"inputs": ["in.xlsx"], "golds": ["in.xlsx"]}]}
    typed: dict[str, object] = {"id": "typed", "answer": "text", "checker": values}
    typed |= {"cases": [{"inputs": ["t.csv", "in.xlsx"], "golds": [right]}]}
    typed |= {"context": {"unit": "points"}}
    tasks = [shared | book, shared | typed]
    document = {"format": "sheetjudge", "version": 1, "tasks": tasks}
    (tmp_path / "suite.json").write_text(json.dumps(document))

    def answer(seen: Seen) -> Reply:
        asks_for_value = "unit: points" in seen.prompt
        return json.dumps({"answer": RIGHT}) if asks_for_value else "```python\nprint(1)\n```"

    out = tmp_path / "run"
    with ScriptedServer(answer) as server:
        assert judge.infer(options(server, tmp_path, out)).summary.no_code == 0
        by_task = {"unit: points" in each.prompt: each for each in server.seen}
        assert by_task[False].body["temperature"] == 1.0
        assert by_task[True].body["temperature"] == 0.7
        assert "Table: t.csv" in by_task[True].prompt
        assert "Table: in.xlsx, sheet Data" in by_task[True].prompt
        assert str(RIGHT) not in by_task[True].prompt
        assert judge.infer(judge.InferOptions(out=out)).summary.reused == 2
    found = records(out)
    assert (found["book"]["setting"], found["typed"]["setting"]) == ("single", "typed/single")
    assert found["book"]["solution"] == "print(1)\n"
    assert found["typed"]["response"] == json.dumps({"answer": RIGHT})
    ids = ("typed",)
    (scored,) = judge.score(out, judge.ScoreOptions(ids=ids))
    assert [each.verdict.value for each in scored.results] == ["AC"]


def standing_in(name: str) -> bytes:
    """A picture in place of a missing one, whose type differs from the one in its name."""
    number = int(hashlib.sha256(name.encode()).hexdigest(), 16)
    return (png(2, 2), JPEG, WEBP)[number % 3] + name.encode()


# What the published repository lacks, by row.
INCOMPLETE = frozenset(
    {3, 5, 25, 31, 55, 60, 79, 102, 104, 118, 136, 137, 151, 153, 158, 159, 169, 179, 181, 197}
    | {223, 229}
)


@pytest.mark.data
@pytest.mark.bubblewrap
@pytest.mark.usefixtures("needs_bubblewrap")
def test_all_complete_questions(judge_data: Path, tmp_path: Path, figures: Figures) -> None:
    """A model that knows the golds is always right, whatever files a question has."""
    suite = tmp_path / "data"
    shutil.copytree(judge_data / "babelbench" / "data", suite)
    with (suite / "benchmark.csv").open(encoding="utf-8-sig", newline="") as file:
        rows = dict(enumerate(csv.DictReader(file)))
    complete = {number: row for number, row in rows.items() if number not in INCOMPLETE}
    images = {name for row in complete.values() for name in ast.literal_eval(row["imgs"])}
    made = [name for name in images if not (suite / "000-imgs" / name).exists()]
    for name in made:
        (suite / "000-imgs" / name).write_bytes(standing_in(name))
    hashes = {
        name: hashlib.sha256((suite / "000-imgs" / name).read_bytes()).hexdigest()
        for name in images
    }
    sent: collections.Counter[str] = collections.Counter()
    asked: set[int] = set()

    def know(seen: Seen) -> Reply:
        message = seen.messages[0]
        shown = pictures_of(message)
        for media_type, data in shown:
            assert media_type == image_type(data)
            sent[media_type] += 1
        digests = [hashlib.sha256(data).hexdigest() for _, data in shown]
        told = text_of(message)
        (number,) = [
            number
            for number, row in complete.items()
            if row["prompt"] in told
            and [hashes[name] for name in ast.literal_eval(row["imgs"])] == digests
        ]
        asked.add(number)
        golds = json.loads(complete[number]["eval_info"])
        # Of several right answers, each is one.
        one_of = {name for name, info in golds.items() if info["eval_method"] == "either_ok"}
        right = {name: info["gt_answer"] for name, info in golds.items()}
        return say({name: each[0] if name in one_of else each for name, each in right.items()})

    out = tmp_path / "run"
    with ScriptedServer(know) as server:
        ids = tuple(map(str, complete))
        # The first rows in place of a description: that saves the reading of whole tables.
        plan = options(server, suite, out, mode="multi", ids=ids, content="csv")
        summary = judge.infer(plan).summary
        assert (summary.finished, summary.failures) == (225, {})
        assert len(server.seen) == 225
        assert judge.infer(judge.InferOptions(out=out, sandbox="bubblewrap")).summary.reused == 225
        assert len(server.seen) == 225
    assert asked == complete.keys()
    assert set(sent) == {"image/png", "image/jpeg", "image/webp"}
    assert not any(b"base64" in each for each in stored(out))
    assert not (out / "pictures").exists()
    assert verdicts(out) == {"AC": 225}
    figures(f"BabelBench: 225 of 225; pictures sent: {dict(sent)}, {len(made)} of them stand-ins")
