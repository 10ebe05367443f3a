"""Versions of boards, what levels show of them, and signed results."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa
import yaml
from click.testing import CliRunner

from judge.authoring.platforms import EVALUATION_FRAMEWORK
from judge.cli.submit import verify_result as verify_result_command
from judge.errors import JudgeError, UsageError
from judge.serve.boards.results import result_of, verify_result
from judge.serve.boards.signing import SigningKeys, canonical, envelope_of, sha256_of
from judge.serve.boards.ties import Metric
from judge.serve.boards.versions import NewBoard
from judge.serve.catalog import set_phase_state
from judge.serve.context import ServeOptions
from judge.serve.rejudging.service import compare_boards
from judge.serve.store import tables as t
from judge.serve.store.tables import Level, PhaseState
from judge.suites import load_suite
from tests.unit.serve.boards.world import ACTOR, TASKS, World

SAMPLE = Path(__file__).parents[4] / "dataset" / "sample"


@pytest.fixture
def cells(tmp_path: Path) -> World:
    return World(tmp_path, Level.CELLS)


class TestVersions:
    def test_each_version_names_the_hash_of_the_one_before(self, cells: World) -> None:
        for name, solved in (("one", 10), ("two", 30)):
            cells.submit(name, solved)
        rows = cells.documents()
        assert [row["number"] for row in rows] == [1, 2, 3]
        previous = None
        for row in rows:
            assert sha256_of(row["document"].encode()) == row["sha256"]
            assert json.loads(row["document"])["previous"] == row["previous"] == previous
            assert canonical(json.loads(row["document"])).decode() == row["document"]
            previous = row["sha256"]

    def test_what_does_not_change_the_entries_makes_no_version(self, cells: World) -> None:
        cells.submit("one", 20)
        cells.submit("one", 10)  # the board shows the best one
        assert len(cells.documents()) == 2

    def test_entries_with_rank_intervals(self, cells: World) -> None:
        for name, solved in (("weak", 10), ("strong", 30), ("stronger", 31)):
            cells.submit(name, solved)
        board = cells.get("/boards/main").json()
        entries = [(entry["account"], entry["ranks"]) for entry in board["entries"]]
        assert entries == [("stronger", [1, 2]), ("strong", [1, 2]), ("weak", [3, 3])]
        assert board["entries"][0]["scores"]["hard"]["value"] == pytest.approx(31 / TASKS)
        assert board["smallest"]["pairs"] == 3

    @pytest.mark.parametrize(("rule", "shown"), [("best", 20), ("latest", 10)])
    def test_the_rule_of_the_board(self, tmp_path: Path, rule: str, shown: int) -> None:
        world = World(tmp_path, Level.CELLS, rule=rule)
        world.submit("one", 20)
        world.submit("one", 10)
        (entry,) = world.get("/boards/main").json()["entries"]
        assert entry["scores"]["hard"]["value"] == pytest.approx(shown / TASKS)

    def test_other_conditions_do_not_mix(self, cells: World) -> None:
        submission = cells.submit("one", 20)
        with cells.server.database.writing(ACTOR) as transaction:
            row = transaction.one(sa.select(t.conditions))
            assert row is not None
            transaction.execute(
                sa.insert(t.conditions).values(
                    digest="e" * 64, revision=row["revision"], document=row["document"]
                )
            )
            transaction.execute(sa.update(t.judging).values(conditions="e" * 64))
            cells.boards.renew(transaction, cells.phase, "again")
        assert cells.get("/boards/main").json()["entries"] == []
        assert cells.get(f"/boards/main/entries/{submission}/tasks").status_code == 404

    def test_a_withdrawn_entry_leaves_and_stays_in_old_versions(self, cells: World) -> None:
        submission = cells.submit("one", 20)
        tag = cells.get(f"/submissions/{submission}", "one").headers["etag"]
        answer = cells.client.post(
            f"/v1/submissions/{submission}:withdraw",
            headers={"Authorization": f"Bearer {cells.tokens['one']}", "If-Match": tag},
        )
        assert answer.status_code == 200
        assert cells.get("/boards/main").json()["entries"] == []
        old = cells.get("/boards/main/versions/2").json()
        assert [entry["submission"] for entry in old["entries"]] == [submission]

    def test_a_frozen_board_shows_its_moment_to_the_public(self, cells: World) -> None:
        cells.submit("one", 20)
        with cells.server.database.writing(ACTOR) as transaction:
            transaction.execute(sa.update(t.board).values(frozen_at="2026-06-01T00:00:00Z"))
            for number, created in ((1, "2026-05-01T00:00:00Z"), (2, "2026-05-02T00:00:00Z")):
                version = t.board_version.c.number == number
                transaction.execute(
                    sa.update(t.board_version).where(version).values(created=created)
                )
        cells.submit("two", 30)
        assert cells.get("/boards/main").json()["number"] == 2
        assert cells.get("/boards/main", "author").json()["number"] == 3
        assert cells.get("/boards/main/versions/3").status_code == 404

    def test_it_answers_whether_it_has_changed(self, cells: World) -> None:
        tag = cells.get("/boards/main").headers["etag"]
        again = cells.client.get("/v1/boards/main", headers={"If-None-Match": tag})
        assert again.status_code == 304
        cells.submit("one", 20)
        changed = cells.client.get("/v1/boards/main", headers={"If-None-Match": tag})
        assert changed.status_code == 200

    def test_unknown_boards_versions_and_entries(self, cells: World) -> None:
        for path in ("/boards/none", "/boards/main/versions/9", "/boards/main/entries/x/tasks"):
            assert cells.get(path).status_code == 404
        assert cells.get("/boards/main/versions/0").status_code == 422


class TestLevels:
    def test_cells_shows_verdicts_by_task(self, cells: World) -> None:
        submission = cells.submit("one", 1)
        tasks = cells.get(f"/boards/main/entries/{submission}/tasks").json()["tasks"]
        assert tasks[0] == {
            "task": "t00",
            "solved": True,
            "cases": [{"sample": 0, "case": 1, "verdict": "AC"}],
        }
        assert not tasks[1]["solved"]

    def test_tasks_shows_what_is_solved_and_no_codes(self, tmp_path: Path) -> None:
        world = World(tmp_path, Level.TASKS, hidden=True)
        submission = world.submit("one", 1)
        text = world.get(f"/boards/main/entries/{submission}/tasks").text
        assert '"solved":true' in text
        assert '"WA"' not in text  # the text holds a random id, which may have these letters

    def test_score_shows_no_task_no_pair_and_no_exact_score(self, tmp_path: Path) -> None:
        world = World(tmp_path, Level.SCORE, hidden=True)
        one, two = world.submit("one", 13), world.submit("two", 33)
        board = world.get("/boards/main")
        entries = board.json()["entries"]
        assert [entry["shown_score"]["value"] for entry in entries] == [0.825, 0.325]
        assert [entry["ranks"] for entry in entries] == [[1, 1], [2, 2]]
        assert "scores" not in board.text
        assert world.get(f"/boards/main/entries/{one}/tasks").status_code == 403
        assert world.get(f"/boards/main/compare?a={one}&b={two}").status_code == 403
        assert world.get(f"/boards/main/entries/{one}/tasks", "author").status_code == 200

    def test_the_ladder_moves_for_a_point(self, tmp_path: Path) -> None:
        world = World(tmp_path, Level.SCORE, hidden=True)
        first = world.submit("one", 20)
        assert world.submit("one", 20) != first
        (entry,) = world.get("/boards/main").json()["entries"]
        assert entry["submission"] == first
        third = world.submit("one", 21)
        (entry,) = world.get("/boards/main").json()["entries"]
        assert (entry["submission"], entry["shown_score"]["value"]) == (third, 0.525)

    def test_a_board_of_scores_ranks_by_the_ladder_alone(self, tmp_path: Path) -> None:
        world = World(tmp_path, Level.SCORE, hidden=True)
        with (
            world.server.database.writing(ACTOR) as transaction,
            pytest.raises(UsageError, match="hard score"),
        ):
            world.boards.add(transaction, NewBoard("soft", "spring", metric=Metric.SOFT))

    def test_none_shows_who_takes_part(self, tmp_path: Path) -> None:
        world = World(tmp_path, Level.NONE, hidden=True)
        world.submit("two", 30)
        world.submit("one", 10)
        entries = world.get("/boards/main").json()["entries"]
        assert [(entry["account"], entry["ranks"]) for entry in entries] == [
            ("one", [1, 2]),
            ("two", [1, 2]),
        ]
        assert not any("score" in name for entry in entries for name in entry)

    def test_a_published_phase_shows_everything(self, tmp_path: Path) -> None:
        world = World(tmp_path, Level.SCORE, hidden=True)
        submission = world.submit("one", 13)
        publish(world)
        (entry,) = world.get("/boards/main").json()["entries"]
        assert entry["scores"]["hard"]["value"] == pytest.approx(13 / TASKS)
        tasks = world.get(f"/boards/main/entries/{submission}/tasks").json()["tasks"]
        assert "cases" in tasks[0]

    def test_beyond_the_budget_an_answer_is_not_accepted_until_then(self, tmp_path: Path) -> None:
        world = World(tmp_path, Level.TASKS, hidden=True)
        for guess in range(20):
            world.submit("one", 0, {"t00": f"guess {guess}"})
        right = world.submit("one", 2, {"t00": "the answer"})
        (entry,) = world.get("/boards/main").json()["entries"]
        assert entry["scores"]["hard"]["value"] == pytest.approx(1 / TASKS)
        mine = world.get(f"/submissions/{right}/verdicts", "one").json()["verdicts"]
        assert [row["accepted"] for row in mine[:2]] == [False, True]
        publish(world)
        (entry,) = world.get("/boards/main").json()["entries"]
        assert entry["scores"]["hard"]["value"] == pytest.approx(2 / TASKS)


SHARE = {"part": 3, "whole": 4, "share": 0.75, "low": 0.3, "high": 0.95}


def test_the_two_figures_are_columns_where_conditions_measure_them(cells: World) -> None:
    cells.submit("one", 10)
    (entry,) = cells.get("/boards/main").json()["entries"]
    assert "figures" not in entry
    cells.submit("two", 20, figures={"dynamic": SHARE})
    first, second = cells.get("/boards/main").json()["entries"]
    assert (first["figures"], "figures" in second) == ({"dynamic": SHARE}, False)
    page = cells.client.get("/boards/main", headers={"Accept": "text/html"}).text
    assert "live answers, %" in page
    assert "3 of 4, 30.0 to 95.0" in page
    assert "damaged tasks" not in page


def test_figures_wait_where_verdicts_are_bounded(tmp_path: Path) -> None:
    world = World(tmp_path, Level.TASKS, hidden=True)
    world.submit("one", 2, figures={"dynamic": SHARE})
    (entry,) = world.get("/boards/main").json()["entries"]
    assert "figures" not in entry
    publish(world)
    (entry,) = world.get("/boards/main").json()["entries"]
    assert entry["figures"] == {"dynamic": SHARE}


def publish(world: World) -> None:
    with world.server.database.writing(ACTOR) as transaction:
        set_phase_state(transaction, "spring", PhaseState.PUBLISHED)
        world.boards.renew(transaction, world.phase, "the phase was published")


def test_two_entries_compared(cells: World) -> None:
    one, two = cells.submit("one", 10), cells.submit("two", 30)
    answer = cells.get(f"/boards/main/compare?a={one}&b={two}").json()
    assert len(answer["pair"]["won"]) == 20
    assert answer["pair"]["hard_difference"]["difference"] == pytest.approx(0.5)
    assert answer["p_holm"] == pytest.approx(answer["pair"]["p_hard"])
    assert cells.get(f"/boards/main/compare?a={one}&b={one}").status_code == 422


def test_what_a_rejudging_would_do_to_a_board(cells: World) -> None:
    one, two = cells.submit("one", 10), cells.submit("two", 30)
    with cells.server.database.reading() as connection:
        rows = connection.execute(sa.select(t.submission.c.id, t.submission.c.current_judging))
        judgings = {submission: judging for submission, judging in rows}  # noqa: C416  rows
        (changed,) = compare_boards(connection, {one: judgings[two], two: judgings[two]})
        (same,) = compare_boards(connection, judgings)
    assert [entry["account"] for entry in changed["entries"]] == ["two", "one"]
    assert changed["pairs"] == [["two", "one"]]
    assert same["entries"] == same["pairs"] == []


class TestSignedResults:
    def save(self, world: World, path: str, folder: Path) -> Path:
        keys = world.client.get("/.well-known/judge-keys.json")
        assert "d" not in keys.json()["keys"][0]
        (folder / "judge-keys.json").write_bytes(keys.content)
        file = folder / "result.json"
        answer = world.get(path)
        assert answer.status_code == 200
        file.write_bytes(answer.content)
        return file

    def test_a_result_in_clear_holds_up_to_its_scores(self, cells: World, tmp_path: Path) -> None:
        submission = cells.submit("one", 13)
        file = self.save(cells, f"/submissions/{submission}/result", tmp_path)
        found = verify_result(file)
        assert (found.level, found.broken) == (2, None)
        assert found.document["scores"]["hard"]["value"] == pytest.approx(13 / TASKS)
        assert found.document["boards"] == []  # its board's version before is younger

    def test_a_version_of_a_board_is_signed(self, cells: World, tmp_path: Path) -> None:
        cells.submit("one", 13)
        file = self.save(cells, "/boards/main/versions/2/result", tmp_path)
        assert verify_result(file).level == 1

    def test_one_changed_byte_anywhere(self, cells: World, tmp_path: Path) -> None:
        submission = cells.submit("one", 13)
        file = self.save(cells, f"/submissions/{submission}/result", tmp_path)
        data = file.read_bytes()
        for place in [*range(0, len(data), 97), len(data) - 1, *range(len(data) - 160, len(data))]:
            changed = bytearray(data)
            changed[place] ^= 1
            file.write_bytes(changed)
            found = verify_result(file)
            assert (found.level, found.broken) == (0, 1), place
        file.write_bytes(data + b"\n")
        assert verify_result(file).broken == 1

    def test_what_the_level_withholds_is_committed_to(self, tmp_path: Path) -> None:
        world = World(tmp_path, Level.SCORE, hidden=True)
        submission = world.submit("one", 13)
        file = self.save(world, f"/submissions/{submission}/result", tmp_path)
        before = file.read_bytes()
        found = verify_result(file)
        assert (found.level, found.broken) == (1, None)
        text = json.dumps(found.document)
        assert len(found.document["commitments"]["cases"]) == TASKS
        assert "t00" not in text
        assert '"AC"' not in text
        assert found.document["judged"].endswith("10:00Z")  # in slots of five minutes
        publish(world)
        file = self.save(world, f"/submissions/{submission}/result", tmp_path)
        after = json.loads(file.read_bytes())
        assert after["payload"] == json.loads(before)["payload"]
        assert verify_result(file).level == 2
        self.tamper(file, after)

    def tamper(self, file: Path, envelope: dict[str, Any]) -> None:
        envelope["openings"]["cases"][20]["value"]["verdict"] = "AC"
        file.write_bytes(canonical(envelope) + b"\n")
        found = verify_result(file)
        assert (found.level, found.broken) == (1, 2)

    def test_of_another_suite_level_three_breaks(self, cells: World, tmp_path: Path) -> None:
        submission = cells.submit("one", 13)
        file = self.save(cells, f"/submissions/{submission}/result", tmp_path)
        found = verify_result(file, dataset="sample")
        assert (found.level, found.broken) == (2, 3)

    def test_keys_of_another_server_and_revoked_ones(self, cells: World, tmp_path: Path) -> None:
        submission = cells.submit("one", 13)
        file = self.save(cells, f"/submissions/{submission}/result", tmp_path)
        keys = json.loads((tmp_path / "judge-keys.json").read_text())
        keys["keys"][0]["revoked_from"] = "2020-01-01T00:00:00Z"
        (tmp_path / "revoked.json").write_text(json.dumps(keys))
        assert verify_result(file, keys=tmp_path / "revoked.json").broken == 1
        (tmp_path / "others.json").write_text('{"keys": []}')
        assert verify_result(file, keys=tmp_path / "others.json").broken == 1
        with pytest.raises(UsageError, match="key file does not exist"):
            verify_result(file, keys=tmp_path / "missing.json")

    def test_a_rotated_key_stays_listed(self, cells: World, tmp_path: Path) -> None:
        cells.submit("one", 13)
        signing = cells.boards._keys
        signing.rotate("2999-01-01T00:00:00Z")
        file = self.save(cells, "/boards/main/versions/2/result", tmp_path)
        assert verify_result(file).level == 1
        assert len(cells.client.get("/.well-known/judge-keys.json").json()["keys"]) == 2

    def test_who_may_have_a_result(self, tmp_path: Path) -> None:
        world = World(tmp_path, Level.SCORE, hidden=True)
        world.submit("one", 20)
        worse = world.submit("one", 10)
        world.submit("two", 5)
        assert world.get(f"/submissions/{worse}/result").status_code == 404
        assert world.get(f"/submissions/{worse}/result", "two").status_code == 404
        assert world.get(f"/submissions/{worse}/result", "one").status_code == 200


def test_the_command_says_which_level_holds_and_which_is_broken(
    cells: World, tmp_path: Path
) -> None:
    submission = cells.submit("one", 13)
    file = TestSignedResults().save(cells, f"/submissions/{submission}/result", tmp_path)
    fine = CliRunner().invoke(verify_result_command, [str(file)])
    assert (fine.exit_code, fine.exception) == (0, None)
    assert "level 2 holds" in fine.output
    assert "level 3 was not checked" in fine.output
    file.write_bytes(file.read_bytes().replace(b"keyid", b"keyif"))
    broken = CliRunner().invoke(verify_result_command, [str(file), "--json"])
    assert isinstance(broken.exception, JudgeError)
    assert broken.exception.exit_code == 1
    assert json.loads(broken.output)["broken"] == 1


def test_levels_three_and_four_with_the_suite_and_the_outputs(tmp_path: Path) -> None:
    """A signed result of finished workbooks of the sample suite, signed by hand."""
    suite = load_suite(SAMPLE)
    rows: list[t.VerdictRow] = []
    for task in suite.tasks[:2]:
        for number, case in enumerate(task.cases, 1):
            data = case.gold_path.read_bytes()
            (tmp_path / "outputs").mkdir(exist_ok=True)
            (tmp_path / "outputs" / f"{task.id}-{number}.xlsx").write_bytes(data)
            rows.append(
                {
                    "task": task.id, "sample": 0, "case": number, "verdict": "AC",
                    "run_key": None, "comparison_key": None, "output_sha256": sha256_of(data),
                    "earned": None,
                }
            )  # fmt: skip
    tasks = [task.id for task in suite.tasks[:2]]

    def signed(verdicts: list[t.VerdictRow], digest: str) -> Path:
        conditions = {"suite": {"digest": digest}, "options": {"recalc": "never"}}
        head = {"split": {}, "judging": "j", "conditions": {"document": conditions}}
        body, _ = result_of(head, verdicts, verdicts, tasks, Level.CELLS, b"")
        data = canonical({**body, "signed": "2026-05-01T00:00:00Z"})
        keys = SigningKeys(tmp_path)
        file = tmp_path / "result.json"
        file.write_bytes(envelope_of(data, keys.sign(data, "2026-05-01T00:00:00Z")))
        listed = keys.public("2026-05-01T00:00:00Z")
        (tmp_path / "judge-keys.json").write_bytes(canonical({"keys": listed}))
        return file

    outputs = tmp_path / "outputs"
    file = signed(rows, suite.digest)
    assert verify_result(file, dataset=str(SAMPLE), outputs=outputs).level == 4
    assert verify_result(file, dataset=str(SAMPLE)).level == 2
    other = signed([{**rows[0], "verdict": "WA"}, *rows[1:]], suite.digest)
    found = verify_result(other, dataset=str(SAMPLE), outputs=outputs)
    assert (found.level, found.broken) == (3, 4)
    file = signed(rows, suite.digest)
    (outputs / f"{tasks[0]}-1.xlsx").unlink()
    found = verify_result(file, dataset=str(SAMPLE), outputs=outputs)
    assert (found.level, found.broken) == (2, 3)


def test_a_team_chooses_what_a_board_shows(tmp_path: Path) -> None:
    world = World(tmp_path, Level.CELLS, rule="chosen")
    first, second = world.submit("one", 20), world.submit("one", 10)
    other = world.submit("two", 30)
    assert world.get("/boards/main").json()["entries"] == []

    def choose(submission: str) -> int:
        answer = world.client.post(
            "/v1/boards/main:choose",
            json={"submission": submission},
            headers={"Authorization": f"Bearer {world.tokens['one']}"},
        )
        return answer.status_code

    assert choose(other) == 404  # another team's submission does not exist
    for submission in (first, second):
        assert choose(submission) == 204
        (entry,) = world.get("/boards/main").json()["entries"]
        assert entry["submission"] == submission


def test_a_board_of_the_best_takes_no_choice(cells: World) -> None:
    submission = cells.submit("one", 20)
    answer = cells.client.post(
        "/v1/boards/main:choose",
        json={"submission": submission},
        headers={"Authorization": f"Bearer {cells.tokens['one']}"},
    )
    assert answer.status_code == 409


@pytest.mark.parametrize(("level", "tasks"), [(Level.CELLS, 2), (Level.SCORE, 1)])
def test_eval_results_of_hugging_face(tmp_path: Path, level: Level, tasks: int) -> None:
    world = World(tmp_path, level, hidden=level is Level.SCORE)
    submission = world.submit("one", 20)
    path = f"/boards/main/entries/{submission}/eval-results"
    results = yaml.safe_load(world.get(f"{path}?dataset=org/data").text)
    assert len(results) == tasks
    assert results[-1]["dataset"] == {"id": "org/data", "task_id": "hard_score"}
    assert results[-1]["value"] == 50.0
    board = world.get("/boards/main").json()
    for result in results:
        assert result["evaluation_framework"] == EVALUATION_FRAMEWORK
        assert result["date"] == board["entries"][0]["date"]
        assert "source" not in result, "nobody else can open an address of this machine"
    world.server.options = ServeOptions(public_url="https://judge.example.org/x", secure=True)
    (last,) = yaml.safe_load(world.get(f"{path}?dataset=org/data").text)[-1:]
    address = f"https://judge.example.org/x/entries/{submission}"
    assert last["source"] == {"url": address, "name": board["board"]["title"]}
    assert world.get(f"{path}?dataset=nothing").status_code == 422


def test_of_a_level_without_scores_there_are_no_results(tmp_path: Path) -> None:
    world = World(tmp_path, Level.NONE, hidden=True)
    submission = world.submit("one", 20)
    path = f"/boards/main/entries/{submission}/eval-results?dataset=org/data"
    assert world.get(path).status_code == 403
