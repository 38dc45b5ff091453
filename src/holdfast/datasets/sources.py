"""Where the files come from that are not embedded, and the proof that they are the right ones.

A file is looked for in a directory that is named (argument, or environment variable
HOLDFAST_DATA_DIR), then in the user's cache, and then it is downloaded into that cache. Whichever
way it comes, its SHA-256 decides whether it is used.
"""

from __future__ import annotations

import hashlib
import http.client
import importlib
import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType

from holdfast.datasets.download import resume
from holdfast.machinery.numbers import refuse

DIRECTORY_VARIABLE = "HOLDFAST_DATA_DIR"


class DataAbsent(FileNotFoundError):
    """A data file is neither here nor to be had; the message says where to get it."""


@dataclass(frozen=True)
class Address:
    """An address, and the SHA-256 of what it must serve."""

    url: str
    sha256: str


@dataclass(frozen=True)
class External:
    """A file that is not embedded.

    Attributes
    ----------
    sha256 : str
        Checksum of the file as published.
    same_text : tuple of str
        Checksums of the same text with other line ends, or without its byte-order mark.
    where : str
        Where a person can get it.
    """

    name: str
    sha256: str
    same_text: tuple[str, ...]
    addresses: tuple[Address, ...]
    where: str
    source: str
    citation: str
    licence: str

    @property
    def accepted(self) -> tuple[str, ...]:
        """All checksums that will do."""
        return (self.sha256, *self.same_text)


_ROAR = (
    "https://raw.githubusercontent.com/AI4LIFE-GROUP/ROAR/abcf6e3683cd06b7fd4c5c77475a525d375e011b"
)
_SBA_STUDY = (
    "https://raw.githubusercontent.com/italocosilva/sba-probability-of-default/"
    "a8beded69d42b4d43d91eab06d82cde436df8dfc"
)
_SOUTH_GERMAN_SHA256 = "9d594802947b6cd594a57dd5e9e0c05b1bf199a70a1ce3a6194be627d9c3ca95"
_SBA_SHA256 = "3fc1a6519ae8450cbf6721c9f37797224d77c755b5b52baf58ee046478f8932b"
_SBA_UNIX_SHA256 = "9c6ba3e04189457d084f168a78b47eb8ed20d3fcb24ec540e3ec54ced79ce89f"

SOUTH_GERMAN = External(
    name="corrected_german.csv",
    sha256=_SOUTH_GERMAN_SHA256,
    same_text=("ad0e02da306e413c979ef777f2e78aa4e0db68c1101195556c326e44e9fbc418",),
    addresses=(Address(f"{_ROAR}/datasets/corrected_german.csv", _SOUTH_GERMAN_SHA256),),
    where=(
        "the repository of Upadhyay, Joshi and Lakkaraju (github.com/AI4LIFE-GROUP/ROAR, folder "
        "datasets), or SouthGermanCredit.asc from https://archive.ics.uci.edu/dataset/573"
    ),
    source="https://archive.ics.uci.edu/dataset/573/south+german+credit+update",
    citation=(
        "Groemping, U. (2019). South German Credit (UPDATE). UCI Machine Learning Repository. "
        "https://doi.org/10.24432/C5QG88"
    ),
    licence="CC BY 4.0",
)
SBA = External(
    name="SBAcase.11.13.17.csv",
    sha256=_SBA_SHA256,
    same_text=(
        _SBA_UNIX_SHA256,
        "9cb1b341530abd58af9d2d471e68e9f9be5af493112168944959b55260b4f159",
        "afaafce9d83fc1d6325235c4ad1258479af191c73401429eeae3fc90f593f7cd",
    ),
    addresses=(
        Address(f"{_ROAR}/datasets/SBAcase.11.13.17.csv", _SBA_SHA256),
        Address(f"{_SBA_STUDY}/data/SBAcase.11.13.17.csv", _SBA_UNIX_SHA256),
    ),
    where=(
        "the supplement of Li, Mickel and Taylor (2018), "
        "https://doi.org/10.1080/10691898.2018.1434342, or Kaggle "
        "larsen0966/sba-loans-case-data-set, or OpenML 43539"
    ),
    source="https://doi.org/10.1080/10691898.2018.1434342",
    citation=(
        'Li, M., Mickel, A. and Taylor, S. (2018). "Should This Loan be Approved or Denied?": A '
        "Large Dataset with Class Assignment Guidelines. Journal of Statistics Education 26(1). "
        "https://doi.org/10.1080/10691898.2018.1434342"
    ),
    licence=(
        "none stated in the file: a supplement of the article, drawn from records of the U.S. "
        "Small Business Administration"
    ),
)


