"""Which blocks of a control-flow graph every way to a block passes, and where ways that passed others meet."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterable

from torchlint.syntax.control_flow import ENTRY, EXIT, Graph


class Dominance:
    """The dominator tree of a graph, and the dominance frontiers of its blocks.

    Python has no `goto`: in its graphs each loop is entered at one block, which dominates the others. So one pass in
    reverse postorder finds the tree, and the edges back may be left out for that.
    """

    def __init__(self, graph: Graph) -> None:
        self.order = _reverse_postorder(graph)
        # Only blocks that can be reached have a rank.
        self.rank = {block: rank for rank, block in enumerate(self.order)}
        self.predecessors = {
            block: [source for source in graph.predecessors[block] if source in self.rank] for block in self.order
        }
        self._parent = {ENTRY: ENTRY}
        self._jump = {ENTRY: ENTRY}
        self._depth = {ENTRY: 0}
        for block in self.order[1:]:
            self._place(block)
        self._number()
        self._numbers_before: dict[int, list[int]] = {}
        self._frontier: dict[int, list[int]] = {}
        self._find_frontiers()

    def meetings(self, blocks: Iterable[int]) -> set[int]:
        """The blocks in which ways may meet of which some have passed one of these blocks and others have not."""
        found: set[int] = set()
        stack = list(blocks)
        while stack:
            for block in self._frontier.get(stack.pop(), ()):
                if block not in found:
                    found.add(block)
                    stack.append(block)
        return found

    def numbers_before(self, block: int) -> list[int]:
        """The numbers in the tree of the blocks that lead to a block, in order."""
        found = self._numbers_before.get(block)
        if found is None:
            found = self._numbers_before[block] = sorted(self.first[source] for source in self.predecessors[block])
        return found

    def _place(self, block: int) -> None:
        """Hang a block below the nearest that dominates all blocks before it."""
        parent: int | None = None
        for source in self.predecessors[block]:
            if self.rank[source] < self.rank[block]:
                parent = source if parent is None else self._common(parent, source)
        assert parent is not None
        self._parent[block] = parent
        self._depth[block] = self._depth[parent] + 1
        jump = self._jump[parent]
        far = self._depth[parent] - self._depth[jump] == self._depth[jump] - self._depth[self._jump[jump]]
        # Pointers far up the tree, so that the way to a common dominator takes a logarithm of its length.
        self._jump[block] = self._jump[jump] if far else parent

    def _common(self, one: int, other: int) -> int:
        depth, jump, parent = self._depth, self._jump, self._parent
        if depth[one] < depth[other]:
            one, other = other, one
        while depth[one] > depth[other]:
            one = jump[one] if depth[jump[one]] >= depth[other] else parent[one]
        while one != other:
            if jump[one] == jump[other]:
                one, other = parent[one], parent[other]
            else:
                one, other = jump[one], jump[other]
        return one

    def _number(self) -> None:
        """Number the tree from the root, so that what a block dominates follows it without a gap."""
        below: dict[int, list[int]] = {}
        for block in self.order[1:]:
            below.setdefault(self._parent[block], []).append(block)
        self.first: dict[int, int] = {}
        stack = [ENTRY]
        while stack:
            block = stack.pop()
            self.first[block] = len(self.first)
            stack += below.get(block, ())
        self.last = dict(self.first)
        for block in reversed(self.order[1:]):
            parent = self._parent[block]
            self.last[parent] = max(self.last[parent], self.last[block])

    def _find_frontiers(self) -> None:
        frontier = self._frontier
        for block in self.order:
            sources = self.predecessors[block]
            if len(sources) < 2 or block == EXIT:  # nothing runs there
                continue
            top = self._parent[block]
            for source in sources:
                runner = source
                while runner != top:
                    met = frontier.setdefault(runner, [])
                    if met and met[-1] == block:
                        break  # and so have those above
                    met.append(block)
                    runner = self._parent[runner]


class Landmarks:
    """Some blocks of a dominator tree, and for any block the nearest of them that dominates it."""

    def __init__(self, dominance: Dominance, blocks: Iterable[int]) -> None:
        self._dominance = dominance
        self._first, self._last = dominance.first, dominance.last
        self._blocks = sorted((block for block in blocks if block in self._first), key=self._first.__getitem__)
        self._firsts = [self._first[block] for block in self._blocks]
        self._above: dict[int, int | None] = {}
        open_: list[int] = []
        for block in self._blocks:
            while open_ and self._last[open_[-1]] < self._first[block]:
                open_.pop()
            self._above[block] = open_[-1] if open_ else None
            open_.append(block)

    def nearest(self, block: int) -> int | None:
        """The nearest landmark that dominates a block, which it may be itself."""
        first = self._first[block]
        index = bisect_right(self._firsts, first) - 1
        found = self._blocks[index] if index >= 0 else None
        while found is not None and self._last[found] < first:
            found = self._above[found]
        return found

    def above(self, landmark: int) -> int | None:
        """The nearest landmark that dominates another one."""
        return self._above[landmark]

    def before(self, block: int) -> set[int]:
        """The nearest landmarks of the blocks that lead to a block."""
        sources = self._dominance.predecessors[block]
        if len(sources) <= len(self._blocks):
            return {found for found in map(self.nearest, sources) if found is not None}
        # Many ways meet here: each landmark has those that it dominates, less those of the landmarks that it dominates.
        firsts = self._dominance.numbers_before(block)
        own: dict[int, int] = {}
        for landmark in self._blocks:
            own[landmark] = bisect_right(firsts, self._last[landmark]) - bisect_left(firsts, self._first[landmark])
            above = self._above[landmark]
            if above is not None:
                own[above] -= own[landmark]
        return {landmark for landmark, count in own.items() if count}


def _reverse_postorder(graph: Graph) -> list[int]:
    seen = {ENTRY}
    done: list[int] = []
    stack = [(ENTRY, reversed(graph.successors[ENTRY]))]
    while stack:
        block, following = stack[-1]
        for target in following:
            if target not in seen:
                seen.add(target)
                # Where a loop ends comes after its body: what is worked out in this order is so once a loop.
                stack.append((target, reversed(graph.successors[target])))
                break
        else:
            stack.pop()
            done.append(block)
    done.reverse()
    return done
