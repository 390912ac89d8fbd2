"""ONNX files that somebody damaged or made: refused in words, before the runtime sees them."""

import numpy as np
import pytest

from softclt import TS2Vec

onnx = pytest.importorskip("onnx")
pytest.importorskip("onnxruntime")

from softclt.export import OnnxModel, export_onnx  # noqa: E402
from softclt.export.checksum import EMPTY, KEY, sealed  # noqa: E402

X = np.random.default_rng(0).normal(size=(3, 1, 20))


@pytest.fixture(scope="module")
def sound(tmp_path_factory):
    small = {"output_dims": 3, "hidden_dims": 2, "depth": 1, "device": "cpu"}
    path = tmp_path_factory.mktemp("onnx") / "m.onnx"
    export_onnx(TS2Vec(**small, max_iter=0, random_state=0).fit(X), path)
    return path


def forged(sound, path, change):
    """A file with another graph or other facts, and a checksum that fits."""
    file = onnx.load(sound)
    change(file)
    facts = {own.key: own.value for own in file.metadata_props} | {KEY: EMPTY}
    onnx.helper.set_model_props(file, facts)
    path.write_bytes(sealed(file.SerializeToString()))
    return path


def fact(key, value):
    def change(file):
        for own in file.metadata_props:
            if own.key == f"softclt.{key}":
                own.value = value

    return change


def rename_input(file):
    file.graph.input[0].name = "x"
    for node in file.graph.node:
        node.input[:] = ["x" if name == "series" else name for name in node.input]


def another_output(file):
    file.graph.output.append(onnx.helper.make_tensor_value_info("series", 11, None))


def numbers_of_another_file(file):
    tensor = next(own for own in file.graph.initializer if len(own.raw_data) > 8)
    onnx.external_data_helper.set_external_data(tensor, "../../secret")
    tensor.ClearField("raw_data")


def weights_of_another_shape(file):
    for tensor in file.graph.initializer:
        if len(tensor.dims) == 3:
            tensor.dims[0], tensor.dims[1] = tensor.dims[1] * 3, 1
            tensor.raw_data = bytes(4 * int(np.prod(tensor.dims)))


FORGED = {
    "channels are a word": fact("n_channels", "many"),
    "channels are below zero": fact("n_channels", "-1"),
    "channels are without end": fact("n_channels", "9" * 400),
    "missing is unheard of": fact("missing", "os.system"),
    "padding is empty": fact("padding", ""),
    "input has another name": rename_input,
    "there is one output more": another_output,
    "numbers are elsewhere": numbers_of_another_file,
    "weights have another shape": weights_of_another_shape,
    "there is no graph": lambda file: file.graph.ClearField("node"),
    "version is of the future": lambda file: setattr(file, "ir_version", 10**6),
}


@pytest.mark.parametrize("change", FORGED.values(), ids=FORGED)
def test_a_file_of_another_form_is_one_error_that_names_it(sound, tmp_path, change):
    path = forged(sound, tmp_path / "m.onnx", change)
    with pytest.raises(ValueError, match=r"m\.onnx"):
        OnnxModel(path).transform(X)


def test_a_file_with_facts_that_may_be_is_read(sound, tmp_path):
    path = forged(sound, tmp_path / "m.onnx", fact("model", "another name"))
    np.testing.assert_array_equal(OnnxModel(path).transform(X), OnnxModel(sound).transform(X))


def test_any_other_byte_is_found_by_the_checksum(sound, tmp_path):
    data, path = sound.read_bytes(), tmp_path / "m.onnx"
    for at in np.random.default_rng(0).integers(0, len(data), 200).tolist():
        changed = bytearray(data)
        changed[at] ^= 1 << at % 8
        path.write_bytes(bytes(changed))
        with pytest.raises(ValueError, match="checksum"):
            OnnxModel(path)


@pytest.mark.parametrize("share", [0.0, 0.1, 0.5, 0.99])
def test_so_is_a_part_of_a_file(sound, tmp_path, share):
    data = sound.read_bytes()
    (tmp_path / "m.onnx").write_bytes(data[: int(share * len(data))])
    with pytest.raises(ValueError, match="checksum"):
        OnnxModel(tmp_path / "m.onnx")


def test_a_file_larger_than_memory_is_not_read(sound, tmp_path):
    path = tmp_path / "m.onnx"
    path.write_bytes(sound.read_bytes())
    with path.open("r+b") as file:
        file.truncate(2**42)  # no space is taken
    with pytest.raises(ValueError, match="too large to load"):
        OnnxModel(path)
