"""What a file as a whole says: whether it speaks of an accelerator, whether it is a program that runs by itself."""

from __future__ import annotations

import re
from functools import cached_property

import libcst as cst

from torchlint.semantics.knowledge.apis import OTHER_FRAMEWORKS
from torchlint.semantics.knowledge.conventions.texts import ACCELERATOR_PARTS, ACCELERATOR_WORDS
from torchlint.semantics.knowledge.marks import DEVICE_SETTER
from torchlint.semantics.knowledge.torch_signatures import MODULES
from torchlint.semantics.names.bindings import Binder, Names
from torchlint.semantics.values.lattice import Device, Kind, Value
from torchlint.syntax.tree import Tree
from torchlint.syntax.uncommented import uncommented

# Lines that ask for an accelerator or seed it, and put nothing there.
_PUTS_NOTHING = re.compile(r"assert [\w.]*cuda\.is_available\(\).*|[\w.]*cuda\.manual_seed(_all)?\(")


class Program:
    """The facts about one module that hold for all of its expressions."""

    def __init__(self, tree: Tree, names: Names, text: str) -> None:
        self.tree = tree
        self.names = names
        self._text = text

    @cached_property
    def code(self) -> str:
        """The text of the file without comments, docstrings and messages: what alone may suggest something."""
        return uncommented(self._text)

    @cached_property
    def mentions_accelerator(self) -> bool:
        """Whether anything in the file speaks of an accelerator."""
        text = self.code.lower()
        if "cuda.is_available()" in text or "cuda.manual_seed" in text:
            text = _PUTS_NOTHING.sub("", text)
        return ACCELERATOR_PARTS.suggests(text) or ACCELERATOR_WORDS.suggests(text)

    @cached_property
    def is_of_another_framework(self) -> bool:
        """Whether the file computes with another framework than PyTorch, of which it imports nothing."""
        imported = self.names.imported
        return not imported.isdisjoint(OTHER_FRAMEWORKS) and imported.isdisjoint({"torch", "lightning"})

    @cached_property
    def is_whole_script(self) -> bool:
        """Whether the module is a program that builds what it runs: it makes a model or an optimizer and loops.

        A layer that is called where it is made, `nn.Softmax(dim=1)(x)`, is a way to write a function, and no model. A
        class of the file may make its optimizer itself, if the program makes the class.
        """
        if not (*self.tree.of(cst.For), *self.tree.of(cst.While)):
            return False
        made = self._made_classes
        for call in self.tree.of(cst.Call):
            name, class_ = self.names.qualified(call.func) or "", self.tree.enclosing_class(call)
            if name.startswith("torch.optim.") and (class_ is None or class_ in made):
                return True
            is_layer = name[:9] == "torch.nn." and name[9:] in MODULES
            if is_layer and class_ is None and not self._is_called_at_once(call):
                return True
        return False

    @cached_property
    def _made_classes(self) -> set[cst.CSTNode]:
        """The classes of the file of which something other than a class makes an object."""
        names = (
            call.func
            for call in self.tree.of(cst.Call)
            if isinstance(call.func, cst.Name) and self.tree.enclosing_class(call) is None
        )
        return {
            binding.node for name in names for binding in self.names.reaching(name) if binding.binder is Binder.CLASS
        }

    def _is_called_at_once(self, call: cst.Call) -> bool:
        above = self.tree.parent(call)
        return isinstance(above, cst.Call) and above.func is call

    @cached_property
    def changes_default_device(self) -> bool:
        """Whether factories without `device=` may give a tensor elsewhere than on the CPU."""
        if DEVICE_SETTER.is_in(self.code):
            return True
        return any(self._is_device_call(item.item) for with_ in self.tree.of(cst.With) for item in with_.items)

    def _is_device_call(self, node: cst.CSTNode) -> bool:
        """`torch.device(…)`, or a name for it; on `meta` nothing holds numbers that anybody could read."""
        if isinstance(node, cst.Name):
            values = [binding.value for binding in self.names.reaching(node) if binding.binder is Binder.ASSIGN]
            return any(isinstance(value, cst.Call) and self._is_device_call(value) for value in values)
        if not isinstance(node, cst.Call) or self.names.qualified(node.func) != "torch.device":
            return False
        match node.args:
            case [cst.Arg(value=cst.SimpleString() as kind)]:
                return kind.evaluated_value != "meta"
        return True

    def built(self, call: cst.Call, value: Value) -> Value:
        """A module built here lives on the CPU as long as the file speaks of nothing else."""
        if value.kind is Kind.MODULE and not self.mentions_accelerator and self.tree.enclosing_class(call) is None:
            return value.on(Device.CPU)
        return value
