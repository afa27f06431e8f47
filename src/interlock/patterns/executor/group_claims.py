"""What the agents of a group claim, in one spelling, and that no two of them claim the same."""

from __future__ import annotations

from interlock.errors import ClaimOutsideWorkspace, InvalidPattern, ResourceConflictError
from interlock.model.claim import Claim, write
from interlock.model.patterns.pattern import parse
from interlock.patterns.executor.events import PARALLEL_VALIDATION_ERROR, tell
from interlock.patterns.executor.held_resources import HeldResources
from interlock.patterns.executor.models import AgentAssignment, ParallelExecutionGroup
from interlock.runtime.claim_paths import Resolved, Workspace


def claims_of(group: ParallelExecutionGroup, workspace: Workspace) -> list[tuple[Claim, ...]]:
    """The claims of each assignment; raises ResourceConflictError where they overlap."""
    known: dict[Claim, Claim] = {}
    held = HeldResources(fold_case=workspace.fold_case)
    listed = []
    for assignment in group.assignments:
        claims: tuple[Claim, ...] = ()
        if assignment.resource_claims:
            claims = _resolved(assignment, workspace, known)
            _check(group, assignment, claims, held)
        listed.append(claims)
    return listed


def _resolved(
    assignment: AgentAssignment, workspace: Workspace, known: dict[Claim, Claim]
) -> tuple[Claim, ...]:
    for text in assignment.resource_claims:
        try:
            parse(text)
        except InvalidPattern as error:
            raise error.in_task(assignment.task_id) from None
        except ClaimOutsideWorkspace:
            continue  # the workspace knows where it really leads
    claims = tuple(write(text) for text in assignment.resource_claims)
    # Two spellings of one path are one claim.
    return Resolved(dict.fromkeys(workspace.resolve(assignment.task_id, claims, known)))


def _check(
    group: ParallelExecutionGroup,
    assignment: AgentAssignment,
    claims: tuple[Claim, ...],
    held: HeldResources,
) -> None:
    for claim in claims:
        other = held.against(claim.resource, assignment.agent_id)
        if other is not None:
            problem = (
                f"agent {assignment.agent_id!r} claims {claim.resource!r}, which overlaps "
                f"{other.resource!r} of agent {other.holder!r}"
            )
            tell(PARALLEL_VALIDATION_ERROR, group=group.group_id, reason=problem)
            raise ResourceConflictError(f"group {group.group_id!r}: {problem}; nothing was started")
        held.add(claim.resource, assignment.agent_id)
