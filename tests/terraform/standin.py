"""A stand-in for the provider hashicorp/google, where the real one cannot be had.

It has the real provider's schema of what terraform/ uses (google_schema.json), and refuses what the schema and rules.py
do not allow. In a plan, what the service would compute is unknown. An apply makes it up, and notes what was asked for.
Terraform reaches it as a plugin that already runs, over protocol 5.
"""

import json
import os
from collections.abc import Iterator
from concurrent import futures
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import grpc
import msgpack

from tests.terraform.messages import CLASSES
from tests.terraform.rules import Fault, faults, filled, planned

SCHEMA = Path(__file__).with_name("google_schema.json")
NESTING = {"single": 1, "list": 2, "set": 3, "map": 4, "group": 5}
FLAGS = ("required", "optional", "computed", "sensitive", "deprecated", "write_only")
ERROR = 1


class Provider:
    """Answers by method; each takes a request and returns a response. done: what applies did, in order."""

    def __init__(self, schema: dict[str, Any]) -> None:
        self.schema = schema
        self.done: list[Done] = []
        self.answer = self._schemas()
        # Method: its request, and what answers.
        self.methods = {
            "GetSchema": ("Empty", self.schemas),
            "PrepareProviderConfig": ("Prepare", lambda asked: CLASSES["Prepared"](prepared_config=asked.config)),
            "Configure": ("Empty", lambda asked: CLASSES["Diagnostics"]()),
            "ValidateResourceTypeConfig": ("Validate", lambda asked: self.validate("resource_schemas", asked)),
            "ValidateDataSourceConfig": ("Validate", lambda asked: self.validate("data_source_schemas", asked)),
            "PlanResourceChange": ("Plan", self.plan),
            "ApplyResourceChange": ("Apply", self.apply),
            "ReadResource": ("Read", lambda asked: CLASSES["State"](state=asked.current_state)),
            "ReadDataSource": ("Validate", self.read),
            "UpgradeResourceState": ("Upgrade", self.upgrade),
            "Stop": ("Empty", lambda asked: CLASSES["Empty"]()),
        }

    def schemas(self, asked: Any) -> Any:
        return self.answer

    def _schemas(self) -> Any:
        entries = {
            key: [CLASSES["Entry"](key=name, value=as_schema(node)) for name, node in self.schema[key].items()]
            for key in ("resource_schemas", "data_source_schemas")
        }
        return CLASSES["Schemas"](
            provider=as_schema(self.schema["provider"]),
            server_capabilities=CLASSES["Capabilities"](get_provider_schema_optional=True),
            **entries,
        )

    def validate(self, key: str, asked: Any) -> Any:
        found = faults(asked.type_name, self.schema[key][asked.type_name]["block"], unpack(asked.config))
        return CLASSES["Diagnostics"](diagnostics=[as_diagnostic(fault) for fault in found])

    def plan(self, asked: Any) -> Any:
        """A new resource: what is asked for, with unknown values. Another name is another resource."""
        proposed, prior = unpack(asked.proposed_new_state), unpack(asked.prior_state)
        replace = []
        if proposed is not None and prior is None:
            proposed = planned(self.schema["resource_schemas"][asked.type_name]["block"], proposed)
        elif proposed is not None and proposed.get("name") != prior.get("name"):
            replace = [CLASSES["Path"](steps=[CLASSES["Step"](attribute_name="name")])]
        return CLASSES["Planned"](planned_state=pack(proposed), requires_replace=replace)

    def apply(self, asked: Any) -> Any:
        wanted, prior = unpack(asked.planned_state), unpack(asked.prior_state)
        state = wanted and filled(asked.type_name, self.schema["resource_schemas"][asked.type_name]["block"], wanted)
        action = "destroy" if state is None else "create" if prior is None else "update"
        self.done.append(Done(action, asked.type_name, str((state or prior).get("name"))))
        return CLASSES["State"](state=pack(state))

    def read(self, asked: Any) -> Any:
        block = self.schema["data_source_schemas"][asked.type_name]["block"]
        return CLASSES["State"](state=pack(filled(asked.type_name, block, planned(block, unpack(asked.config)))))

    def upgrade(self, asked: Any) -> Any:
        return CLASSES["State"](state=CLASSES["Dynamic"](json=asked.raw_state.json))


