# Part of open-torch-neuronx, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

"""The command neuron-explorer."""

from __future__ import annotations

import argparse
import importlib.metadata
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import zlib
from collections.abc import Sequence
from typing import Any

from . import schema

DEFAULT_DATA = "~/.local/share/neuron-explorer"
FORMATS = ("parquet", "json", "perfetto", "summary-text", "summary-json", "csv", "html")


def _version() -> str:
    try:
        return importlib.metadata.version("open-torch-neuronx")
    except importlib.metadata.PackageNotFoundError:
        return "unknown"


def main(arguments: Sequence[str] | None = None) -> int:
    parser = _parser()
    options = parser.parse_args(arguments)
    if options.show_profile_schema:
        print(schema.describe())
        return 0
    if options.command is None:
        parser.print_help()
        return 2
    from ._decoder import ProfileError
    from .html import ExportError
    from .ingest import IngestError
    from .profiles import ProfileError as StoreError
    from .server import ServerError

    try:
        return options.run(options)
    except BrokenPipeError:
        # What reads the output, such as head, has seen enough; the interpreter must not flush into it at its end.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 1
    except (IngestError, ProfileError, StoreError, ServerError, ExportError, OSError) as error:
        print(f"neuron-explorer: error: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        return 130


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="neuron-explorer", description="Shows where the time of a NEFF goes.")
    parser.add_argument("--version", action="version", version=f"neuron-explorer {_version()}")
    parser.add_argument("--show-profile-schema", action="store_true", help="print the tables of a profile and exit")
    commands = parser.add_subparsers(dest="command", metavar="COMMAND")
    _add_view(commands)
    _add_capture(commands)
    inspect = commands.add_parser("inspect", help="run a program and capture what it does on the device")
    inspect.add_argument("-o", "--output-dir", default=".", help="root of the session folders (default: %(default)s)")
    inspect.add_argument("-n", "--num-trace-events", type=int, help="events kept per core")
    inspect.add_argument("program", nargs=argparse.REMAINDER, metavar="PROGRAM ...", help="the command line to run")
    inspect.set_defaults(run=_inspect)
    recommend = commands.add_parser("recommend", help="print what to improve, as Markdown")
    _add_pair(recommend, required=True)
    recommend.add_argument("--nki-source-root", action="append", default=[], metavar="DIR")
    recommend.set_defaults(run=_recommend)
    compare = commands.add_parser("compare", help="compare device profiles; the first is the base")
    compare.add_argument(
        "profiles", nargs="+", metavar="PROFILE", help="name in the data folder, or folder of a profile"
    )
    compare.add_argument("--data-path", default=DEFAULT_DATA, metavar="DIR")
    compare.add_argument("--json", action="store_true", help="print JSON")
    compare.set_defaults(run=_compare)
    return parser


def _add_pair(parser: argparse.ArgumentParser, required: bool) -> None:
    parser.add_argument("-n", "--neff-path", "--neff", type=pathlib.Path, metavar="NEFF", required=required)
    parser.add_argument("-s", "--session-file", type=pathlib.Path, metavar="NTFF", required=required)


def _add_view(commands: Any) -> None:
    view = commands.add_parser("view", help="process a capture, and show or export it")
    view.add_argument("session", nargs="?", type=pathlib.Path, metavar="SESSION", help="the same as --session-dir")
    view.add_argument("-d", "--session-dir", type=pathlib.Path, metavar="DIR", help="folder of a capture")
    _add_pair(view, required=False)
    view.add_argument(
        "--data-path", default=DEFAULT_DATA, metavar="DIR", help="where profiles are (default: %(default)s)"
    )
    view.add_argument("--output-format", choices=FORMATS, default="parquet", help="default: %(default)s")
    view.add_argument("--output-file", type=pathlib.Path, help="file or folder of the export")
    view.add_argument("--profile", metavar="NAME", help="export or show this profile of the data folder")
    view.add_argument("--display-name", metavar="NAME", help="name of the profile (default: of the folder or NEFF)")
    view.add_argument("--ingest-only", action="store_true", help="process, do not show")
    view.add_argument("--disable-ui", action="store_true", help="the same as --ingest-only")
    view.add_argument("--force", action="store_true", help="replace a profile of the same name")
    view.add_argument("--port", type=int, default=3001, help="default: %(default)s; 0: a free one")
    view.add_argument("-v", "--verbose", action="store_true")
    view.add_argument("--ignore-device-profile", action="store_true", help="system tables only")
    view.add_argument("--ignore-system-profile", action="store_true", help="device profiles only")
    view.add_argument("--system-trace-filter-neuron-core", metavar="LIST", help="for example 0,2-3")
    view.add_argument(
        "--system-trace-filter-event-type", metavar="LIST", help="names, hardware, software; ^ leaves out"
    )
    view.add_argument("--system-trace-filter-instance-id", metavar="LIST")
    view.add_argument("--system-trace-primary-group", default="instance_id,process_id", metavar="LIST")
    view.add_argument("--system-trace-secondary-group", default="worker_gid,lnc_idx,thread_id", metavar="LIST")
    view.add_argument("--framework-source-root", action="append", default=[], metavar="DIR")
    view.add_argument("--nki-source-root", action="append", default=[], metavar="DIR")
    view.set_defaults(run=_view)


