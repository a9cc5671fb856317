"""tools/provider_schema.py on bindings of one resource in small, and what is committed."""

import json
from pathlib import Path
from typing import Any

from tools.provider_schema import ROOT, TARGET, Bindings, bare, used

CODE = """
function thingRuleToHclTerraform(struct) {
    const attrs = {
        mode: {
            value: cdktn.stringToHclTerraform(struct.mode),
            isBlock: false,
            type: "simple",
            storageClassType: "string",
        },
    };
}
class ThingRuleOutputReference extends cdktn.ComplexObject {
    // mode - computed: true, optional: true, required: false
    _mode;
    get mode() {
        return this.getStringAttribute('mode');
    }
}
class ThingRuleList extends cdktn.ComplexList {
}
class ThingStateOutputReference extends cdktn.ComplexObject {
    // at - computed: true, optional: false, required: false
    get at() {
        return this.getNumberAttribute('at');
    }
}
class Thing extends cdktn.TerraformResource {
    static tfResourceType = "google_thing";
    // labels - computed: true, optional: false, required: false
    _labels = new cdktn.StringMap(this, "labels");
    get labels() {
        return this._labels;
    }
    // name - computed: false, optional: false, required: true
    _name;
    get name() {
        return this.getStringAttribute('name');
    }
    // tags - computed: false, optional: true, required: false
    _tags;
    get tags() {
        return cdktn.Fn.tolist(this.getListAttribute('tags'));
    }
    // state - computed: true, optional: false, required: false
    _state = new ThingStateList(this, "state", false);
    get state() {
        return this._state;
    }
    // rule - computed: false, optional: false, required: true
    _rule = new ThingRuleList(this, "rule", true);
    get rule() {
        return this._rule;
    }
    synthesizeHclAttributes() {
        const attrs = {
            tags: {
                value: cdktn.listMapperHcl(cdktn.stringToHclTerraform, false)(this._tags),
                isBlock: false,
                type: "set",
                storageClassType: "stringList",
            },
            rule: {
                value: cdktn.listMapperHcl(thingRuleToHclTerraform, true)(this._rule.internalValue),
                isBlock: true,
                type: "set",
                storageClassType: "ThingRuleList",
            },
        };
    }
}
"""
DECLARED = """
export interface ThingRule {
    /**
    * How it is done. Possible values: ["FAST",
    * "SLOW"]
    *
    * Docs at …
    */
    readonly mode?: string;
}
"""


def test_bindings_become_a_schema() -> None:
    mode = {"type": "string", "computed": True, "optional": True, "values": ["FAST", "SLOW"]}
    assert Bindings(CODE, DECLARED).root() == (
        "google_thing",
        {
            "attributes": {
                "labels": {"type": ["map", "string"], "computed": True},
                "name": {"type": "string", "required": True},
                "tags": {"type": ["set", "string"], "optional": True},
                "state": {"type": ["list", ["object", {"at": "number"}]], "computed": True},
            },
            "block_types": {
                "rule": {"nesting_mode": "set", "block": {"attributes": {"mode": mode}}, "min_items": 1},
            },
        },
    )


def test_descriptions_become_values() -> None:
    described = {
        "type": "string",
        "optional": True,
        "description": 'Possible values: ["A", "B"]',
        "description_kind": "plain",
    }
    assert bare({"mode": described}) == {"mode": {"type": "string", "optional": True, "values": ["A", "B"]}}


def test_the_committed_schema_has_what_terraform_uses() -> None:
    schema: dict[str, Any] = json.loads(TARGET.read_text())
    assert set(schema["resource_schemas"]) >= used()["resource"]
    assert set(schema["data_source_schemas"]) >= used()["data"]
    assert schema["about"]["version"].startswith("7.")  # what terraform/ asks for: ~> 7.0
    assert "MPL-2.0" in schema["about"]["licence"]
    notice = " ".join((ROOT / "NOTICE").read_text().split())
    assert TARGET.relative_to(ROOT).as_posix() in notice and "MPL-2.0" in notice
    assert Path(TARGET).stat().st_size < 200_000
