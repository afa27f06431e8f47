"""From the text of a file to a tree of nodes, or to an error with its position.

The tree is made from the events of PyYAML's parser (libyaml where available): positions are kept,
nothing is constructed, and neither depth nor aliases can cost more than a bound.
"""

from __future__ import annotations

from typing import Any, Final

import yaml

from interlock.plan.node import ListNode, MappingNode, Node, ScalarNode
from interlock.plan.problems import Problems
from interlock.plan.yaml_errors import explained

DEEPEST: Final = 40
MOST_REPEATED: Final = 100_000
"""How many values may exist only because aliases repeat them."""

_Loader: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


def compose(text: str, problems: Problems) -> Node:
    """Return the tree of a YAML text. Raises for invalid YAML; repeated keys are only noted."""
    tree = _TreeBuilder(problems)
    loader = _Loader(text)
    try:
        while (event := loader.get_event()) is not None:
            tree.take(event)
    except yaml.YAMLError as error:
        line, column, what = explained(error, text)
        problems.refuse(ScalarNode("", line=line, column=column), "", what)
    finally:
        loader.dispose()
    if tree.root is None:
        problems.refuse(None, "", "the file is empty")
    return tree.root


class _TreeBuilder:
    """Builds the tree, one event at a time."""

    def __init__(self, problems: Problems) -> None:
        self.root: Node | None = None
        self._problems = problems
        self._open: list[ListNode | MappingNode] = []
        self._keys: list[ScalarNode | None] = []
        """For each open collection, the key whose value comes next."""
        self._anchors: dict[str, Node | None] = {}
        """None while what is anchored is incomplete: it cannot contain itself."""
        self._named: list[str | None] = []
        """The anchor of each open collection."""
        self._merges: list[list[tuple[ScalarNode, Node]]] = []
        self._repeated = 0
        self._documents = 0

    def take(self, event: Any) -> None:
        kind = event.__class__
        if kind is yaml.ScalarEvent:
            mark = event.start_mark
            node = ScalarNode(event.value, event.implicit[0], mark.line + 1, mark.column + 1)
            if event.tag is not None:
                self._refuse_tag(node, event.tag)
            if event.anchor is not None:
                self._anchors[event.anchor] = node
            self._put(node)
        elif kind is yaml.MappingStartEvent or kind is yaml.SequenceStartEvent:
            self._begin(event, MappingNode if kind is yaml.MappingStartEvent else ListNode)
        elif kind is yaml.MappingEndEvent or kind is yaml.SequenceEndEvent:
            self._end()
        elif kind is yaml.AliasEvent:
            self._alias(event)
        elif kind is yaml.DocumentStartEvent:
            self._documents += 1
            if self._documents > 1:
                at = ScalarNode("", line=event.start_mark.line + 1, column=1)
                self._problems.refuse(at, "", "a second document begins here; a file contains one")

    def _begin(self, event: Any, make: type[ListNode | MappingNode]) -> None:
        node = make(event.start_mark.line + 1, event.start_mark.column + 1)
        if event.tag is not None:
            self._refuse_tag(node, event.tag)
        if len(self._open) >= DEEPEST:
            self._refuse_depth(node)
        if event.anchor is not None:
            self._anchors[event.anchor] = None
        self._open.append(node)
        self._named.append(event.anchor)
        self._keys.append(None)
        self._merges.append([])

    def _end(self) -> None:
        node = self._open.pop()
        self._keys.pop()
        anchor = self._named.pop()
        merges = self._merges.pop()
        if merges and isinstance(node, MappingNode):
            for key, each in merges:
                self._merge(node, each, key)
        if anchor is not None:
            self._anchors[anchor] = node
        self._put(node)

    def _put(self, node: Node) -> None:
        if not self._open:
            self.root = node
            return
        parent = self._open[-1]
        if node.__class__ is ScalarNode:
            parent.size += 1
            if "{{" in node.value:
                parent.has_holes = True
        else:
            parent.size += node.size  # type: ignore[union-attr]
            parent.height = max(parent.height, node.height + 1)  # type: ignore[union-attr]
            parent.has_holes |= node.has_holes  # type: ignore[union-attr]
        if isinstance(parent, ListNode):
            parent.items.append(node)
            return
        key = self._keys[-1]
        if key is None:
            self._keys[-1] = self._as_key(node, parent)
            return
        self._keys[-1] = None
        if key.value == "<<" and key.plain:
            self._merges[-1].append((key, node))
            return
        first = parent.entries.get(key.value)
        if first is not None:
            self._problems.add(
                key, "", f"the key {key.value!r} is already on line {first[0].line}; keep one"
            )
            return
        parent.entries[key.value] = (key, node)

    def _as_key(self, node: Node, parent: MappingNode) -> ScalarNode:
        if isinstance(node, ScalarNode):
            return node
        parent.unreadable = True
        if isinstance(node, MappingNode):
            self._problems.add(parent, "", 'text that begins with {{ must be quoted: "{{...}}"')
        else:
            self._problems.add(node, "", "a list cannot be a key")
        return ScalarNode(f"?{node.line}:{node.column}", False, node.line, node.column)

    def _alias(self, event: Any) -> None:
        name = event.anchor
        at = ScalarNode(name, False, event.start_mark.line + 1, event.start_mark.column + 1)
        if name not in self._anchors:
            self._problems.refuse(
                at,
                "",
                f"*{name} refers to an anchor &{name} that does not exist; text that begins with * "
                f'must be quoted: "*{name}"',
            )
        node = self._anchors[name]
        if node is None:
            self._problems.refuse(at, "", f"*{name} is inside what it refers to")
        self._count(node, at)
        self._put(node)

    def _count(self, node: Node, at: Node) -> None:
        self._repeated += 1 if isinstance(node, ScalarNode) else node.size
        if self._repeated > MOST_REPEATED:
            self._problems.refuse(
                at, "", f"aliases repeat more than {MOST_REPEATED:,} values; use fewer"
            )
        if not isinstance(node, ScalarNode) and len(self._open) + node.height > DEEPEST:
            self._refuse_depth(at)

    def _merge(self, node: MappingNode, other: Node, key: ScalarNode) -> None:
        for each in other.items if isinstance(other, ListNode) else [other]:
            if not isinstance(each, MappingNode):
                self._problems.add(key, "", "<< merges a mapping: write <<: *anchor")
                continue
            for name, entry in each.entries.items():
                node.entries.setdefault(name, entry)

    def _refuse_tag(self, node: Node, tag: str) -> None:
        shown = tag.replace("tag:yaml.org,2002:", "!!")
        self._problems.refuse(
            node, "", f"{shown} is a tag, and tags are not allowed; quote it if it is text"
        )

    def _refuse_depth(self, node: Node) -> None:
        self._problems.refuse(node, "", f"it is nested more than {DEEPEST} levels deep")