def _add_capture(commands: Any) -> None:
    capture = commands.add_parser("capture", help="run a NEFF on the emulator and write its trace")
    capture.add_argument("-n", "--neff", type=pathlib.Path, default=pathlib.Path("file.neff"))
    capture.add_argument("-s", "--session-file", type=pathlib.Path, default=pathlib.Path("profile.ntff"))
    capture.add_argument("inputs", nargs="*", metavar="NAME FILE", help="inputs as .npy or raw bytes; others are zero")
    capture.add_argument("--num-exec", type=int, default=1, help="executions (default: %(default)s)")
    capture.add_argument("--profile-nth-exec", type=int, default=1, metavar="N", help="trace the Nth; 0: none")
    capture.add_argument("--ignore-exec-errors", action="store_true")
    capture.add_argument("--disable-profile", action="store_true", help="execute only")
    capture.add_argument("--save-output", action="store_true", help="write each output as raw bytes")
    capture.add_argument(
        "--save-output-npy", action="store_true", help="write each output as .npy where numpy has its type"
    )
    capture.add_argument(
        "--check-output-determinism", action="store_true", help="compare the outputs of all executions"
    )
    capture.set_defaults(run=_capture)


def parse_cores(text: str) -> set[int]:
    """ "0,2-3" as {0, 2, 3}."""
    from .ingest import IngestError

    cores: set[int] = set()
    for part in text.split(","):
        first, _, last = part.strip().partition("-")
        if not first.isdigit() or (last and not last.isdigit()):
            raise IngestError(f"expected cores as in '0,2-3' but got {text!r}")
        cores.update(range(int(first), int(last or first) + 1))
    return cores


class _Progress:
    """One line that is rewritten, on a terminal only."""

    def __init__(self, verbose: bool):
        self._shown = sys.stderr.isatty() or verbose
        self._rewrites = sys.stderr.isatty()

    def __call__(self, fraction: float, text: str) -> None:
        if not self._shown:
            return
        end = "\r" if self._rewrites and fraction < 1 else "\n"
        print(f"{100 * fraction:5.1f} %  {text:50}", end=end, file=sys.stderr, flush=True)


def _profile_folder(options: argparse.Namespace, name: str) -> pathlib.Path:
    return pathlib.Path(options.data_path).expanduser() / "profiles" / name


def _default_name(source: pathlib.Path, is_file: bool) -> str:
    """The NEFF's name, or the session folder's; where that is a time only, with the process before it."""
    if is_file:
        return source.stem
    return f"{source.parent.name}_{source.name}" if source.name.isdigit() else source.name


def _is_of(folder: pathlib.Path, session: pathlib.Path) -> bool:
    """Whether the profile has been made completely, from this folder as it is now."""
    try:
        description = json.loads((folder / "profile.json").read_text())
        newest = max((path.stat().st_mtime for path in session.rglob("*")), default=0)
        return (
            description.get("status", "PROCESSED") == "PROCESSED"
            and description.get("source") == str(session.resolve())
            and newest <= (folder / "profile.json").stat().st_mtime
        )
    except (OSError, ValueError, AttributeError):
        return False


