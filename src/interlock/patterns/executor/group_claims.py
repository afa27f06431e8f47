"""Resolve the claims of a group, and reject a group in which two assignments overlap."""

from __future__ import annotations

from interlock.errors import ClaimOutsideWorkspace, InvalidPattern, ResourceConflictError
from interlock.model.claim import Claim, write
from interlock.model.patterns.overlap_index import OverlapIndex
from interlock.model.patterns.pattern import parse
from interlock.patterns.executor.events import PARALLEL_VALIDATION_ERROR, event_ids, log_event
from interlock.patterns.executor.models import AgentAssignment, ParallelExecutionGroup
from interlock.runtime.claim_paths import ResolvedClaims, WorkspacePaths


def resolve_claims(
    group: ParallelExecutionGroup, workspace: WorkspacePaths
) -> list[tuple[Claim, ...]]:
    """Return the claims of each assignment; raise ResourceConflictError if two overlap."""
    known: dict[Claim, Claim] = {}
    held = OverlapIndex(fold_case=workspace.fold_case)
    listed = []
    for assignment in group.assignments:
        claims: tuple[Claim, ...] = ()
        if assignment.resource_claims:
            claims = _resolve(assignment, workspace, known)
            _check_overlap(group, assignment, claims, held)
        listed.append(claims)
    return listed


def _resolve(
    assignment: AgentAssignment, workspace: WorkspacePaths, known: dict[Claim, Claim]
) -> tuple[Claim, ...]:
    for text in assignment.resource_claims:
        try:
            parse(text)
        except InvalidPattern as error:
            raise error.in_task(assignment.task_id) from None
        except ClaimOutsideWorkspace:
            continue  # only the workspace can tell where a link really leads
    claims = tuple(write(text) for text in assignment.resource_claims)
    # Two spellings of one path are one claim.
    return ResolvedClaims(dict.fromkeys(workspace.resolve(assignment.task_id, claims, known)))


def _check_overlap(
    group: ParallelExecutionGroup,
    assignment: AgentAssignment,
    claims: tuple[Claim, ...],
    held: OverlapIndex,
) -> None:
    for claim in claims:
        other = held.against(claim.resource, assignment.agent_id)
        if other is not None:
            problem = (
                f"agent {assignment.agent_id!r} claims {claim.resource!r}, which overlaps "
                f"{other.resource!r} of agent {other.holder!r}"
            )
            log_event(
                PARALLEL_VALIDATION_ERROR,
                reason=problem,
                **event_ids(group.group_id, assignment),
            )
            raise ResourceConflictError(f"group {group.group_id!r}: {problem}; nothing was started")
        held.add(claim.resource, assignment.agent_id)