def fetch(file: External, directory: str | Path | None = None) -> bytes:
    """Return the content of `file`, checked.

    Parameters
    ----------
    directory : path, optional
        Where to look first; by default what HOLDFAST_DATA_DIR names, if it is set.

    Raises
    ------
    DataAbsent
        When it is nowhere and cannot be downloaded.
    ValueError
        When the file in `directory` is another one.
    """
    named = named_directory(directory)
    if named is not None and (named / file.name).is_file():
        content = (named / file.name).read_bytes()
        check_file(content, file, str(named / file.name))
        return content
    pooch = _pooch(file, named)
    cache = cache_directory(pooch)
    path = cache / file.name
    if path.is_file() and _sha256(content := path.read_bytes()) in file.accepted:
        return content
    _download(file, cache, named, pooch)
    return path.read_bytes()


def named_directory(directory: str | Path | None) -> Path | None:
    """Return the directory that the argument or the environment names, which must exist."""
    if directory is not None and not isinstance(directory, (str, Path)):
        refuse("directory", directory, "the path of one, or None")
    named = directory or os.environ.get(DIRECTORY_VARIABLE)
    if not named:
        return None
    if not Path(named).is_dir():
        raise NotADirectoryError(
            f"{named} is not a directory; it was given by "
            f"{'the argument directory' if directory else DIRECTORY_VARIABLE} to hold data files"
        )
    return Path(named)


def check_file(content: bytes, file: External, path: str) -> None:
    """Refuse content that is not that of `file`."""
    digest = _sha256(content)
    if digest not in file.accepted:
        raise ValueError(
            f"{path} is not the right file: its SHA-256 is {digest}, expected {file.sha256}; get "
            f"it from {file.where}"
        )


def cache_directory(pooch: ModuleType) -> Path:
    """Return where downloads are kept."""
    return Path(pooch.os_cache("holdfast"))


def _sha256(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


def _pooch(file: External, named: Path | None) -> ModuleType:
    try:
        return importlib.import_module("pooch")
    except ModuleNotFoundError as error:
        reason = "to download it automatically, install pooch: pip install 'holdfast[reproduce]'"
        raise DataAbsent(_absent(file, named, reason)) from error


def _download(file: External, cache: Path, named: Path | None, pooch: ModuleType) -> None:
    """Try the addresses in turn; pooch lets only the pinned content take the file's name."""
    reasons = []
    for address in file.addresses:
        try:
            pooch.retrieve(
                address.url,
                known_hash=f"sha256:{address.sha256}",
                fname=file.name,
                path=cache,
                downloader=_downloader(cache / f"{file.name}.{address.sha256[:8]}.part"),
            )
            return
        except (OSError, http.client.HTTPException, ValueError) as error:
            reasons.append(f"{address.url}: {error}")
    raise DataAbsent(_absent(file, named, "these downloads failed: " + "; ".join(reasons)))


def _downloader(part: Path) -> Callable[[str, str, object], None]:
    """Return a downloader as pooch calls it: address, where to, and pooch itself or None."""

    def download(url: str, output: str, _: object) -> None:
        resume(url, part)
        os.replace(part, output)

    return download


def _absent(file: External, named: Path | None, reason: str) -> str:
    into = named or (
        f"a directory of your own, and give that as {DIRECTORY_VARIABLE}, as the argument "
        "`directory`, or as --data on the command line"
    )
    return (
        f"{file.name} was not found. Get it from {file.where}; its SHA-256 is {file.sha256}. Put "
        f"it into {into}. ({reason})"
    )