def _ingest(options: argparse.Namespace) -> pathlib.Path:
    from .ingest import Filters, ingest_pair, ingest_session
    from .profiles import checked_name, suggested_name

    roots = [*options.framework_source_root, *options.nki_source_root]
    source = options.session_dir or options.neff_path
    name = options.display_name or suggested_name(_default_name(source.resolve(), options.neff_path is not None))
    checked_name(name)
    folder = _profile_folder(options, name)
    if not options.force and not options.ingest_only and options.session_dir and _is_of(folder, options.session_dir):
        print(f"neuron-explorer: {name} was made from this folder before; --force makes it again", file=sys.stderr)
        return folder
    if folder.exists() and not options.force:
        raise FileExistsError(
            f"the profile {name} exists in {folder.parent}: show or export it with --profile {name}, "
            "replace it with --force, or choose another --display-name"
        )
    folder.parent.mkdir(parents=True, exist_ok=True)
    progress = _Progress(options.verbose)
    if options.session_dir is not None:
        filters = Filters(
            cores=parse_cores(options.system_trace_filter_neuron_core)
            if options.system_trace_filter_neuron_core
            else None,
            event_types=(options.system_trace_filter_event_type or "").split(",")
            if options.system_trace_filter_event_type
            else [],
            instances=set(options.system_trace_filter_instance_id.split(","))
            if options.system_trace_filter_instance_id
            else None,
            device=not options.ignore_device_profile,
            system=not options.ignore_system_profile,
        )
        return ingest_session(options.session_dir, folder, filters=filters, source_roots=roots, progress=progress)
    return ingest_pair(
        options.neff_path, options.session_file, folder, name=name, source_roots=roots, progress=progress
    )


def _view(options: argparse.Namespace) -> int:
    from .ingest import IngestError
    from .tables import Profile

    if options.session is not None:
        if options.session_dir is not None:
            raise IngestError(f"expected one folder but got {options.session} and --session-dir {options.session_dir}")
        options.session_dir = options.session
    if (options.neff_path is None) != (options.session_file is None):
        raise IngestError("expected a pair: -n NEFF and -s NTFF")
    if options.neff_path is not None and options.session_dir is not None:
        raise IngestError("expected either -d DIR or -n NEFF -s NTFF but got both")
    folder = None
    if options.session_dir is not None or options.neff_path is not None:
        folder = _ingest(options)
        for warning in json.loads((folder / "profile.json").read_text())["warnings"]:
            print(f"neuron-explorer: warning: {warning}", file=sys.stderr)
    elif options.profile:
        folder = _profile_folder(options, options.profile)
    exports = options.output_format != "parquet" or options.output_file is not None
    if exports:
        if folder is None:
            raise IngestError("expected something to export: -d DIR, -n NEFF -s NTFF or --profile NAME")
        return _export(Profile(folder), options.output_format, options.output_file)
    if options.ingest_only or options.disable_ui:
        if folder is not None:
            from .prepared import prepare
            from .profiles import ProfileStore

            prepare(ProfileStore(options.data_path), folder.name)
            print(folder)
        return 0
    from . import server

    data = pathlib.Path(options.data_path).expanduser()
    data.mkdir(parents=True, exist_ok=True)
    server.serve(data, port=options.port, profile=folder.name if folder else None, verbose=options.verbose)
    return 0


def _export(profile: Any, output_format: str, output: pathlib.Path | None) -> int:
    from .exports import files, perfetto

    if output_format in ("summary-text", "summary-json"):
        text = files.summary_text(profile) if output_format == "summary-text" else files.summary_json(profile)
        if output is None:
            print(text, end="")
        else:
            output.write_text(text)
            print(output)
        return 0
    if output_format == "html":
        from .html import export_html

        output = output or pathlib.Path(f"{profile.name}.html")
        export_html(profile.folder, output)
        print(output)
        return 0
    output = output or pathlib.Path(profile.name)
    write = {
        "parquet": files.export_parquet,
        "json": files.export_json,
        "csv": files.export_csv,
        "perfetto": perfetto.export_perfetto,
    }[output_format]
    for path in write(profile, output):
        print(path)
    return 0


