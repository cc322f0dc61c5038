"""What the reports say in words, for each way in which an answer can be wrong."""

from __future__ import annotations

import re
from pathlib import Path

import msgspec
import pytest
from real_run import real_finding, real_record

from oracles.attribution import Element
from oracles.evidence import Arm, Verdict
from oracles.noise import Bound
from oracles.observations import Span
from reports import prose
from reports.happenings import MOST, read_happenings
from reports.html.charts import noise_plot
from reports.html.lanes import timeline
from reports.merging import merged
from reports.record import FindingRecord, RunRecord, SourceRecord, StepRecord
from scenarios.operations import Abort, Await, Complete, Evict, Join, Operation, Save, SetScales, Start
from scenarios.plans import Plan
from scenarios.prompts import Prompt, Segment
from scenarios.story import story_lines


def with_oracle(oracle: str, **changes: object) -> FindingRecord:
    return msgspec.structs.replace(real_finding(), oracle=oracle, **changes)


def words(finding: FindingRecord) -> str:
    return " ".join(prose.paragraph(finding))


def test_a_wrong_answer() -> None:
    said = words(real_finding())
    assert re.match(
        r"The server answered step 3 of 3, complete P a=\S+, wrongly: the same request, computed from", said
    )
    assert "nats; rounding explains at most" in said
    assert "the control, which reuses the same tokens lawfully, is right." in said
    assert "--cache-ram 0" in prose.until_fixed(real_finding())


def test_a_way_past_the_cache_is_one_for_every_request() -> None:
    """An entry is written also by a request that reads none."""
    assert "cache_prompt:false in every request, --cache-ram 0 or" in prose.until_fixed(real_finding())


def test_names_in_plans_are_explained() -> None:
    assert prose.legend(["complete P[:3] a=0.5  1 token", "start Q.a1.c14 salt=x slot=0"]).split(". ") == [
        "Capital letters are prompts: those of one letter begin with the same token, any others share nothing",
        "P[:3] is P cut to its first tokens, 3 of them",
        "In Q.a1, the first token is followed by the beginning of a text called a, 1 of its tokens",
        "a=0.5 is adapter a at scale 0.5",
        "The salt is a tenant's key, across which nothing may be shared.",
    ]
    assert prose.legend(["save slot 0 to file 0"]) == ""


def test_how_differently_the_answers_read() -> None:
    finding = real_finding()
    assert finding.divergence is not None
    assert finding.divergence.jensen_shannon is not None
    assert 0 < finding.divergence.jensen_shannon.least <= finding.divergence.jensen_shannon.most <= 0.6932
    said = words(finding)
    assert re.search(
        r"The two distributions are \S+( to \S+)? nats apart \(Jensen-Shannon divergence, at most 0.69\)", said
    )
    assert re.search(r"the right one leads its next token by \S+ nats\.", said)


def test_wrong_accounts() -> None:
    finding = with_oracle("accounting", max_abs_logprob_delta=None, bound=None, divergence=None)
    assert "reused 1 tokens; no request that it may reuse shares that many." in words(finding)
    told = msgspec.structs.replace(finding, reusable=0)
    assert "reused 1 tokens; no request that it may reuse shares more than 0 with it." in words(told)


def test_what_was_set_before_and_whose_state_it_was() -> None:
    cause = real_finding().explanation[0]
    said = words(with_oracle("logprobs", explanation=["Before: set global scales a=1.", cause, "Needs: nothing."]))
    assert f"Before: set global scales a=1. {cause} It came back" in said


def test_the_label_of_the_stale_source_is_never_cut() -> None:
    plan = tuple(Complete(prompt=Prompt(0, (Segment("a", 1),)), salt=f"tenant-{at}") for at in range(2))
    finding = with_oracle("accounting", plan=plan, wrong=2, stale_source=SourceRecord(1, {}))
    drawn = timeline(finding)
    assert drawn.joint is not None
    assert drawn.width > drawn.joint.x + 7 * len(drawn.joint.label)


def test_a_control_that_reuses_nothing_is_not_said_to_reuse() -> None:
    assert "reuses the same tokens lawfully" in words(with_oracle("logprobs", control=Arm(True, 1, 1)))
    said = words(with_oracle("logprobs", control=Arm(True, 0, 2)))
    assert "reuses" not in said
    assert "every earlier request is at the settings of the wrong one, is right" in said


