"""Compile a program for a TPU slice that nobody here owns, and read what the compiler made of it.

    report = mtf.compile(prog, "v4:4x4x4")
    report.differences            # every way in which the compiled collectives are not the planned ones, in words
    report.memory, report.fits    # bytes of one device, as the compiler lays them out
    report.seconds                # modelled from compiled schedule: the compiler's cycles at the chip's clock

libtpu does the work, in a process of its own (`process`, `worker`); nothing touches a device, and this computer needs
no TPU. Files in order of reading: `slices` names a slice for libtpu, `turns`, `process` and `worker` compile,
`schedule` reads the text in the order in which it runs, `collectives` finds what is sent, `matching` and `differences`
lay it beside the plan, `fusions` tells what each part takes, `timing` adds up cycles and links, `report` holds it all.
First file to read: `slices`.
"""

from mtfcore.compiling.programs import compile
from mtfcore.compiling.report import CompiledReport

__all__ = ["CompiledReport", "compile"]
