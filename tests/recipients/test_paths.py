from __future__ import annotations

import errno
import io
import os
import re
from types import SimpleNamespace

import fsspec
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from fsspec import AbstractFileSystem
from support.tables import read, write
from upath import UPath

from airflow_provider_sms.exceptions import SourceError, SourceUnavailableError
from airflow_provider_sms.recipients.paths import without_secrets
from airflow_provider_sms.recipients.sources import open_source

TREE = ["p1.parquet", "p2.PARQUET", "part-0", "q.pq", "day/b.parquet", "day/a1.parquet", "day/a[1].parquet"]
HIDDEN = ["_p.parquet", "_temporary/0/x.parquet", ".ipynb_checkpoints/x.parquet", "day/.staging/x.parquet"]
MARKERS = ["_SUCCESS", ".a.parquet.crc", "day/_SUCCESS"]


@pytest.mark.parametrize(
    ("source", "names"),
    [
        *((each, sorted(TREE)) for each in ("", "/", "*")),
        ("p?.*", TREE[:2]),
        ("**/*.parquet", ["day/a1.parquet", "day/a[1].parquet", "day/b.parquet", "p1.parquet"]),
        ("**/b.parquet", ["day/b.parquet"]),
        ("*/*.parquet", ["day/a1.parquet", "day/a[1].parquet", "day/b.parquet"]),
        ("day/a[1].parquet", ["day/a[1].parquet"]),  # a file whose name has the signs of a glob
        *((each, [each]) for each in HIDDEN),
        ("*/.staging/*.parquet", ["day/.staging/x.parquet"]),
        ("_temporary/*/x.parquet", ["_temporary/0/x.parquet"]),
    ],
)
def test_directories_and_globs(tmp_path, source, names):
    """Files at any depth, sorted by path; a name without an ending is taken for Parquet.

    Markers, copies and unfinished tables are passed over, and so are folders of these: they hold people who are not
    meant. What the source names is meant, and so is what lies below a folder that it names.
    """
    folder = tmp_path / ".cache" / "_out"
    for name in TREE + HIDDEN:
        write(folder / name, name=[name])
    for name in MARKERS:
        (folder / name).write_bytes(b"x")
    assert read(f"{folder}/{source}") == {"name": names}
    assert open_source(f"{folder}/").description == f"{folder}/ ({len(TREE)} Parquet files)"


@pytest.mark.parametrize(
    "other",
    ["june.xlsx", "july.json", "a.JSON.gz", "may.csv.xz", "old/april.CSV.bak", "part-0.c000", "README.md", "a.arrows"],
)
def test_a_file_that_is_not_read_is_refused(tmp_path, other):
    """Passed over, its people would be left out, or texted although they are on a list, and nobody would notice."""
    write(tmp_path / "a.parquet", a=[1])
    (tmp_path / other).parent.mkdir(exist_ok=True)
    (tmp_path / other).write_bytes(b"x")
    for source in (tmp_path, tmp_path / other):
        with pytest.raises(SourceError, match=rf"{tmp_path / other}: the ending of its name is none that is read"):
            read(source)
    assert read(f"{tmp_path}/*.parquet") == {"a": [1]}


@pytest.mark.parametrize(("log", "kind"), [("_delta_log/0.json", "Delta Lake"), (".hoodie/hoodie.properties", "Hudi")])
def test_a_table_with_a_log_is_refused(tmp_path, log, kind):
    """Beside the present rows lie those that were deleted or changed, such as of people who have opted out."""
    for name in ("people/day=1/a.parquet", "people/day=1/b.parquet", f"people/{log}"):
        write(tmp_path / name, a=[1])
    for source in (tmp_path / "people", tmp_path, f"{tmp_path}/p*", f"{tmp_path}/people/*/*.parquet"):
        with pytest.raises(SourceError, match=rf"the directory is a {kind} table\. Its files also hold rows that"):
            read(source)


@pytest.mark.parametrize("glob", ["*/*.parquet", "m*/**/*.parquet", "*/*", "*", "march", "march/july.*"])
def test_links_that_a_path_or_a_glob_matches_are_followed(tmp_path, glob):
    """People behind a link to a directory would be left out, or texted although they are on a list there."""
    write(tmp_path / "elsewhere" / "july.parquet", a=[1])
    write(tmp_path / "people" / "may" / "a.parquet", a=[2])
    for link in ("march", "_hidden"):
        (tmp_path / "people" / link).symlink_to(tmp_path / "elsewhere")
    assert read(tmp_path / "people" / glob) == {"a": [1] if glob.startswith("march") else [1, 2]}


