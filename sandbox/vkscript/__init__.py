"""VKScript, the language that VK's `execute` takes (dev.vk.com, method execute): the documented part of it.

`var`, literals, arrays and objects, arithmetic, comparison and logic, `if` and `while`, `.name`, `[place]`, `@.name`,
`API.section.method({…})`, `parseInt`, `parseDouble`, `delete`, `return`, `length` and the methods of strings and
arrays. It is not JavaScript: there are no functions, no `for`, no `?:`, and every statement ends with a semicolon.
"""

from sandbox.vkscript.errors import CompileError, RunError
from sandbox.vkscript.parser import Program, parse
from sandbox.vkscript.run import Call, Run, Value

__all__ = ["Call", "CompileError", "Program", "Run", "RunError", "Value", "execute", "parse"]


def execute(code: str, call: Call) -> Value:
    """Compile and run a program; `call` answers its API calls. Raises CompileError, RunError, or what `call` raises."""
    return parse(code).run(Run(call))