def _capture(options: argparse.Namespace) -> int:
    from . import _decoder
    from .ingest import IngestError

    if len(options.inputs) % 2:
        raise IngestError(f"expected pairs NAME FILE but got {len(options.inputs)} arguments")
    neff = options.neff.read_bytes()
    inputs = {
        name: _read_input(pathlib.Path(file))
        for name, file in zip(options.inputs[::2], options.inputs[1::2], strict=True)
    }
    traced = None if options.disable_profile or options.profile_nth_exec == 0 else options.profile_nth_exec
    checksums = set()
    outputs: dict[str, bytes] = {}
    for number in range(1, options.num_exec + 1):
        try:
            outputs, trace = _decoder.execute(neff, inputs)
        except _decoder.ProfileError as error:
            if not options.ignore_exec_errors:
                raise
            print(f"neuron-explorer: execution {number}: {error}", file=sys.stderr)
            continue
        checksums.add(tuple(zlib.crc32(content) for content in outputs.values()))
        if traced == number:
            options.session_file.write_bytes(trace)
            print(options.session_file)
    if options.check_output_determinism and len(checksums) > 1:
        print(f"neuron-explorer: error: outputs differ: {len(checksums)} different results", file=sys.stderr)
        return 1
    for name, content in outputs.items():
        if options.save_output:
            pathlib.Path(f"{name}.bin").write_bytes(content)
        if options.save_output_npy:
            _save_npy(neff, name, content)
    return 0


def _read_input(path: pathlib.Path) -> bytes:
    if path.suffix != ".npy":
        return path.read_bytes()
    import numpy

    return numpy.ascontiguousarray(numpy.load(path, allow_pickle=False)).tobytes()


def _save_npy(neff: bytes, name: str, content: bytes) -> None:
    import numpy

    from . import _decoder

    variable = next(entry for entry in _decoder.neff_variables(neff) if entry["name"] == name)
    names = {"f32": "float32", "f16": "float16", "i32": "int32", "u32": "uint32", "i16": "int16", "u16": "uint16"}
    names |= {"i8": "int8", "u8": "uint8", "float32": "float32", "int32": "int32", "int64": "int64", "i64": "int64"}
    kind = names.get(variable["dtype"])
    if kind is None:
        print(f"neuron-explorer: {name}: NumPy has no {variable['dtype']}, writing raw bytes", file=sys.stderr)
        pathlib.Path(f"{name}.bin").write_bytes(content)
        return
    numpy.save(f"{name}.npy", numpy.frombuffer(content, kind).reshape(variable["shape"]))


def _inspect(options: argparse.Namespace) -> int:
    from .ingest import IngestError

    program = options.program[1:] if options.program[:1] == ["--"] else options.program
    if not program:
        raise IngestError("expected the command line of a program to run")
    environment = {
        **os.environ,
        "NEURON_RT_INSPECT_ENABLE": "1",
        "NEURON_RT_INSPECT_OUTPUT_DIR": str(pathlib.Path(options.output_dir).resolve()),
        "NEURON_RT_INSPECT_SYSTEM_PROFILE": "1",
        "NEURON_RT_INSPECT_DEVICE_PROFILE": os.environ.get("NEURON_RT_INSPECT_DEVICE_PROFILE", "session"),
    }
    if options.num_trace_events:
        environment["NEURON_RT_INSPECT_SYS_TRACE_MAX_EVENTS_PER_NC"] = str(options.num_trace_events)
    return subprocess.run(program, env=environment, check=False).returncode


def _recommend(options: argparse.Namespace) -> int:
    from .ingest import ingest_pair
    from .recommend import recommend

    with tempfile.TemporaryDirectory() as scratch:
        folder = ingest_pair(
            options.neff_path,
            options.session_file,
            pathlib.Path(scratch) / "profile",
            source_roots=options.nki_source_root,
            progress=_Progress(False),
        )
        for device in sorted((folder / "device").iterdir()):
            print(recommend(device))
    return 0


def _compare(options: argparse.Namespace) -> int:
    from .compare import as_text, compare
    from .ingest import IngestError
    from .tables import Profile

    devices = []
    for name in options.profiles:
        path = pathlib.Path(name)
        profile = Profile(path if (path / "profile.json").is_file() else _profile_folder(options, name))
        devices += profile.devices()
    if len(devices) < 2:
        raise IngestError(f"expected at least two device profiles but got {len(devices)}")
    comparison = compare(devices)
    print(json.dumps(comparison, indent=2) if options.json else as_text(comparison), end="")
    return 0


if __name__ == "__main__":
    sys.exit(main())