def test_two_spellings() -> None:
    finding = with_oracle("metamorphic", alone=Arm(False), control=Arm(False), respelled=Arm(True), stale_source=None)
    said = words(finding)
    assert "differently from the same request with every adapter named" in said
    assert "it needs no history" in said
    record = msgspec.structs.replace(real_record(), findings=[finding])
    assert "stale state" not in prose.verdict_line(record)


def test_no_answer_at_all() -> None:
    dead = [*real_finding().steps[:2], StepRecord(None, None, 2, [], error="it was ended by SIGSEGV")]
    finding = with_oracle("health", steps=dead, max_abs_logprob_delta=None, bound=None, divergence=None, answer=[])
    assert words(finding).startswith("Step 3 of 3 got no answer that can be judged: it was ended by SIGSEGV.")


def test_nothing_helps() -> None:
    finding = msgspec.structs.replace(real_finding(), mitigations=[])
    assert prose.until_fixed(finding) == "No setting that was tried avoids it."


@pytest.mark.parametrize("element", list(Element))
def test_every_element_has_words(element: Element) -> None:
    assert element in prose.ELEMENTS


def test_an_unknown_element_keeps_its_name() -> None:
    assert prose.element_in_words("some-new-thing") == "some new thing"


def test_timeline_has_a_lane_a_slot_and_a_mark_an_operation() -> None:
    long, short = Prompt(0, (Segment("a", 120),)), Prompt(1, (Segment("a", 40),))
    plan: tuple[Operation, ...] = (
        SetScales(()),
        Start(prompt=long, tokens=8, scales=None),
        Await(1, 2),
        Complete(prompt=short, tokens=3),
        Abort(1),
        Evict(4, 64),
        Save(0, 0),
        Complete(prompt=Prompt(0, (Segment("a", 150),)), scales=None, salt="t"),
    )
    told = {1: StepRecord(0, 121, 121, [1], slot=0), 3: StepRecord(0, 41, 41, [1], slot=1)}
    told[7] = StepRecord(121, 30, 151, [5], slot=0)
    steps = [told.get(at, StepRecord(None, None, 0, [])) for at in range(len(plan))]
    drawn = timeline(
        msgspec.structs.replace(
            real_finding(),
            plan=plan,
            steps=steps,
            wrong=8,
            story=story_lines(Plan(plan)),
            stale_source=SourceRecord(2, {}),
        )
    )
    assert [lane.name for lane in drawn.lanes] == ["server", "slot 0", "slot 1"]
    assert [bar.step for bar in drawn.bars] == [2, 4, 8]
    assert [mark.name for mark in drawn.marks] == ["set_scales", "await", "abort", "evict", "save"]
    started = drawn.bars[0]
    abort = next(mark for mark in drawn.marks if mark.name == "abort")
    assert [(flight.y, flight.end) for flight in drawn.flights] == [(started.y, abort.x)]
    assert drawn.bars[2].reused_width == pytest.approx(drawn.bars[2].width * 121 / 151)
    assert drawn.joint is not None
    assert "reused by step 8 (global scales salt=t)" in drawn.joint.label
    ends = [(bar.x, bar.x + bar.width) for bar in drawn.bars]
    assert ends == sorted(ends)


@pytest.mark.parametrize("kept", [True, False], ids=["as it ran", "as planned"])
def test_requests_side_by_side_have_a_connection_each_where_no_slots_are_told(kept: bool) -> None:
    prompts = [Prompt(root, (Segment("a", 9),)) for root in range(4)]
    plan: tuple[Operation, ...] = (
        Start(prompt=prompts[0], tokens=48),
        Start(prompt=prompts[1], tokens=8),
        Complete(prompt=prompts[2], tokens=1),
        Join(1),
        Complete(prompt=prompts[3], tokens=1),
    )
    # The first is still computed when the last is asked; the second has ended by then.
    spans = {0: Span(0, 3, 12), 1: Span(1, 4, 9), 2: Span(2, 2, 8), 4: Span(10, 10, 11)}
    told = [StepRecord(0, 10, 10, [1], span=spans.get(at) if kept else None) for at in range(len(plan))]
    drawn = timeline(
        msgspec.structs.replace(
            real_finding(), plan=plan, steps=told, wrong=5, story=story_lines(Plan(plan)), stale_source=None
        )
    )
    assert [lane.name for lane in drawn.lanes] == ["connection 1", "connection 2", "connection 3"]
    lanes = [[lane.y for lane in drawn.lanes].index(bar.y) for bar in drawn.bars]
    assert lanes == [0, 1, 2, 1]
    first, _, third, last = drawn.bars
    join = next(mark for mark in drawn.marks if mark.name == "join")
    assert [flight.y for flight in drawn.flights] == [lane.y for lane in drawn.lanes[:2]]
    assert drawn.flights[0].end == last.answer_x + last.answer_width
    assert drawn.flights[1].end == join.x > third.x
    assert join.y == drawn.lanes[1].y
    assert first.x > drawn.rails > 0


