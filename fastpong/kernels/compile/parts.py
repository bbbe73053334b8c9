"""Functions that kernels call: lowered once, and optimised only as parts of the kernels that they end up in.

Numba optimises a function, with all that it calls, and makes machine code of it, before it does the same once more with
each caller. Where functions call each other six deep, as the console's do, most of that is thrown away. Here a function
that a kernel calls is left as LLVM's code, to be linked, and the kernel that Python calls is optimised as a whole: the
console compiles in half the time, and the other kernels in four fifths. What Python calls is compiled as ever.

That takes two of Numba's classes: the pass that lowers, for which a compiler may have its own, and the library of code
that it fills.
"""

from typing import Any

from numba import njit
from numba.core.codegen import JITCodeLibrary
from numba.core.compiler import CompilerBase, DefaultPassBuilder, _LowerResult
from numba.core.compiler_machinery import LoweringPass, PassManager, register_pass
from numba.core.funcdesc import PythonFunctionDescriptor
from numba.core.lowering import Lower
from numba.core.typed_passes import NativeLowering

_LowerPass: Any = LoweringPass  # Numba has no types
_Compiler: Any = CompilerBase
_Library: Any = JITCodeLibrary


class _Part(_Library):  # type: ignore[misc]
    """The code of a function and of what it calls, neither optimised nor made executable."""

    def _optimize_functions(self, module: Any) -> None:
        module.data_layout = self._codegen._data_layout

    def finalize(self) -> None:
        for library in dict.fromkeys(self._linking_libraries):
            self._final_module.link_in(library._get_module_for_linking(), preserve=True)
        self._finalized = True


@register_pass(mutates_CFG=True, analysis_only=False)
class _PartLowering(_LowerPass):  # type: ignore[misc]
    """`NativeLowering` without an executable, and without the wrapper that Python calls."""

    _name = "part_lowering"

    def __init__(self) -> None:
        LoweringPass.__init__(self)

    def run_pass(self, state: Any) -> bool:
        """Lower a typed function, and tell its callers where its code is."""
        context, flags = state.targetctx, state.flags
        library = state.library = _Part(context.codegen(), state.func_id.func_qualname)
        described = PythonFunctionDescriptor.from_specialized_function(
            state.func_ir, state.typemap, state.return_type, state.calltypes, mangler=context.mangler,
            inline=flags.forceinline, noalias=flags.noalias, abi_tags=[flags.get_mangle_string()],
        )  # fmt: skip
        with context.push_code_library(library):
            lower = Lower(context, library, described, state.func_ir, metadata=state.metadata)
            lower.lower()
        key = [described].index  # Numba finds the code by the built-in function that Python would call: any will do
        context.insert_user_function(key, described, [library])
        state["cr"] = _LowerResult(described, lower.call_helper, cfunc=key, env=lower.env)
        return True


class _PartCompiler(_Compiler):  # type: ignore[misc]
    """Numba's compiler with that pass in place of its own."""

    def define_pipelines(self) -> list[Any]:
        """Return the one list of passes."""
        passes = PassManager("part")
        for one, why in DefaultPassBuilder.define_nopython_pipeline(self.state).passes:
            passes.add_pass(_PartLowering if one is NativeLowering else one, why)
        passes.finalize()
        return [passes]


def unchanged(kind: Any) -> Any:
    """Return a type of Numba as it is."""
    return kind


def call_as_part(kernel: Any, widened: Any, **options: Any) -> None:
    """Let kernels call another one, compiled with these options, as a part; `widened` changes the types of arguments.

    The part has no code that Python could call, so nobody else has it.
    """
    part = njit(pipeline_class=_PartCompiler, **options)(kernel.py_func)
    template = part.get_call_template
    kernel.get_call_template = lambda args, kws: template([*map(widened, args)], kws)
    kernel.get_overload = part.get_overload