class Done(NamedTuple):
    """action: create, update or destroy. kind, name: of the resource."""

    action: str
    kind: str
    name: str


def unpack(value: Any) -> Any:
    return msgpack.unpackb(value.msgpack, strict_map_key=False)


def pack(value: Any) -> Any:
    return CLASSES["Dynamic"](msgpack=msgpack.packb(value))


def as_schema(node: dict[str, Any]) -> Any:
    return CLASSES["Schema"](version=node.get("version", 0), block=as_block(node["block"]))


def as_block(block: dict[str, Any]) -> Any:
    attributes = [
        CLASSES["Attribute"](
            name=name,
            type=json.dumps(facts["type"]).encode(),
            **{flag: facts[flag] for flag in FLAGS if flag in facts},
        )
        for name, facts in block.get("attributes", {}).items()
    ]
    nested = [
        CLASSES["Nested"](
            type_name=name,
            block=as_block(facts["block"]),
            nesting=NESTING[facts["nesting_mode"]],
            min_items=facts.get("min_items", 0),
            max_items=facts.get("max_items", 0),
        )
        for name, facts in block.get("block_types", {}).items()
    ]
    return CLASSES["Block"](attributes=attributes, block_types=nested)


def as_diagnostic(fault: Fault) -> Any:
    steps = [
        CLASSES["Step"](element_key_int=step) if isinstance(step, int) else CLASSES["Step"](attribute_name=step)
        for step in fault.path
    ]
    name = ".".join(str(step) for step in fault.path)
    return CLASSES["Diagnostic"](
        severity=ERROR, summary=f"{name}: {fault.message}", attribute=CLASSES["Path"](steps=steps)
    )


class Handler(grpc.GenericRpcHandler):
    """Routes the provider's methods, and the health check of Terraform's plugin library."""

    def __init__(self, provider: Provider) -> None:
        self.provider = provider

    def service(self, handler_call_details: Any) -> Any:
        service, _, method = handler_call_details.method.strip("/").rpartition("/")
        if service == "grpc.health.v1.Health":
            return grpc.unary_unary_rpc_method_handler(lambda asked, context: b"\x08\x01")  # serving
        if service != "tfplugin5.Provider" or method not in self.provider.methods:
            return None
        request, answer = self.provider.methods[method]
        return grpc.unary_unary_rpc_method_handler(
            lambda asked, context: answer(asked),
            request_deserializer=CLASSES[request].FromString,
            response_serializer=lambda response: response.SerializeToString(),
        )


@contextmanager
def serving(folder: Path) -> Iterator[tuple[dict[str, str], list[Done]]]:
    """A stand-in that listens in a folder: the environment in which Terraform uses it, and what applies did."""
    provider = Provider(json.loads(SCHEMA.read_text()))
    options = [("grpc.max_receive_message_length", -1), ("grpc.max_send_message_length", -1)]
    server = grpc.server(futures.ThreadPoolExecutor(8), options=options)
    server.add_generic_rpc_handlers((Handler(provider),))
    socket = str(folder / "provider.socket")
    server.add_insecure_port(f"unix:{socket}")
    server.start()
    address = {"Network": "unix", "String": socket}
    there = {"Protocol": "grpc", "ProtocolVersion": 5, "Pid": os.getpid(), "Test": True, "Addr": address}
    try:
        yield {"TF_REATTACH_PROVIDERS": json.dumps({"hashicorp/google": there})}, provider.done
    finally:
        server.stop(grace=None)