@pytest.mark.parametrize("glob", ["", "**/*.parquet"])
@pytest.mark.parametrize(
    ("link", "target", "words"),
    [
        ("march", "..", "/march, a link to another directory, which is not followed. Name such links in paths"),
        ("b.parquet", "nowhere", "/b.parquet: there is no such file"),
    ],
)
def test_other_links_are_not_passed_over(tmp_path, glob, link, target, words):
    """Their people would be left out; below a directory, a link might come back to where it began."""
    write(tmp_path / "people" / "a.parquet", a=[1])
    (tmp_path / "people" / link).symlink_to(target)
    with pytest.raises(SourceError, match=re.escape(words)):
        read(tmp_path / "people" / glob)


@pytest.fixture
def unlisted(monkeypatch):
    """Let the system refuse to list a folder, as it does for another user's; the tests may run as root."""
    scandir = os.scandir

    def unlisted(folder, number=errno.EACCES):
        folder.mkdir(parents=True, exist_ok=True)

        def refuse(path="."):
            if os.fspath(path) == str(folder):
                raise OSError(number, os.strerror(number), str(folder))
            return scandir(path)

        monkeypatch.setattr(os, "scandir", refuse)

    return unlisted


@pytest.mark.parametrize("source", ["", "*", "*/*.parquet", "**/*.parquet", "j*/**/*.parquet", "jun[e]/*"])
@pytest.mark.parametrize(
    ("number", "transient", "why"), [(errno.EACCES, False, "PermissionError"), (errno.EIO, True, "OSError")]
)
def test_a_folder_that_cannot_be_listed_is_not_passed_over(tmp_path, unlisted, source, number, transient, why):
    """Its people would be left out, or texted although they are on a list there; a disk may answer later."""
    write(tmp_path / "july" / "a.parquet", a=[1])
    unlisted(tmp_path / "june", number)
    with pytest.raises(SourceError, match=rf"cannot be looked up: {why} at .*/june$") as raised:
        open_source(f"{tmp_path}/{source}")
    assert isinstance(raised.value, SourceUnavailableError) == transient


@pytest.mark.parametrize(
    ("folder", "source"),
    [
        ("lost+found", ""),
        ("lost+found", "**/*.parquet"),
        ("_temporary/0", ""),
        (".trash", "*/*.parquet"),
        ("private", "j*/*.parquet"),
        ("private/a", "j*/*/*.parquet"),
    ],
)
def test_a_folder_in_which_nothing_is_looked_for_need_not_be_listed(tmp_path, unlisted, folder, source):
    """It is hidden, of the system, or one that a glob does not match."""
    write(tmp_path / ("july/1" if source.count("/") > 1 else "july") / "a.parquet", a=[1])
    unlisted(tmp_path / folder)
    assert read(f"{tmp_path}/{source}") == {"a": [1]}


def test_other_filesystems(tmp_path):
    """A URI of any protocol that fsspec knows, or an object with a filesystem and a path, is a file there, or several.

    Airflow's ObjectStoragePath is such an object.
    """
    memory = fsspec.filesystem("memory")
    memory.pipe({"/data/b.parquet": parquet(a=[2]), "/data/year=2024/a.parquet": parquet(a=[1])})
    for make in (str, UPath):
        assert read(make("memory://data/b.parquet")) == {"a": [2]}
        assert read(make("memory://data"), ["a"]) == {"a": [2, 1]}
        assert read([make("memory://data/year=2024/a.parquet"), make("memory://data/b.parquet")]) == {"a": [1, 2]}
    assert read("memory://data/*/*.parquet") == {"a": [1]}
    assert read(SimpleNamespace(fs=memory, path="/data/?.parquet")) == {"a": [2]}
    assert open_source("memory://data").description == "memory://data (2 Parquet files)"
    write(tmp_path / "a.parquet", a=[1])
    assert read(UPath(tmp_path / "a.parquet")) == read(UPath(f"file://{tmp_path}")) == {"a": [1]}
    memory.rm("/data", recursive=True)


class ObjectStore(AbstractFileSystem):
    """Objects whose keys may be the names of folders, as in S3, and listings that are kept."""

    cachable = False

    def __init__(self, **objects):
        super().__init__()
        self.objects = objects

    def _open(self, path, *_, **__):
        return io.BytesIO(self.objects[path])

    def info(self, path, **_):
        if path in self.objects:
            return {"name": path, "size": len(self.objects[path]), "type": "file"}
        if any(key.startswith(f"{path}/") for key in self.objects):
            return {"name": path, "size": 0, "type": "directory"}
        raise FileNotFoundError(path)

    def ls(self, path, detail=True, **_):  # noqa: FBT002 - as fsspec has it
        if path not in self.dircache:
            below = f"{path}/"
            keys = [key for key in self.objects if key.startswith(below)]
            folders = {below + key[len(below) :].split("/")[0] for key in keys if "/" in key[len(below) : -1]}
            found = [self.info(key) for key in keys if "/" not in key[len(below) : -1]]
            found += [{"name": each, "size": 0, "type": "directory"} for each in folders]
            self.dircache[path] = found or [self.info(path)]
        return self.dircache[path] if detail else [each["name"] for each in self.dircache[path]]

    def invalidate_cache(self, path=None):
        self.dircache.clear()


