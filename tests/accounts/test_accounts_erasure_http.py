"""What its owner wrote leaves with an account, wherever it stands."""

from sqlalchemy import select

from assay.db.schema.everything import account_codes, webhook_deliveries, wrappers
from tests.support.live_service import PASSWORD, TestService

HOST = "hooks.personal.example"


async def test_a_deletion_erases_targets_and_domains_and_keeps_the_ledger(
    service: TestService,
) -> None:
    key = await service.operator()
    token = await service.token()
    operator = await service.app.operators.find_for_admin("op@example.com")
    await service.app.passwords.reset_link_for_admin(operator)
    target = {"path": "/mine", "pricePerCall": 0, "targetUrl": "http://127.0.0.1:8999/personal"}
    made = await service.http.post("/operator/endpoints", json=target, headers=token)
    assert made.status_code == 200, made.text
    hook = {"event": "evaluation_complete", "url": f"https://{HOST}/x"}
    await service.http.post("/operator/webhooks/register", json=hook, headers=key)
    assert (await service.http.post("/operator/trigger-sandbox/7")).status_code == 200
    body = {"password": PASSWORD}
    gone = await service.http.request("DELETE", "/operator/me", json=body, headers=token)
    assert gone.status_code == 200
    async with service.app.database.read() as connection:
        deliveries = (await connection.execute(select(webhook_deliveries))).mappings().all()
    async with service.app.database.read() as connection:
        [wrapper] = (await connection.execute(select(wrappers))).mappings().all()
    async with service.app.database.read() as connection:
        [code] = (await connection.execute(select(account_codes))).mappings().all()
    assert [(one["url"], one["domain"]) for one in deliveries] == [("", None)]
    assert (wrapper["target_url"], wrapper["active"]) == ("", False)
    assert wrapper["path"] == "/mine"  # calls and payments name it
    assert code["email_lower"] is None
    assert code["spent_us"] is not None
