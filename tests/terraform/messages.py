"""The messages of Terraform's plugin protocol 5 that a provider without a service needs, as protobuf classes."""

from typing import Any

from google.protobuf import descriptor_pb2, descriptor_pool, message_factory

# Message: fields as (number, name, type); [type] is repeated, a name that begins with a capital is another message.
MESSAGES: dict[str, list[tuple[int, str, Any]]] = {
    "Dynamic": [(1, "msgpack", "bytes"), (2, "json", "bytes")],
    "Step": [(1, "attribute_name", "string"), (2, "element_key_string", "string"), (3, "element_key_int", "int64")],
    "Path": [(1, "steps", ["Step"])],
    "Diagnostic": [
        (1, "severity", "int64"),
        (2, "summary", "string"),
        (3, "detail", "string"),
        (4, "attribute", "Path"),
    ],
    "Attribute": [
        *((1, "name", "string"), (2, "type", "bytes"), (4, "required", "bool"), (5, "optional", "bool")),
        *((6, "computed", "bool"), (7, "sensitive", "bool"), (9, "deprecated", "bool"), (10, "write_only", "bool")),
    ],
    "Nested": [
        *((1, "type_name", "string"), (2, "block", "Block"), (3, "nesting", "int64")),
        *((4, "min_items", "int64"), (5, "max_items", "int64")),
    ],
    "Block": [(1, "version", "int64"), (2, "attributes", ["Attribute"]), (3, "block_types", ["Nested"])],
    "Schema": [(1, "version", "int64"), (2, "block", "Block")],
    "Entry": [(1, "key", "string"), (2, "value", "Schema")],
    "Capabilities": [(2, "get_provider_schema_optional", "bool")],
    "Schemas": [
        *((1, "provider", "Schema"), (2, "resource_schemas", ["Entry"]), (3, "data_source_schemas", ["Entry"])),
        *((4, "diagnostics", ["Diagnostic"]), (6, "server_capabilities", "Capabilities")),
    ],
    "Diagnostics": [(1, "diagnostics", ["Diagnostic"])],
    "Prepare": [(1, "config", "Dynamic")],
    "Prepared": [(1, "prepared_config", "Dynamic"), (2, "diagnostics", ["Diagnostic"])],
    "Validate": [(1, "type_name", "string"), (2, "config", "Dynamic")],
    "Read": [(1, "type_name", "string"), (2, "current_state", "Dynamic")],
    "State": [(1, "state", "Dynamic")],  # of a resource or a data source, after a read, an apply or an upgrade
    "Raw": [(1, "json", "bytes")],
    "Upgrade": [(1, "type_name", "string"), (3, "raw_state", "Raw")],
    "Plan": [
        *((1, "type_name", "string"), (2, "prior_state", "Dynamic")),
        *((3, "proposed_new_state", "Dynamic"), (4, "config", "Dynamic")),
    ],
    "Planned": [(1, "planned_state", "Dynamic"), (2, "requires_replace", ["Path"])],
    "Apply": [(1, "type_name", "string"), (2, "prior_state", "Dynamic"), (3, "planned_state", "Dynamic")],
    "Empty": [],
}


def _classes() -> dict[str, Any]:
    file = descriptor_pb2.FileDescriptorProto(name="plugin.proto", package="standin", syntax="proto3")
    scalar = descriptor_pb2.FieldDescriptorProto
    for name, fields in MESSAGES.items():
        message = file.message_type.add(name=name)
        for number, field, kind in fields:
            one = kind[0] if isinstance(kind, list) else kind
            label = scalar.LABEL_REPEATED if isinstance(kind, list) else scalar.LABEL_OPTIONAL
            added = message.field.add(name=field, number=number, label=label)
            if one in MESSAGES:
                added.type, added.type_name = scalar.TYPE_MESSAGE, f".standin.{one}"
            else:
                added.type = getattr(scalar, f"TYPE_{one.upper()}")
    pool = descriptor_pool.DescriptorPool()
    pool.Add(file)
    return {name: message_factory.GetMessageClass(pool.FindMessageTypeByName(f"standin.{name}")) for name in MESSAGES}


CLASSES = _classes()
