#!/usr/bin/env python3
# Part of open-torch-neuronx, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""neuron-packager from the outside, and our files read with nothing but the Python standard library.

usage: test_packager.py NEURON_PACKAGER NEURON_MAKE_SAMPLES
"""

import hashlib
import io
import json
import pathlib
import struct
import subprocess
import sys
import tarfile
import tempfile
import unittest

PACKAGER, MAKE_SAMPLES = sys.argv[1:3]


def run(*arguments, check=True):
    done = subprocess.run([PACKAGER, *map(str, arguments)], capture_output=True, text=True)
    if check and done.returncode != 0:
        raise AssertionError(done.stderr)
    return done


class PackagerTest(unittest.TestCase):
    def setUp(self):
        self.directory = tempfile.TemporaryDirectory()
        self.addCleanup(self.directory.cleanup)
        self.path = pathlib.Path(self.directory.name)
        subprocess.run([MAKE_SAMPLES, self.path], check=True)
        self.neff = self.path / "sample.neff"

    def test_container_is_what_the_documentation_says(self):
        data = self.neff.read_bytes()
        package, header, size, major, minor = struct.unpack_from("<5Q", data)
        self.assertEqual((package, header, size, major, minor), (2, 1024, len(data) - 1024, 2, 0))
        self.assertEqual(data[172:188], hashlib.md5(data[1024:]).digest())
        self.assertEqual(data[188:204], bytes(16))
        self.assertEqual(struct.unpack_from("<Q", data, 544), (1 << 47,))
        with tarfile.open(fileobj=io.BytesIO(data[1024:]), mode="r:gz") as tar:
            for member in tar.getmembers():
                self.assertEqual((member.mtime, member.uid, member.gid, member.uname), (0, 0, 0, ""))
            # The way from the index to variables, engines and transfers.
            kelf = json.load(tar.extractfile("kelf-0.json"))
            for graph in kelf["graphs"]:
                definition = json.load(tar.extractfile(graph["definition"]))
                folder = graph["definition"].rpartition("/")[0]
                self.assertEqual(sum(v["type"] == "output" for v in definition["var"].values()), 2)
                transfers = 0
                for engine in ("pe", "act", "pool", "dve", "sp"):
                    tar.getmember(f"{folder}/{definition[engine + '_instr']}")
                    for element in json.load(tar.extractfile(f"{folder}/{definition[engine]}"))["dma"]:
                        self.assertIn(element["queue"], definition["dma_queue"])
                        transfers += len(element["desc"])
                self.assertEqual(transfers, 4)

    def test_constants_open_in_numpy(self):
        try:
            import numpy
        except ImportError:
            self.skipTest("NumPy is not installed")
        run("unpack", "-o", self.path / "out", self.neff)
        array = numpy.load(self.path / "out" / "sg00" / "constant_1.npy")
        self.assertEqual((array.shape, array.dtype), ((128, 64), numpy.float32))
        self.assertEqual(array[1, 0], 8.0)

    def test_info_has_the_documented_labels(self):
        text = run("info", self.neff).stdout
        labels = [
            "Package Version",
            "Header Size",
            "Data Size",
            "Major Version",
            "Minor Version",
            "Build Version",
            "Number of Neuron cores",
            "Hash",
            "UUID",
            "Network Name",
            "Enabled Features",
        ]
        self.assertEqual([line[:26].strip() for line in text.splitlines()[:11]], labels)
        self.assertRegex(text, r"NODE +Executor +Name +Variable +Size +Type +Format +Shape +DataType +TimeSeries")
        self.assertRegex(text, r"1 +Neuron Core +sg00 +x +32768 +IN +NC +\[128,64\] +f32\n")
        self.assertRegex(text, r"x.updated +32768 +OUT +NC +\[128,64\] +f32 +false")
        self.assertNotIn("WEIGHT", text)
        self.assertIn("WEIGHT", run("info", "-w", self.neff).stdout)
        self.assertIn("SPILL", run("info", "-s", self.neff).stdout)
        self.assertRegex(text, r"vector +2 instructions, 256 bytes")

    def test_info_as_json(self):
        info = json.loads(run("info", "--json-output", self.neff).stdout)
        self.assertEqual(info["network_name"], "sample")
        self.assertEqual(info["enabled_features"], "open-neuron")
        self.assertEqual(info["tensors"][0]["variable_name"], "x")
        self.assertEqual(info["instructions"]["sync"], 4)
        self.assertEqual(len(info["hash"]), 32)

    def test_unpack_and_create_are_inverse(self):
        run("unpack", "-o", self.path / "out", self.neff)
        self.assertTrue((self.path / "out" / "sg00" / "def.json").exists())
        payload = self.path / "out" / "neff.tgz"
        self.assertEqual(payload.read_bytes(), self.neff.read_bytes()[1024:])
        run("create", "-i", payload, "-k", "2.0", "-n", "again", "-e", "open-neuron", "-o", self.path / "again")
        info = json.loads(run("info", "--json-output", self.path / "again.neff").stdout)
        self.assertEqual(info["network_name"], "again")
        self.assertNotIn("error", info)
        self.assertEqual((info["major_version"], info["minor_version"]), (2, 0))

    def test_foreign_neffs_show_their_header(self):
        run("unpack", "-o", self.path / "out", self.neff)
        run("create", "-i", self.path / "out" / "neff.tgz", "-o", self.path / "foreign")
        text = run("info", self.path / "foreign.neff").stdout
        self.assertRegex(text, r"Minor Version +4\n")
        self.assertRegex(text, r"Enabled Features +N/A\n")
        self.assertIn("not public", text)
        self.assertIn("not public", run("disassemble", self.path / "foreign.neff", check=False).stderr)

    def test_disassemble_and_assemble_are_inverse(self):
        text = run("disassemble", self.neff).stdout
        self.assertIn("// kernel0: neuron.binary<add>, nodes 0 1", text)
        self.assertIn('v3 = output "x.updated": f32[128, 64], 32768 bytes, is v0', text)
        source = self.path / "program.s"
        source.write_text(text)
        run("assemble", "-b", self.neff, "-o", self.path / "same.neff", source)
        self.assertEqual((self.path / "same.neff").read_bytes(), self.neff.read_bytes())
        source.write_text(text.replace("scalar0=0.5", "scalar0=0.25"))
        run("assemble", "-b", self.neff, "-o", self.path / "other.neff", source)
        self.assertIn("scalar0=0.25", run("disassemble", self.path / "other.neff").stdout)

    def test_parameters_and_runs(self):
        runs = self.path / "runs.neff"
        text = run("disassemble", runs).stdout
        self.assertIn("//   param[2]: 16 bytes", text)
        self.assertIn("//   run 1: param[0] = v1, param[1] = v3, param[2] = v6", text)
        self.assertIn("src=hbm[param[0], 256*128", text)
        source = self.path / "runs.s"
        source.write_text(text)
        run("assemble", "-b", runs, "-o", self.path / "same.neff", source)
        self.assertEqual((self.path / "same.neff").read_bytes(), runs.read_bytes())
        # The table belongs to the file, not to the text; what the text names must be in it.
        for operand, message in [
            ("param[3]", "expected a parameter below 3 but got 3"),
            ("param[2]", "expected bytes 0 to 16 of parameter 2"),
            ("param[32768]", "32767"),
            ("param", "expected '['"),
        ]:
            source.write_text(text.replace("src=hbm[param[0]", f"src=hbm[{operand}"))
            done = run("assemble", "-b", runs, "-o", self.path / "bad.neff", source, check=False)
            self.assertIn(message, done.stderr)

    def test_errors(self):
        for arguments, message in [
            (["info", self.path / "nothing"], "expected a readable file"),
            (["info", self.path], "expected a readable file"),
            (["info", self.path / "sample.graph"], "expected a NEFF header"),
            (["create", "-i", self.neff], "expected a tar archive"),
            (["create", "-i", self.neff, "-e", "custom-ops"], "expected a tar archive"),
        ]:
            done = run(*arguments, check=False)
            self.assertEqual(done.returncode, 1)
            self.assertIn("neuron-packager: error: ", done.stderr)
            self.assertIn(message, done.stderr)
        run("unpack", "-o", self.path / "out", self.neff)
        tarball = self.path / "out" / "neff.tgz"
        self.assertIn("not public", run("create", "-i", tarball, "-e", "custom-ops", check=False).stderr)
        self.assertIn("major.minor", run("create", "-i", tarball, "-k", "two", check=False).stderr)
        source = self.path / "program.s"
        source.write_text("stream vector {\n  memset dst=sbuf[0:128, 0x3] f32, value=0.0\n}\n")
        done = run("assemble", "-b", self.neff, "-o", self.path / "bad.neff", source, check=False)
        self.assertIn("operand_c4", done.stderr)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
