"""Waits for the result of a task that an agent has accepted, by polling and by delivery."""

import asyncio
from typing import Final

from assay.common.json import JsonObject, is_object
from assay.probing.ports import A2aConversation, AgentCallFailed, PendingResult
from assay.probing.push_results import is_working

POLLS_MAX: Final = 12
POLL_FROM_S, POLL_TO_S, POLL_GROWTH = 0.4, 8.0, 1.4

DELIVERY_WAIT_S: Final = 0.2
"""Seconds between two checks for deliveries, which cost the agent nothing."""


async def task_result(
    agent: A2aConversation, answer: JsonObject, wait_s: float, pending: PendingResult | None
) -> JsonObject:
    """Return the answer, or its finished task; else the task as it is after `wait_s`.

    Raises `AgentCallFailed` if polling fails and nothing can be delivered, and if an expected
    delivery did not come.
    """
    task = answer.get("task")
    if not is_object(task) or not is_working(answer):
        return answer
    task_id = str(task.get("id"))
    ends_s = asyncio.get_running_loop().time() + wait_s
    pause_s, polls = POLL_FROM_S, 0
    while polls < POLLS_MAX and (left_s := ends_s - asyncio.get_running_loop().time()) > 0:
        delivered = await _delivered(pending, task_id, min(pause_s, left_s))
        if delivered is not None:
            return delivered
        pause_s = min(POLL_GROWTH * pause_s, POLL_TO_S)
        polls += 1
        try:
            answer = await agent.get_task(task_id)
        except AgentCallFailed:
            if pending is None:
                raise
            continue
        if not is_working(answer):
            return answer
    if pending is not None:
        raise AgentCallFailed("timeout", "no end was delivered")
    return answer


async def _delivered(
    pending: PendingResult | None, task_id: str, wait_s: float
) -> JsonObject | None:
    """Return what was delivered within that time."""
    if pending is None:
        await asyncio.sleep(wait_s)
        return None
    ends_s = asyncio.get_running_loop().time() + wait_s
    while True:
        found = await pending.delivered(task_id)
        left_s = ends_s - asyncio.get_running_loop().time()
        if found is not None or left_s <= 0:
            return found
        await asyncio.sleep(min(DELIVERY_WAIT_S, left_s))
