"""A checksum inside an ONNX file: the format has none, and damaged files bring its readers down.

It is an entry of the file's metadata, over all its bytes, with zeros in the place of the checksum.
Nothing of the format is parsed for it.
"""

import hashlib

KEY = "softclt.checksum"
EMPTY = "0" * 64  # until the file is sealed
_ENTRY = b"\n\x10softclt.checksum\x12@"  # as protobuf writes it, before the digits
_ELSEWHERE = b"\n\x08location"  # a tensor whose numbers are in another file


def sealed(data: bytes) -> bytes:
    """The file with its checksum in place."""
    at = data.index(_ENTRY) + len(_ENTRY)
    return data[:at] + _digest(data, at) + data[at + len(EMPTY) :]


def trouble(data: bytes) -> str:
    """What is wrong with the bytes of a file; empty if they are those that were sealed."""
    if _ENTRY not in data:
        return "is no ONNX file that 'softclt export' wrote, or a part of one: it has no checksum"
    at = data.index(_ENTRY) + len(_ENTRY)
    if data[at : at + len(EMPTY)] != _digest(data, at):
        return (
            "is damaged, or was changed since 'softclt export' wrote it: its checksum differs; "
            "export the model again"
        )
    if _ELSEWHERE in data:
        return "takes numbers from another file, which no file of 'softclt export' does"
    return ""


def _digest(data: bytes, at: int) -> bytes:
    """Of all bytes but the checksum itself."""
    digest = hashlib.sha256(data[:at])
    digest.update(EMPTY.encode())
    digest.update(data[at + len(EMPTY) :])
    return digest.hexdigest().encode()
