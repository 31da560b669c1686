"""Some of these faults can be made on one system only; everywhere else their files are not collected."""

import sys

import pytest

pytest.register_assert_rewrite("tests.crash.harness")

# Small disks, limits of a running process, and permissions that bind root: Linux has them all.
# Replacing a file that a server has open: Windows refuses it by itself.
collect_ignore = [] if sys.platform == "linux" else ["test_full_disk.py", "test_read_only.py", "test_doctor.py"]
if sys.platform == "win32":
    collect_ignore += ["test_replaced.py"]