def parquet(**columns):
    sink = pa.BufferOutputStream()
    pq.write_table(pa.table(columns), sink)
    return sink.getvalue().to_pybytes()


@pytest.mark.parametrize("key", ["people/", "people/day=1/", "people/day=1_$folder$", "people/b.parquet"])
def test_an_object_that_stands_for_a_folder_is_no_file(key):
    """Consoles and Hadoop write one without a byte, by its name with a slash or an ending; any other was cut short."""
    objects = ObjectStore(**{"people/day=1/a.parquet": parquet(a=[1]), key: b""})
    for path in ("people", "people/*"):
        if key.endswith(".parquet"):
            with pytest.raises(SourceError, match=r"b\.parquet: is not a valid Parquet file"):
                read(SimpleNamespace(fs=objects, path=path))
        else:
            assert read(SimpleNamespace(fs=objects, path=path), ["a"]) == {"a": [1]}


def test_each_attempt_lists_a_folder_anew():
    """A listing that the filesystem has kept may lack files that came since."""
    objects = ObjectStore(**{"people/a.parquet": parquet(a=[1])})
    assert read(SimpleNamespace(fs=objects, path="people")) == {"a": [1]}
    objects.objects["people/b.parquet"] = parquet(a=[2])
    assert len(objects.find("people")) == 1
    assert read(SimpleNamespace(fs=objects, path="people")) == {"a": [1, 2]}


class BrokenFilesystem:
    """A filesystem whose every answer is an error that quotes the path."""

    def __repr__(self):
        return type(self).__name__  # Python's own has an address, which may look like a phone number

    def info(self, path):
        raise RuntimeError(path)


class Location(SimpleNamespace):
    def __str__(self):
        return self.path


NOTHING = "there is no such file or directory"


@pytest.mark.parametrize(
    ("source", "words"),
    [
        *((name, f"FOLDER/{name}: {NOTHING}") for name in ("nothing.parquet", "nothing", "nothing/a.parquet")),
        ("*.parquet", "FOLDER/*.parquet: no file matches"),
        ("empty", "FOLDER/empty: the directory holds no file"),
        ("marked", "FOLDER/marked: the directory holds no file"),
        *((blank, "the path is empty: give the path of the files with the recipients") for blank in ("", "  ")),
        ("nope://bucket/a.parquet", "nope://bucket/a.parquet: Protocol not known: nope"),
        # A password or a signature is in no error, and not in what led to it.
        *(
            (Location(fs=BrokenFilesystem(), path=path), f"{shown}: cannot be looked up: RuntimeError")
            for path, shown in (
                ("/a.parquet", "/a.parquet"),
                ("https://host/a.parquet?X-Amz-Signature=SECRET", "https://host/a.parquet"),
                ("sftp://user:SECRET@host/a.parquet", "sftp://*****@host/a.parquet"),
            )
        ),
    ],
)
def test_where_nothing_can_be_read_is_named(tmp_path, source, words):
    """It is no empty source, and a template that rendered to nothing is not the working directory."""
    (tmp_path / "empty").mkdir()
    write(tmp_path / "marked" / "_SUCCESS", a=[1])
    if isinstance(source, str) and source.strip() and "://" not in source:
        source = f"{tmp_path}/{source}"
    with pytest.raises(SourceError) as caught:
        open_source(source)
    assert str(caught.value).startswith(f"source: {words.replace('FOLDER', str(tmp_path))}")
    assert isinstance(caught.value.__cause__, RuntimeError) == (
        words == "/a.parquet: cannot be looked up: RuntimeError"
    )


@pytest.mark.parametrize(
    ("path", "shown"),
    [
        ("27820000001x", "2782*****01x"),
        ("/data/Ann;+27 82 000 0001", "/data/Ann;2782*****01"),
        ("s3://b/phone=27820000001/a.parquet", "s3://b/phone=2782*****01/a.parquet"),
        ("/data/2026-01-31/people-20260131.parquet", "/data/2026-01-31/people-20260131.parquet"),
        ("/data/manual__2026-01-31T09:00:00+00:00/a.csv", "/data/manual__2026-01-31T09:00:00+00:00/a.csv"),
        ("/data/2026/01/31/07", "/data/2026/01/31/07"),
    ],
)
def test_a_path_is_shown_without_numbers(path, shown):
    """Dates stay, since an error without them says nothing."""
    assert without_secrets(path) == shown
