import sys

import pytest

from port.errors import EnvironmentMissingError, InputError
from port.hipify import tables, torch_map

TABLES = """
import collections
raise RuntimeError("this file is read, not run")
CUDA_TYPE_NAME_MAP = collections.OrderedDict([("CUresult", "hipError_t")])
CUDA_IDENTIFIER_MAP = {"cuCtxGetId": ("hipCtxGetDevice", 1, 2), "cuCtxAttach": ("hipNoSuch", 1)}
PYTORCH_SPECIFIC_MAPPINGS = collections.OrderedDict([("CUDAStream", "HIPStream")])
"""


@pytest.fixture
def torch_with_tables(tmp_path, monkeypatch):
    folder = tmp_path / "torch" / "utils" / "hipify"
    folder.mkdir(parents=True)
    (tmp_path / "torch" / "__init__.py").write_text("raise RuntimeError('torch was imported')\n")
    (folder / "cuda_to_hip_mappings.py").write_text(TABLES)
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.delitem(sys.modules, "torch", raising=False)
    return tmp_path


@pytest.mark.parametrize("text", ["a = (", "a = " + "(" * 99_999, "a = " + "-" * 99_999 + "1"])
def test_tables_that_cannot_be_read_are_named(tmp_path, text):
    path = tmp_path / "tables.py"
    path.write_text(text)
    with pytest.raises(InputError, match="torch's tables cannot be read"):
        torch_map.read(path)


@pytest.mark.report("10")
def test_tables_are_read_without_importing_torch(torch_with_tables):
    assert torch_map.load() == {
        "CUresult": "hipError_t",
        "cuCtxGetId": "hipCtxGetDevice",
        "cuCtxAttach": "hipNoSuch",
    }
    assert "torch" not in sys.modules


def test_only_declared_targets_of_names_without_a_counterpart_are_added(torch_with_tables):
    for release in tables.RELEASES:
        assert torch_map.additions(release) == {"cuCtxGetId": "hipCtxGetDevice"}


@pytest.mark.report("10")
def test_a_torch_without_tables_is_named(tmp_path, monkeypatch):
    (tmp_path / "torch").mkdir()
    (tmp_path / "torch" / "__init__.py").touch()
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.delitem(sys.modules, "torch", raising=False)
    with pytest.raises(EnvironmentMissingError, match="--torch-map"):
        torch_map.load()
