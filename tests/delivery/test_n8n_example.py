"""The workflow of examples/n8n: what its node sends is accepted by the API, and a repetition sends nothing twice."""

import json
import subprocess
from typing import Any

from tests.delivery.conftest import Api
from tests.support.paths import ROOT

WORKFLOW = ROOT / "examples" / "n8n" / "exam-moved.json"
EVALUATE = """
const [values, text] = process.argv.slice(1).map(JSON.parse);
const run = (one) => Function(...Object.keys(values), `return (${one})`)(...Object.values(values));
console.log(text.slice(1).replace(/{{(.*?)}}(?!})/g, (_, one) => run(one)));
"""
"""What n8n does with the expressions of a parameter."""


def evaluated(parameter: str, **values: Any) -> str:
    assert parameter.startswith("="), "an expression"
    given = [json.dumps(values), json.dumps(parameter)]
    return subprocess.run(["node", "-e", EVALUATE, *given], check=True, capture_output=True, text=True).stdout.strip()


async def test_the_workflow_sends_to_people_and_groups_and_its_repetition_sends_once(api: Api) -> None:
    await api.call("POST", "/v1/groups", {"id": "PHY-12"})
    anna = {"id": 7, "contacts": {"sms": ["+79990000001"]}, "external_ids": ["1c:00042"]}
    await api.call("POST", "/v1/users", anna)
    await api.call("PUT", "/v1/groups/PHY-12/members/7")
    trigger, node = json.loads(WORKFLOW.read_text())["nodes"]
    given = node["parameters"]
    asked = {"body": {"text": 'At 12:00 in "214"', "to": ["1c:00042", "group:PHY-12"]}}
    values = {"$json": asked, "$execution": {"id": "231"}, "$itemIndex": 0}
    (header,) = given["headerParameters"]["parameters"]
    key = evaluated(header["value"], **values)
    body = json.loads(evaluated(given["jsonBody"], **values))
    path = given["url"].removeprefix("http://ada.example.org:8080")
    first, again = [await api.call(given["method"], path, body, headers={header["name"]: key}) for _ in range(2)]
    assert (first.status, key, first.json["recipients"]) == (202, "n8n-231-0", 1)
    assert (again.status, again.json["id"]) == (202, first.json["id"])
    assert (trigger["type"], node["retryOnFail"]) == ("n8n-nodes-base.webhook", True)