def test_an_aborted_request_whose_slot_nobody_told_is_put_on_no_other_lane() -> None:
    prompt = Prompt(0, (Segment("a", 9),))
    plan: tuple[Operation, ...] = (
        Complete(prompt=prompt),
        Start(prompt=prompt, tokens=8),
        Abort(1),
        Complete(prompt=prompt),
    )
    steps = [StepRecord(0, 10, 10, [1], slot=None if at in {1, 2} else 0) for at in range(len(plan))]
    drawn = timeline(with_oracle("logprobs", plan=plan, steps=steps, wrong=4, stale_source=None))
    assert [lane.name for lane in drawn.lanes] == ["slot 0", "slot ?"]
    assert [mark.y for mark in drawn.marks] == [drawn.bars[1].y] == [drawn.lanes[1].y]


def test_requests_one_after_another_need_one_lane() -> None:
    plan = tuple(Complete(prompt=Prompt(at, (Segment("a", 1),))) for at in range(3))
    drawn = timeline(with_oracle("logprobs", plan=plan, steps=[StepRecord(0, 2, 2, [1])] * 3, stale_source=None))
    assert [lane.name for lane in drawn.lanes] == ["server"]
    assert drawn.flights == []


def test_a_class_that_was_not_measured_is_held_to_the_widest_bound_and_says_so() -> None:
    bounds = [Bound("cold", 2e-4, 24, 2e-5), Bound("tail of 1", 8e-3, 24, 1e-3)]
    drawn = noise_plot(bounds, [("cold, overlapped", 3.0)])
    assert [band.name for band in drawn.bands] == ["cold", "tail of 1", "cold, overlapped"]
    last = drawn.bands[-1]
    assert last.bound_x == drawn.bands[1].bound_x
    assert len(last.observed) == 1
    assert "not measured" in last.words
    assert noise_plot(bounds, [("cold", 3.0)]).bands[0].observed


def test_a_very_long_plan_is_cut_and_says_so() -> None:
    plan = tuple(Complete(prompt=Prompt(0, (Segment("a", 1),))) for _ in range(100))
    steps = [StepRecord(0, 2, 2, [1], slot=0)] * 100
    drawn = timeline(msgspec.structs.replace(real_finding(), plan=plan, steps=steps, wrong=100, story=["x"] * 100))
    assert drawn.left_out == 40
    assert len(drawn.bars) == 60


def test_events_are_read_as_far_as_they_are_whole(tmp_path: Path) -> None:
    path = tmp_path / "events.jsonl"
    lines = ['{"event":"explored","at":1}'] * 3 + ['{"event":"suspected","at":2,"step":3,"oracle":"logprobs"}'] * (
        MOST + 2
    )
    path.write_text("\n".join(['{"event":"started","at":0,"what":"x"}', "no json", *lines, '{"event":"cut of']))
    read = read_happenings(path)
    assert read.explored == 3
    assert len(read.listed) == MOST
    assert read.left_out > 0
    assert read_happenings(tmp_path / "nowhere").listed == []


def test_merged_cells_count_a_bug_once_and_a_missing_cell_is_no_verdict() -> None:
    record, clean = real_record(), RunRecord(verdict=Verdict.CLEAN, steps=7)
    both = merged({"a": record, "b": real_record()}, ["a", "b"])
    assert (both.verdict, len(both.findings), both.steps) == ("finding", 1, 2 * record.steps)
    assert [cell.findings for cell in both.matrix] == [[real_finding().id]] * 2
    cut = merged({"a": clean}, ["a", "b"])
    assert cut.verdict == "inconclusive"
    assert cut.reasons == ["b: was not run"]
